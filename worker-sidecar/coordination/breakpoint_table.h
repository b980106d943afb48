// The breakpoint machines' states by inputs, one cell each: what a coordinator and a member do. The
// machines have no other decision about the moment; the moves themselves are in
// breakpoint_coordinator.cc and breakpoint_member.cc. Pure.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/base/enum_names.h"

namespace rekindle::sidecar {

enum class CoordinatorState : std::uint8_t {
  idle,        // no breakpoint that we lead
  collecting,  // Collect and Hold: ranks' words come in
  creating,    // step agreed, the folder is being made
  writing,     // Assign and Write
  publishing,  // the manifest is being linked into place
  settled,     // over, and ranks stay held (park) or leave (stop)
};
constexpr auto enum_names(CoordinatorState) {
  return std::to_array<EnumName<CoordinatorState>>({
      {CoordinatorState::idle, "idle"},
      {CoordinatorState::collecting, "collecting"},
      {CoordinatorState::creating, "creating"},
      {CoordinatorState::writing, "writing"},
      {CoordinatorState::publishing, "publishing"},
      {CoordinatorState::settled, "settled"},
  });
}
inline constexpr std::size_t kCoordinatorStates = 6;

enum class CoordinatorInput : std::uint8_t {
  trigger,
  collected,
  folder_created,
  folder_failed,
  written,
  write_failed,
  published,
  publish_failed,
  pod_connected,
  pod_lost,
  outranked,  // another coordinator has a higher term
  refused,    // a member has seen a higher term
  wake,
};
inline constexpr std::size_t kCoordinatorInputs = 13;

enum class CoordinatorMove : std::uint8_t {
  none = 0,       // an empty cell: not allowed, tested
  ignore,         // nothing depends on it in this state
  begin,          // a new breakpoint
  merge,          // into the breakpoint under way
  answer,         // with the outcome that stands, or begin anew if it was a failure
  evaluate,       // can a step be chosen now
  check_writers,  // do all chosen writers still have what they should write
  request,        // the newcomer holds its ranks and reports
  assign,
  gather,
  new_round,  // higher term, other writers, another folder
  new_round_or_fail,
  conclude,
  remember,  // durable, though no breakpoint waits for it any more
  step_down,
  raise_round,  // again with a higher term
  drive,        // deadlines and messages to be sent again
};

CoordinatorMove coordinator_move(CoordinatorState state, CoordinatorInput input);

enum class MemberState : std::uint8_t {
  free,     // gates open
  held,     // gates closed, words reported
  writing,  // stripes under way, or written and reported
  settled,  // outcome known; parked, or told to stop
};
constexpr auto enum_names(MemberState) {
  return std::to_array<EnumName<MemberState>>({
      {MemberState::free, "free"},
      {MemberState::held, "held"},
      {MemberState::writing, "writing"},
      {MemberState::settled, "settled"},
  });
}
inline constexpr std::size_t kMemberStates = 4;

enum class MemberInput : std::uint8_t {
  collect,
  permit,
  assign,
  outcome,
  rank_seen,
  rank_died,
  rank_written,
  states_written,
  wake,
};
inline constexpr std::size_t kMemberInputs = 9;

enum class MemberMove : std::uint8_t {
  none = 0,
  ignore,
  hold,
  send_outcome,  // to a coordinator that does not know it
  permit,
  write,
  adopt,
  report,
  raise,  // a trigger
  raise_and_report,
  end_ranks,
  gather,
  query,  // what holds us; send own triggers again
};

MemberMove member_move(MemberState state, MemberInput input);

}  // namespace rekindle::sidecar
