// Which step a breakpoint takes (PROTOCOL P10, P13). A function of what the ranks reported and of
// which waits are over; it never looks back. Ranks that hold the same shards are a group (pure data
// parallel is one group of all); a step can be taken when every group has it: a live clean copy in
// the memory of one of its ranks, or in shadows the stripes of all that have a share of the group.
// The rules, in the order in which they are applied:
//
// 1. Live ranks that are updating are waited for until `updating_over`; then they are dirty (P6).
// 2. target is the largest committed step that a rank is known to have, dead or alive. A dead
//    rank's claim of more than one
//    step beyond every live one is refused, and a live rank more than one step behind is no source:
//    skew of one is normal, more is not.
// 3. Were gradients of target + 1 complete in every group (a live rank of it waits at its update
//    gate at target), then target + 1 is one
//    update away; it is taken when that costs no rank's small state: every rank lives and can make
//    that update, or no small state is registered.
// 4. Every group has target: take it. Where one has not, its live ranks that wait at the update
//    gate at target - 1 are permitted, once every group
//    that lacks the step has such a rank; ranks that compute at target - 1 are waited for until
//    `arrival_over`. (No rank is permitted before: a group that has gone on no longer has the step
//    before.) Not to be had: the next smaller step that ranks or shadows have, by the same rule,
//    with the loss on record.
// 5. Live ranks one step behind the step that is taken are permitted, and waited for until
//    `straggler_over`, so that their small state of
//    that step exists (only where small state is registered).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/enum_names.h"
#include "worker-sidecar/protocol/peer_message.h"

namespace rekindle::sidecar {

// Ranks that hold the same shards. `sharers`: those whose shadows together hold all of them
// (ranks_with_shares of plan.h). Both sorted.
struct StepGroup {
  std::vector<std::uint32_t> ranks;
  std::vector<std::uint32_t> sharers;
};

struct ChooseInput {
  std::vector<CollectedRank> ranks;  // known ones, each once
  std::uint32_t world_size = 1;
  bool states_matter = false;
  bool updating_over = false;
  bool arrival_over = false;
  bool straggler_over = false;
  bool permit_over = false;            // ranks that were permitted and still wait will not move
  std::vector<StepGroup> groups = {};  // empty: one of all ranks
};

enum class ChoiceKind : std::uint8_t { wait, permit, take, finished, none };
constexpr auto enum_names(ChoiceKind) {
  return std::to_array<EnumName<ChoiceKind>>({
      {ChoiceKind::wait, "wait"},
      {ChoiceKind::permit, "permit"},
      {ChoiceKind::take, "take"},
      {ChoiceKind::finished, "finished"},
      {ChoiceKind::none, "none"},
  });
}

struct Choice {
  ChoiceKind kind = ChoiceKind::none;
  // take: the step; permit: the step to which the update leads
  std::uint64_t step = 0;
  // take: live clean ranks at step, the writers; permit: who may
  std::vector<std::uint32_t> ranks;
  // take: ranks whose shadow of step is needed, none of them in `ranks`
  std::vector<std::uint32_t> shadows = {};
  std::uint64_t steps_lost = 0;  // take: target - step
  // groups that do not have target, where it was not taken; indices
  std::vector<std::size_t> lost_groups = {};
  // wait: for what; take: why steps were lost; none: the reason
  std::string why;
  std::vector<std::string> refused;  // sentences about reports that were not believed

  bool operator==(const Choice&) const = default;
};

// `finished`: every rank that is known has finished, there is nothing to save.
Choice choose_step(const ChooseInput& input);

}  // namespace rekindle::sidecar
