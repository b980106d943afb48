// Which step a breakpoint takes, for pure data parallel (PROTOCOL P10, P13). A function of what the ranks reported and of which
// waits are over; it never looks back. The rules, in the order in which they are applied:
//
// 1. Live ranks that are updating are waited for until `updating_over`; then they are dirty (P6).
// 2. target is the largest committed step that a rank is known to have, dead or alive. A dead rank's claim of more than one
//    step beyond every live one is refused, and a live rank more than one step behind is no source: skew of one is normal, more is not.
// 3. A live clean copy at target: take it. Were gradients of target + 1 complete on some live rank (it waits at its update gate at target),
//    then target + 1 is one update away; it is taken when that costs nobody's small state: every rank lives and can make that
//    update, or no small state is registered.
// 4. No live copy at target: live ranks that wait at the update gate at target - 1 are permitted; ranks that compute
//    at target - 1 are waited for until `arrival_over`. Nobody left: the largest live clean step, with the loss on record.
// 5. Live ranks one step behind the step that is taken are permitted, and waited for until `straggler_over`, so that their small state of
//    that step exists (only where small state is registered).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "worker-sidecar/protocol/peer_message.h"

namespace rekindle {

struct ChooseInput {
  std::vector<CollectedRank> ranks;  // known ones, each once
  std::uint32_t world_size = 1;
  bool states_matter = false;
  bool updating_over = false;
  bool arrival_over = false;
  bool straggler_over = false;
  bool permit_over = false;  // ranks that were permitted and still wait will not move
};

enum class ChoiceKind : std::uint8_t { wait, permit, take, finished, none };
std::string_view to_string(ChoiceKind kind);

struct Choice {
  ChoiceKind kind = ChoiceKind::none;
  std::uint64_t step = 0;                 // take: the step; permit: the step to which the update leads
  std::vector<std::uint32_t> ranks;       // take: live clean ranks at step, the writers; permit: who may
  std::uint64_t steps_lost = 0;           // take: target - step
  std::string why;                        // wait: for what; take: why steps were lost; none: the reason
  std::vector<std::string> refused;       // sentences about reports that were not believed

  bool operator==(const Choice&) const = default;
};

// `finished`: every rank that is known has finished, there is nothing to save.
Choice choose_step(const ChooseInput& input);

}  // namespace rekindle
