// Leads a breakpoint: Collect, Hold, Assign, Write, Commit. Every sidecar has one; it is idle until
// a trigger comes to it.
//
// Expected flow: collecting -> (permits) -> creating -> writing -> publishing -> idle (go_on,
// rebuild) or settled (park, stop). Guarantees: one outcome for every breakpoint it begins unless a
// higher term takes it over; a failure or a loss while writing begins a round with a higher term
// and a new folder; nothing is published but what every assigned writer of one term has reported.
// Assumptions: its own pod's member gets its messages like any other. Caveats: two coordinators
// that do not see each other may both publish; in different folders, each complete.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "worker-sidecar/coordination/breakpoint_member.h"
#include "worker-sidecar/coordination/breakpoint_table.h"
#include "worker-sidecar/coordination/choose_step.h"
#include "worker-sidecar/coordination/config.h"
#include "worker-sidecar/coordination/event.h"
#include "worker-sidecar/coordination/job_layouts.h"
#include "worker-sidecar/coordination/local_ranks.h"
#include "worker-sidecar/coordination/membership.h"
#include "worker-sidecar/coordination/outcome.h"
#include "worker-sidecar/coordination/output.h"
#include "worker-sidecar/coordination/rebuild.h"
#include "worker-sidecar/coordination/trigger.h"
#include "worker-sidecar/coordination/writing_round.h"

namespace rekindle::sidecar {

// A checkpoint that holds what the ranks have while they are at its step.
struct KnownCheckpoint {
  std::uint64_t step = 0;
  std::string path;  // empty: the start, nothing has been learned
  std::string manifest_hash;
  std::uint64_t bytes = 0;

  bool operator==(const KnownCheckpoint&) const = default;
};

class BreakpointCoordinator {
 public:
  BreakpointCoordinator(const CoordinationConfig& config, const Membership& pods, const LocalRanks& ranks,
                        JobLayouts& layouts, const BreakpointMember& member)
      : config_(config), pods_(pods), ranks_(ranks), layouts_(layouts), member_(member), writing_(config) {}

  // `restored` is empty when this sidecar came back and does not know.
  void begin_attempt(std::uint32_t attempt, std::optional<KnownCheckpoint> restored);

  void on_trigger(std::uint32_t from, const TriggerMessage& trigger, Instant now, CoordinationOutputs& out);
  void on_collected(std::uint32_t from, const CollectedMessage& collected, Instant now, CoordinationOutputs& out);
  void on_folder_created(const FolderCreated& created, Instant now, CoordinationOutputs& out);
  void on_written(const PodWrittenMessage& written, Instant now, CoordinationOutputs& out);
  void on_published(const CheckpointPublished& published, Instant now, CoordinationOutputs& out);
  void on_pod_connected(std::uint32_t ordinal, Instant now, CoordinationOutputs& out);
  void on_pod_lost(std::uint32_t ordinal, Instant now, CoordinationOutputs& out);
  // A collect of another coordinator with a higher term, or an outcome that holds for all.
  void on_outranked(std::uint64_t term);
  void on_outcome(const Outcome& outcome, CoordinationOutputs& out);
  // A periodic checkpoint: a breakpoint of the same step is made already.
  void on_durable(KnownCheckpoint checkpoint) { known_ = std::move(checkpoint); }
  void on_wake(Instant now, CoordinationOutputs& out);
  // Nothing here has run for so long: all waits begin later, and the breakpoint ends later unless
  // its end comes from outside (P18).
  void pass_over(Duration frozen);
  std::optional<Instant> next_wake() const;

  CoordinatorState state() const { return state_; }
  bool leading() const { return state_ != CoordinatorState::idle && state_ != CoordinatorState::settled; }
  std::uint64_t term() const { return term_; }
  std::uint32_t live_ranks() const { return live_ranks_; }

 private:
  CoordinatorMove move(CoordinatorInput input) const { return coordinator_move(state_, input); }
  void send(std::uint32_t ordinal, PeerMessage message, CoordinationOutputs& out) const;
  void send_to_all(const PeerMessage& message, CoordinationOutputs& out) const;
  // How long the breakpoint may take in all, frozen time left out.
  Duration given() const { return deadline_ - began_ - frozen_; }
  Duration bound(Duration wait) const;

  void begin(const TimedTrigger& reason, Instant now, CoordinationOutputs& out);
  void merge(std::uint32_t from, const TimedTrigger& reason, Instant now, CoordinationOutputs& out);
  void start_round(std::uint64_t above, Instant now, CoordinationOutputs& out);
  void new_round(const Error& why, Instant now, CoordinationOutputs& out);
  CollectMessage collect_message(Instant now) const;
  // Its answer is here, and nothing has been heard of its loss.
  bool has_answered(std::uint32_t pod) const { return answers_.contains(pod) && pods_.reachable(pod); }
  std::optional<Instant> answers_due() const;
  ChooseInput choose_input(Instant now) const;
  bool may_write(const std::map<std::uint32_t, int>& failed, std::uint32_t rank) const;
  std::string describe_losses() const;
  // From where the next start goes on when this breakpoint fails.
  std::string what_stands() const;
  bool parts_lack_shadows() const;
  void evaluate(Instant now, CoordinationOutputs& out);
  void permit(const Choice& choice, Instant now, CoordinationOutputs& out);
  void take(Choice choice, Instant now, CoordinationOutputs& out);
  void assign(const std::string& path, Instant now, CoordinationOutputs& out);
  bool writers_are_fit() const;
  void check_writers(Instant now, CoordinationOutputs& out);
  void publish_if_written(Instant now, CoordinationOutputs& out);
  Result<Manifest> make_manifest() const;
  void conclude(const KnownCheckpoint& checkpoint, Instant now, CoordinationOutputs& out);
  void fail_breakpoint(Error error, CoordinationOutputs& out);
  void remove_unfinished(CoordinationOutputs& out);
  void finish(Outcome outcome);
  // How the breakpoint ends if it is durable at `step`; empty: it has failed.
  AfterBreakpoint effective_after(std::optional<std::uint64_t> step);
  std::vector<CollectedRank> collected_ranks() const;
  // While nothing speaks against it yet.
  bool may_still_rebuild() const;
  // A rank that has been permitted may be beyond `step` in a moment.
  bool permit_leads_beyond(std::uint64_t step) const;
  void report(SaveState state, std::string message, CoordinationOutputs& out);

  const CoordinationConfig& config_;
  const Membership& pods_;
  const LocalRanks& ranks_;
  JobLayouts& layouts_;
  const BreakpointMember& member_;

  std::uint32_t attempt_ = 0;
  std::optional<KnownCheckpoint> restored_;
  std::optional<KnownCheckpoint> known_;  // newest of this attempt, or what was restored

  CoordinatorState state_ = CoordinatorState::idle;
  std::optional<Outcome> outcome_;  // the newest
  BreakpointRecord record_;         // told about the breakpoint under way or the last
  bool record_open_ = false;        // the record says collecting or writing
  std::set<std::string> ids_;       // the operator's Breakpoints that it answers
  RebuildCount rebuilds_;

  std::map<std::uint32_t, Instant> links_changed_;  // by pod: when it was connected or lost

  // The breakpoint under way.
  TimedTrigger reason_;
  std::set<TriggerCause> causes_;
  Instant began_;
  Instant deadline_;
  Duration frozen_{0};  // since it began, as far as the deadline has moved for it
  std::uint32_t rounds_ = 0;
  // How often writing from their memory, or from their shadows, has failed.
  std::map<std::uint32_t, int> failed_writers_;
  std::map<std::uint32_t, int> failed_shadows_;
  // Whoever has failed so often is not asked again. Raised when nobody else has a copy.
  int writer_tries_max_ = 1;
  std::optional<Error> last_error_;

  // The round under way.
  std::uint64_t term_ = 0;
  std::uint64_t refused_with_ = 0;  // the highest term that a member answered with
  std::optional<Instant> raise_round_at_;
  Instant started_;
  Instant next_resend_;
  // by pod; of a pod that was lost no rank is a source
  std::map<std::uint32_t, std::vector<CollectedRank>> answers_;
  std::optional<Instant> answered_at_;  // all that can be awaited are in
  Instant evaluated_at_;
  std::optional<Instant> permitted_at_;
  std::uint64_t permitted_step_ = 0;
  std::vector<std::uint32_t> permitted_ranks_;
  std::shared_ptr<const JobShards> shards_;
  Choice choice_;
  WritingRound writing_;
  std::optional<Instant> stripes_done_at_;
  std::uint64_t bytes_ = 0;
  std::uint32_t live_ranks_ = 0;
};

}  // namespace rekindle::sidecar
