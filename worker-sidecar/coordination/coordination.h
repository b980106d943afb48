// The coordination of one sidecar: start and restore of the job (job_start.h) and breakpoint
// (breakpoint_member.h, breakpoint_coordinator.h) behind one advance(). One instance for the life
// of the sidecar process.
//
// Expected flow: RankConnected for each local rank, PeerConnected, PeerTableSeen -> WelcomeRank ->
// RankRegistered -> offers -> TakeForRank, AttemptBegun. Then triggers (HookCalled, RankDied,
// OrderArrived...) -> HoldRanks -> RankSeen... -> StartWrite, WriteStates -> PublishCheckpoint ->
// AnswerHook, ReleaseRanks or EndRanks.
//
// Guarantees: outputs depend on the events and times alone. Every HookCalled is answered once,
// before its time is over. Every trigger ends in an outcome before its deadline. Messages may be
// lost, doubled and late. The own messages are delivered inside. Assumptions: one thread; `now`
// does not go back; advance(Tick) is called no later than next_wake(). A second later than that,
// everything here was frozen, and a breakpoint did not have that time (P18). Caveats: one copy of
// the layouts of all ranks in every sidecar, where ranks hold different ones.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "common/base/enum_names.h"
#include "common/base/instant.h"
#include "common/contract/sync_request.h"
#include "worker-sidecar/coordination/config.h"
#include "worker-sidecar/coordination/event.h"
#include "worker-sidecar/coordination/output.h"
#include "worker-sidecar/coordination/protection.h"

namespace rekindle::sidecar {

class Coordination {
 public:
  explicit Coordination(CoordinationConfig config);
  ~Coordination();
  Coordination(Coordination&&) noexcept;
  Coordination& operator=(Coordination&&) noexcept;

  CoordinationOutputs advance(const CoordinationEvent& event, Instant now);

  // When time alone changes something; empty: never.
  std::optional<Instant> next_wake() const;

  std::uint32_t attempt() const;  // 0 before AttemptBegun
  bool coordinating() const;      // lowest ordinal that can be reached, or leading a breakpoint
  SidecarPhase phase() const;

  // All ranks of the job that are known to live, for `ranks` of the report.
  std::uint32_t live_ranks() const;

  // The machines' states in words, for the status tool: "job_start=running breakpoint=held
  // term=65536 ...".
  std::string describe() const;

  // Which deaths would cost steps; empty until it is known what every rank holds.
  std::optional<Protection> protection() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace rekindle::sidecar
