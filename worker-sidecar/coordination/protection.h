// Which deaths cost committed steps (PROTOCOL P10), computed before any happens. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "worker-sidecar/coordination/choose_step.h"

namespace rekindle::sidecar {

// `full`: the death of any one process costs no committed step. `message` says what still costs
// some, for people.
struct Protection {
  bool full = false;
  std::string message;

  bool operator==(const Protection&) const = default;
};

// `shadow_every`: a shadow every so many steps, 0 for none. `groups` as choose_step has them, not
// empty.
Protection protection_of(const std::vector<StepGroup>& groups, std::uint64_t shadow_every);

}  // namespace rekindle::sidecar
