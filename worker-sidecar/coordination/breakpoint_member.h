// One pod's part in a breakpoint: holds its ranks, reports their words, has them write, and carries
// out the outcome; and its own reasons for one: hooks, deaths, orders, which it sends to the
// coordinator until an outcome covers them; and the answers to those of its ranks that asked.
//
// Guarantees: obeys no term lower than the highest it has seen (P7). Ranks that were reported pass
// no gate until an outcome, except by permit (P4). Each hook is answered once, before its time is
// over. Held ranks are never forgotten: a silent coordinator is queried, and given up after the
// deadline. Assumptions: the shell reports each live rank with RankSeen after HoldRanks.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "worker-sidecar/coordination/breakpoint_table.h"
#include "worker-sidecar/coordination/checkpoint_requests.h"
#include "worker-sidecar/coordination/config.h"
#include "worker-sidecar/coordination/event.h"
#include "worker-sidecar/coordination/job_layouts.h"
#include "worker-sidecar/coordination/local_ranks.h"
#include "worker-sidecar/coordination/membership.h"
#include "worker-sidecar/coordination/message_parts.h"
#include "worker-sidecar/coordination/outcome.h"
#include "worker-sidecar/coordination/output.h"
#include "worker-sidecar/coordination/trigger.h"

namespace rekindle::sidecar {

class BreakpointMember {
 public:
  BreakpointMember(const CoordinationConfig& config, const Membership& pods, LocalRanks& ranks,
                   const JobLayouts& layouts)
      : config_(config), pods_(pods), ranks_(ranks), layouts_(layouts) {}

  // The ranks live in an attempt now. held: they were when this sidecar came back, and no
  // coordinator has said why.
  void begin_attempt(std::uint64_t term, bool held, Instant now, CoordinationOutputs& out);

  void on_hook(const HookCalled& called, Instant now, CoordinationOutputs& out);
  void on_hook_gone(const HookGone& gone);
  void on_terminating(const Terminating& terminating, Instant now, CoordinationOutputs& out);
  // trigger.term and seconds_left are filled in when it is sent.
  void raise(TriggerMessage trigger, std::optional<Instant> until, Instant now, CoordinationOutputs& out);
  void on_order(const OrderArrived& order, Instant now, CoordinationOutputs& out);
  void on_checkpoint_requested(const RankRequestedCheckpoint& request, Instant now, CoordinationOutputs& out);
  void on_collective_failed(const RankCollectiveFailed& failed, Instant now, CoordinationOutputs& out);

  void on_rank_seen(std::uint32_t rank, Instant now, CoordinationOutputs& out);
  void on_rank_died(std::uint32_t rank, Instant now, CoordinationOutputs& out);
  void on_rank_finished(std::uint32_t rank, Instant now, CoordinationOutputs& out);
  void on_rank_written(const RankWritten& written, CoordinationOutputs& out);
  void on_rank_write_failed(const RankWriteFailed& failed, CoordinationOutputs& out);
  void on_states_written(const StatesWritten& written, CoordinationOutputs& out);

  void on_collect(std::uint32_t from, const CollectMessage& collect, Instant now, CoordinationOutputs& out);
  void on_permit(const PermitMessage& permit, Instant now, CoordinationOutputs& out);
  void on_assign(std::uint32_t from, const AssignMessage& part, Instant now, CoordinationOutputs& out);
  void on_outcome(const Outcome& outcome, Instant now, CoordinationOutputs& out);
  void on_pod_connected(Instant now, CoordinationOutputs& out);
  void on_pod_lost(Instant now, CoordinationOutputs& out);

  void on_wake(Instant now, CoordinationOutputs& out);
  // Nothing here has run for so long. What hooks wait for has passed all the same.
  void pass_over(Duration frozen);
  std::optional<Instant> next_wake() const;

  MemberState state() const { return state_; }
  std::uint64_t highest_term() const { return highest_term_; }
  const std::optional<Outcome>& outcome() const { return outcome_; }
  bool settled_durable() const { return state_ == MemberState::settled && outcome_ && is_durable(*outcome_); }
  bool has_pending() const { return !pending_.empty() || !hooks_.empty(); }

  // Who leads: the coordinator of the hold, else the lowest that can be reached.
  std::uint32_t leader() const;
  // Another pod leads the breakpoint that holds our ranks, and can be reached.
  bool follows_another() const { return is_held() && leader() != config_.ordinal; }
  // The shell may end the sidecar: SIGTERM has come and nothing here is waited for.
  bool exit_allowed(bool leading, Instant now) const;
  std::optional<Instant> terminating_until() const { return terminating_until_; }

 private:
  struct Hook {
    Instant called;
    Instant until;
  };

  bool is_held() const { return state_ == MemberState::held || state_ == MemberState::writing; }
  MemberMove move(MemberInput input) const { return member_move(state_, input); }
  void send(std::uint32_t ordinal, PeerMessage message, CoordinationOutputs& out) const;
  void report(bool again, CoordinationOutputs& out);
  std::vector<TimedTrigger> reasons() const;
  void send_trigger(Instant now, CoordinationOutputs& out);
  void send_written(CoordinationOutputs& out);
  void fail_write(std::uint32_t rank, Error error, CoordinationOutputs& out);
  void finish_write_if_done(CoordinationOutputs& out);
  void adopt(const Outcome& outcome, Instant now, CoordinationOutputs& out);
  void order_rebuild(const CommittedMessage& committed, CoordinationOutputs& out);
  void answer_hooks(const Outcome& outcome, Instant now, CoordinationOutputs& out);
  bool has_ranks_to_end() const;
  void end_ranks_if_ending(Instant now, CoordinationOutputs& out);
  void give_up_overdue_hooks(Instant now, CoordinationOutputs& out);

  const CoordinationConfig& config_;
  const Membership& pods_;
  LocalRanks& ranks_;
  const JobLayouts& layouts_;

  MemberState state_ = MemberState::free;
  std::uint64_t highest_term_ = 0;  // the term of the hold while state_ is held or writing
  TimedTrigger reason_;             // of the collect that holds us
  Instant give_up_;                 // held and still no outcome: the outcome is lost
  std::set<std::uint32_t> seen_;    // ranks whose word came in since the hold
  std::vector<CollectedRank> reported_;
  bool has_reported_ = false;
  // What the coordinator knew of the ranks' layouts when it asked.
  std::string coordinator_job_layout_;
  std::vector<std::string> coordinator_layouts_;

  AssignParts assign_parts_;
  std::map<std::uint32_t, WriteSource> writing_ranks_;  // whose stripe is awaited
  bool states_awaited_ = false;
  PodWrittenMessage written_;
  bool written_sent_ = false;

  std::optional<Outcome> outcome_;  // the newest
  std::optional<Instant> durable_at_;
  std::vector<TimedTrigger> pending_;
  std::map<std::uint64_t, Hook> hooks_;
  CheckpointRequests requests_;
  std::set<std::string> orders_;
  Instant resend_at_;
  bool ending_ = false;       // the pod is: a rank died, SIGTERM came
  bool hook_called_ = false;  // its containers are about to be stopped
  std::optional<Instant> end_ranks_at_;
  bool ended_ranks_ = false;
  std::optional<Instant> terminating_until_;
};

}  // namespace rekindle::sidecar
