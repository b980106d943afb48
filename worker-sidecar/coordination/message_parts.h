// Plans and reports of a pod with many ranks, in as many messages as it takes: what concerns one
// rank fits a message (docs/formats/frames.md, limits), what concerns all ranks of a pod need not.
// Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "worker-sidecar/coordination/output.h"

namespace rekindle::sidecar {

// All but the last one have `more` and some of the ranks only; the last has the rest.
void send_in_parts(std::uint32_t to, const PodWrittenMessage& written, CoordinationOutputs& out);

// Each has some of the writers; where it is more than one message, all say how many writers there
// are.
void send_in_parts(std::uint32_t to, const AssignMessage& assign, CoordinationOutputs& out);

// Puts such orders together again, whatever is lost or comes twice.
class AssignParts {
 public:
  // The whole order, once all of its writers have been named.
  std::optional<AssignMessage> add(const AssignMessage& part);

 private:
  std::uint64_t term_ = 0;
  std::map<std::uint32_t, WriterPlan> writers_;
};

}  // namespace rekindle::sidecar
