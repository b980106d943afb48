#include "worker-sidecar/coordination/coordination.h"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <utility>

#include "common/base/format.h"
#include "worker-sidecar/checkpoint/names.h"
#include "worker-sidecar/coordination/breakpoint_coordinator.h"
#include "worker-sidecar/coordination/breakpoint_member.h"
#include "worker-sidecar/coordination/job_layouts.h"
#include "worker-sidecar/coordination/job_start.h"
#include "worker-sidecar/coordination/local_ranks.h"
#include "worker-sidecar/coordination/membership.h"
#include "worker-sidecar/coordination/periodic_leader.h"
#include "worker-sidecar/coordination/periodic_member.h"
#include "worker-sidecar/coordination/trigger.h"

namespace rekindle::sidecar {

namespace {
// One event leads to a handful of messages to oneself. A machine that answers itself for ever must
// not take the loop thread with it: what is dropped here is sent again by the timers.
constexpr int kSelfMessagesMax = 1000;

// Woken this much later than asked, the process was frozen, or the machine slept.
constexpr Duration kFrozenAfter = std::chrono::seconds(1);
// Then what lies in the sockets is taken in before time is judged.
constexpr Duration kTakeIn = std::chrono::milliseconds(100);
}  // namespace

// Routes events to the machines. Members are in the order in which they refer to each other.
struct Coordination::Parts {
  explicit Parts(CoordinationConfig with) : config(with) {}

  const CoordinationConfig config;
  Membership pods{config};
  LocalRanks ranks{config};
  JobLayouts layouts{config};
  JobStart job_start{config, pods, ranks, layouts};
  BreakpointMember member{config, pods, ranks, layouts};
  BreakpointCoordinator coordinator{config, pods, ranks, layouts, member};
  PeriodicMember periodic_member{config, pods, ranks, layouts};
  PeriodicLeader periodic_leader{config, pods, ranks, layouts};
  FailureHistory failures;
  JobRemembered from_before;  // attempt 0: nothing
  RememberJob remembered;
  std::uint32_t attempt = 0;
  std::uint64_t rank_term = 0;  // highest that a rank brought along
  bool found_held = false;
  std::map<std::uint32_t, Instant> lost;  // pods whose connection is gone while they had work to do
  struct EarlyHook {
    HookCalled called;
    Instant at;
    Instant until(const CoordinationLimits& limits) const {
      const Duration given = called.seconds_left > 0 ? duration_of_seconds(called.seconds_left) : limits.deadline;
      return at + std::min(limits.rejoin_wait, given / 4);
    }
  };
  std::vector<EarlyHook> early_hooks;                               // that came before the attempt was known
  std::map<std::uint32_t, RankRequestedCheckpoint> early_requests;  // the same, by rank
  struct Ending {
    Instant since;
    Instant until;
  };
  std::optional<Ending> ending;  // SIGTERM has come
  bool exit_reported = false;
  std::optional<Instant> advanced;
  std::optional<Instant> judges_from;  // after it was frozen

  void handle(const PeerTableSeen& event, Instant now, CoordinationOutputs& out) {
    pods.see(event);
    if (attempt == 0) job_start.on_change(now, out);
  }

  void handle(const PeerConnected& event, Instant now, CoordinationOutputs& out) {
    pods.connect(event.ordinal);
    lost.erase(event.ordinal);
    if (attempt == 0) {
      job_start.on_change(now, out);
      return;
    }
    if (ranks.all_finished()) out.push_back(SendToPeer{event.ordinal, PodFinishedMessage{config.ordinal}});
    periodic_leader.on_pods_changed();
    job_start.on_pod_met(event.ordinal, out);
    coordinator.on_pod_connected(event.ordinal, now, out);
    member.on_pod_connected(now, out);
  }

  void handle(const PeerLost& event, Instant now, CoordinationOutputs& out) {
    if (!pods.reachable(event.ordinal) || event.ordinal == config.ordinal) return;
    pods.lose(event.ordinal);
    if (attempt == 0) {
      job_start.on_pod_lost(event.ordinal, now, out);
      return;
    }
    periodic_leader.on_pods_changed();
    if (!pods.finished(event.ordinal)) lost.emplace(event.ordinal, now);
    coordinator.on_pod_lost(event.ordinal, now, out);
    member.on_pod_lost(now, out);
  }

  void handle(const OrderArrived& event, Instant now, CoordinationOutputs& out) {
    if (attempt != 0) member.on_order(event, now, out);
  }

  void handle(const RankConnected& event, Instant now, CoordinationOutputs& out) {
    if (!config.hosts(event.rank)) {
      out.push_back(
          RefuseRank{event.rank,
                     {ErrorCode::invalid_input,
                      format("rank {} does not belong to pod {}; check REKINDLE_RANK", event.rank, config.ordinal)}});
      return;
    }
    if (attempt != 0 && event.attempt != attempt) {
      out.push_back(RefuseRank{
          event.rank,
          {ErrorCode::unavailable,
           format("the job lives in attempt {} already; its ranks can only restart together, end the others", attempt),
           Retry::yes}});
      return;
    }
    if (event.attempt == 0 && job_start.closed()) {
      out.push_back(RefuseRank{event.rank, JobStart::closed_error()});
      return;
    }
    LocalRank& rank = ranks.connect(event.rank);
    if (attempt == 0) rank = LocalRank{};
    rank.alive = true;
    rank.word = event.word;
    rank.attempt = event.attempt;
    rank.rebuilds = event.rebuilds;
    rank.rebuild_term = event.rebuild_term;
    if (attempt != 0) return;
    rank_term = std::max(rank_term, event.term);
    found_held = found_held || event.held;
    job_start.on_rank_connected(event.rank, now, out);
  }

  void handle(const RankRegistered& event, Instant now, CoordinationOutputs& out) {
    LocalRank* rank = ranks.find(event.rank);
    if (rank == nullptr) return;
    // Tensors are kept once, by layout.
    rank->registered =
        RegisteredMessage{.layout = {}, .states = event.registered.states, .late = event.registered.late};
    layouts.set(event.rank, event.registered.layout);
    settle_layouts(out);
    if (attempt == 0) job_start.on_change(now, out);
    else periodic_member.on_layout_changed(out);
  }

  void handle(const RankLoaded& event, Instant, CoordinationOutputs& out) { job_start.on_rank_loaded(event, out); }

  void handle(const RankSeen& event, Instant now, CoordinationOutputs& out) {
    LocalRank* rank = ranks.find(event.rank);
    if (rank == nullptr || !rank->alive) return;
    rank->word = event.word;
    rank->shadow_steps = event.shadow_steps;
    if (attempt == 0) return;
    member.on_rank_seen(event.rank, now, out);
    periodic_member.on_rank_seen(event.rank, now, out);
  }

  void handle(const RankDied& event, Instant now, CoordinationOutputs& out) {
    LocalRank* rank = ranks.find(event.rank);
    if (rank == nullptr) {
      if (attempt != 0 || !config.hosts(event.rank)) return;
      if (event.attempt == 0 && job_start.closed()) return;  // it was refused
      LocalRank& known = ranks.connect(event.rank);          // it died while this sidecar was away
      known.word = event.word;
      known.shadow_steps = event.shadow_steps;
      known.attempt = event.attempt;
      known.finished = event.word.phase == RankPhase::finished;
      job_start.on_change(now, out);
      return;
    }
    if (!rank->alive) return;
    rank->alive = false;
    if (rank->finished) return;
    rank->word = event.word;
    rank->shadow_steps = event.shadow_steps;
    if (attempt == 0) {
      job_start.on_change(now, out);
      return;
    }
    periodic_member.on_rank_died(event.rank, out);
    member.on_rank_died(event.rank, now, out);
  }

  void handle(const RankFinished& event, Instant now, CoordinationOutputs& out) {
    LocalRank* rank = ranks.find(event.rank);
    if (rank == nullptr || rank->finished) return;
    rank->finished = true;
    if (attempt == 0) return;
    periodic_member.on_rank_finished(out);
    if (ranks.all_finished()) {
      pods.finish(config.ordinal);
      for (const std::uint32_t pod : pods.reachable_pods())
        out.push_back(SendToPeer{pod, PodFinishedMessage{config.ordinal}});
    }
    member.on_rank_finished(event.rank, now, out);
  }

  void handle(const RankWritten& event, Instant, CoordinationOutputs& out) {
    if (is_periodic_term(event.written.term)) periodic_member.on_rank_written(event, out);
    else member.on_rank_written(event, out);
  }
  void handle(const RankWriteFailed& event, Instant, CoordinationOutputs& out) {
    if (is_periodic_term(event.failed.term)) periodic_member.on_rank_write_failed(event, out);
    else member.on_rank_write_failed(event, out);
  }
  void handle(const RankKept& event, Instant, CoordinationOutputs& out) { periodic_member.on_rank_kept(event, out); }
  void handle(const RankSnapshotted& event, Instant, CoordinationOutputs& out) {
    periodic_member.on_rank_snapshotted(event, out);
  }
  void handle(const RankCollectiveFailed& event, Instant now, CoordinationOutputs& out) {
    if (attempt != 0 && ranks.is_live(event.rank)) member.on_collective_failed(event, now, out);
  }
  void handle(const RankRequestedCheckpoint& event, Instant now, CoordinationOutputs& out) {
    if (!ranks.is_live(event.rank)) return;
    if (attempt != 0) member.on_checkpoint_requested(event, now, out);
    // Of a rank that has found this sidecar again before the others have.
    else early_requests[event.rank] = event;
  }

  void handle(const HookCalled& event, Instant now, CoordinationOutputs& out) {
    if (attempt != 0) {
      member.on_hook(event, now, out);
      return;
    }
    // Ranks that live may be about to find this sidecar again.
    early_hooks.push_back({event, now});
  }
  void handle(const HookGone& event, Instant, CoordinationOutputs&) {
    std::erase_if(early_hooks, [&](const EarlyHook& early) { return early.called.hook == event.hook; });
    member.on_hook_gone(event);
  }

  void handle(const Terminating& event, Instant now, CoordinationOutputs& out) {
    const Duration given = event.seconds_left > 0 ? duration_of_seconds(event.seconds_left) : config.limits.deadline;
    if (!ending) ending = {now, now + given};
    if (attempt != 0) member.on_terminating(event, now, out);
    else job_start.close(now, out);
  }

  // Ranks may live in an attempt that this sidecar, which came back, has not found again yet.
  std::optional<Instant> rejoin_awaited_until() const {
    const bool lives = from_before.attempt != 0 ||
                       std::ranges::any_of(ranks.all(), [](const auto& each) { return each.second.attempt != 0; });
    if (!ending || attempt != 0 || !lives) return std::nullopt;
    // Until one has come, and from then on until the others have.
    return std::min(ending->until, ending->since + 2 * config.limits.rejoin_wait);
  }
  bool may_still_begin(Instant now) const {
    if (attempt != 0 || !job_start.closed()) return attempt == 0;
    const std::optional<Instant> until = rejoin_awaited_until();
    return until && now < *until;
  }

  void handle(const CandidatesListed& event, Instant now, CoordinationOutputs& out) {
    job_start.on_candidates(event, now, out);
  }
  void handle(const CandidateVerified& event, Instant now, CoordinationOutputs& out) {
    job_start.on_verified(event, now, out);
  }
  void handle(const AttemptClaimed& event, Instant now, CoordinationOutputs& out) {
    failures = event.failures;
    job_start.on_claimed(event, now, out);
  }
  void handle(const FolderCreated& event, Instant now, CoordinationOutputs& out) {
    if (is_periodic_term(event.term)) periodic_leader.on_folder_created(event, now, out);
    else coordinator.on_folder_created(event, now, out);
  }
  void handle(const StatesWritten& event, Instant, CoordinationOutputs& out) {
    if (is_periodic_term(event.term)) periodic_member.on_states_written(event, out);
    else member.on_states_written(event, out);
  }
  void handle(const CheckpointPublished& event, Instant now, CoordinationOutputs& out) {
    if (!is_periodic_term(event.term)) return coordinator.on_published(event, now, out);
    if (std::optional<KnownCheckpoint> durable = periodic_leader.on_published(event, now, out))
      coordinator.on_durable(*std::move(durable));
  }
  void handle(const Tick&, Instant, CoordinationOutputs&) {}
  void handle(const JobRemembered& event, Instant, CoordinationOutputs&) { from_before = event; }

  void handle(const PeerMessageArrived& event, Instant now, CoordinationOutputs& out) {
    if (event.from >= config.pods || (event.attempt != 0 && attempt != 0 && event.attempt != attempt)) return;
    std::visit([&](const auto& message) { receive(event.from, message, now, out); }, event.message);
  }

  // --- peers' messages ---

  // the shell's
  void receive(std::uint32_t, const PeerHelloMessage&, Instant, CoordinationOutputs&) {}
  void receive(std::uint32_t from, const ReadyMessage& m, Instant now, CoordinationOutputs& out) {
    job_start.on_ready(from, m, now, out);
  }
  void receive(std::uint32_t from, const BeginMessage& m, Instant, CoordinationOutputs& out) {
    job_start.on_begin(from, m, out);
  }
  void receive(std::uint32_t from, const OfferMessage& m, Instant, CoordinationOutputs& out) {
    job_start.on_offer(from, m, out);
  }
  void receive(std::uint32_t from, const PodLoadedMessage& m, Instant now, CoordinationOutputs& out) {
    job_start.on_pod_loaded(from, m, now, out);
  }
  void receive(std::uint32_t, const TakeMessage& m, Instant, CoordinationOutputs& out) { job_start.on_take(m, out); }
  void receive(std::uint32_t from, const TriggerMessage& m, Instant now, CoordinationOutputs& out) {
    if (in_attempt()) coordinator.on_trigger(from, m, now, out);
  }
  void receive(std::uint32_t from, const CollectMessage& m, Instant now, CoordinationOutputs& out) {
    if (!in_attempt()) return;
    if (from != config.ordinal && m.term > member.highest_term() && !member.settled_durable())
      coordinator.on_outranked(m.term);
    member.on_collect(from, m, now, out);
  }
  void receive(std::uint32_t from, const CollectedMessage& m, Instant now, CoordinationOutputs& out) {
    if (in_attempt()) coordinator.on_collected(from, m, now, out);
  }
  void receive(std::uint32_t, const PermitMessage& m, Instant now, CoordinationOutputs& out) {
    if (in_attempt()) member.on_permit(m, now, out);
  }
  void receive(std::uint32_t from, const AssignMessage& m, Instant now, CoordinationOutputs& out) {
    if (!in_attempt()) return;
    if (is_periodic_term(m.term)) periodic_member.on_assign(from, m, out);
    else member.on_assign(from, m, now, out);
  }
  void receive(std::uint32_t, const PodWrittenMessage& m, Instant now, CoordinationOutputs& out) {
    if (!in_attempt()) return;
    if (is_periodic_term(m.term)) periodic_leader.on_written(m, now, out);
    else coordinator.on_written(m, now, out);
  }
  void receive(std::uint32_t, const CommittedMessage& m, Instant now, CoordinationOutputs& out) {
    if (in_attempt()) take_outcome(m, now, out);
  }
  void receive(std::uint32_t, const FailedMessage& m, Instant now, CoordinationOutputs& out) {
    if (m.term == 0) job_start.on_refused(m, out);
    else if (in_attempt()) take_outcome(m, now, out);
  }
  void receive(std::uint32_t, const PodFinishedMessage& m, Instant, CoordinationOutputs&) {
    pods.finish(m.ordinal);
    lost.erase(m.ordinal);
  }

  void receive(std::uint32_t from, const LayoutsMessage& m, Instant now, CoordinationOutputs& out) {
    if (!in_attempt()) return;
    layouts.adopt(from, m.layouts);
    settle_layouts(out);
    periodic_leader.on_layouts_changed(now);
  }
  void receive(std::uint32_t from, const PeerKeepMessage& m, Instant, CoordinationOutputs& out) {
    if (in_attempt()) periodic_member.on_keep(from, m, out);
  }
  void receive(std::uint32_t, const PeerKeptMessage& m, Instant now, CoordinationOutputs& out) {
    if (in_attempt()) periodic_leader.on_kept(m, now, out);
  }
  void receive(std::uint32_t from, const SnapshotMessage& m, Instant now, CoordinationOutputs& out) {
    if (in_attempt()) periodic_member.on_snapshot(from, m, now, out);
  }
  void receive(std::uint32_t, const PodSnapshottedMessage& m, Instant now, CoordinationOutputs& out) {
    if (in_attempt()) periodic_leader.on_snapshotted(m, now, out);
  }

  bool in_attempt() const { return attempt != 0; }

  void take_outcome(const Outcome& outcome, Instant now, CoordinationOutputs& out) {
    if (member.settled_durable() && !is_durable(outcome)) return;  // what is durable stays so
    if (term_of(outcome) >= member.highest_term() || is_final(outcome)) coordinator.on_outcome(outcome, out);
    member.on_outcome(outcome, now, out);
  }

  // --- after every event ---

  void begin_attempt_if_assembled(Instant now, CoordinationOutputs& out) {
    if (attempt != 0 || !job_start.running()) return;
    attempt = job_start.taken().attempt;
    settle_layouts(out);
    std::optional<KnownCheckpoint> restored;
    if (!job_start.rejoined()) {
      const TakeMessage& taken = job_start.taken();
      restored = KnownCheckpoint{taken.step, taken.path, taken.manifest_hash,
                                 taken.summary.value_or(CheckpointSummary{}).bytes};
    }
    std::optional<ParentPoint> parent;
    if (restored && !restored->path.empty()) {
      if (const auto name = parse_folder_name(restored->path))
        parent = ParentPoint{name->attempt, restored->step, restored->path};
    }
    // Of an attempt that goes on it is not known how far the ranks are: counted from the step
    // where it began, all of its steps would be steps of the last moment.
    const std::optional<std::uint64_t> step =
        job_start.rejoined() ? std::nullopt : std::optional(job_start.taken().step);
    periodic_leader.begin_attempt(attempt, step, std::move(parent), failures, now);
    coordinator.begin_attempt(attempt, std::move(restored));
    member.begin_attempt(rank_term, found_held, now, out);
    for (const auto& [rank, request] : std::exchange(early_requests, {})) {
      if (ranks.is_live(rank)) member.on_checkpoint_requested(request, now, out);
    }
    if (job_start.rejoined()) {
      for (const auto& [number, rank] : ranks.all()) {
        if (!rank.alive && !rank.finished) member.on_rank_died(number, now, out);
      }
    }
    if (ending) member.on_terminating({std::max(0.001, to_seconds(ending->until - now))}, now, out);
  }

  // Of an attempt that goes on the process before this one knew more; what is known now is for the
  // one after it.
  void settle_layouts(CoordinationOutputs& out) {
    if (attempt == 0) return;
    if (from_before.attempt == attempt && !layouts.knows_all()) layouts.learn_if_alike(from_before.job_layout_hash);
    // Until then the next one learns from it at least that ranks live in this attempt.
    const bool said = from_before.attempt == attempt || remembered.attempt == attempt;
    if (!layouts.knows_all() && (said || layouts.job_hash().empty())) return;
    RememberJob now_known{attempt, layouts.job_hash()};
    if (now_known == remembered) return;
    remembered = now_known;
    out.push_back(std::move(now_known));
  }

  void answer_early_hooks(Instant now, CoordinationOutputs& out) {
    for (auto early = early_hooks.begin(); early != early_hooks.end();) {
      if (attempt != 0) {
        HookCalled called = early->called;
        if (called.seconds_left > 0)
          called.seconds_left = std::max(0.001, called.seconds_left - to_seconds(now - early->at));
        member.on_hook(called, now, out);
      } else if (now >= early->until(config.limits) || !may_still_begin(now)) {
        out.push_back(AnswerHook{early->called.hook,
                                 {.outcome = HookOutcome::nothing_to_save,
                                  .milliseconds = static_cast<std::uint64_t>(to_milliseconds(now - early->at)),
                                  .message = "no step has been made since the start"}});
      } else {
        ++early;
        continue;
      }
      early = early_hooks.erase(early);
    }
  }

  void notice_lost_pods(Instant now, CoordinationOutputs& out) {
    for (auto pod = lost.begin(); pod != lost.end();) {
      const bool over = now >= pod->second + config.limits.pod_lost_grace;
      if (!over && !pods.gone_or_stale(pod->first)) {
        ++pod;
        continue;
      }
      if (member.state() != MemberState::settled && !ranks.all_finished()) {
        member.raise({.cause = TriggerCause::pod_lost,
                      .pod = pod->first,
                      .detail = format("pod {} cannot be reached", pod->first),
                      .after = config.after_fault},
                     {}, now, out);
      }
      pod = lost.erase(pod);
    }
  }

  void notice_frozen_time(std::optional<Instant> asked, Instant now) {
    const std::optional<Instant> before = std::exchange(advanced, now);
    if (!asked || !before) return;
    const Duration frozen = now - std::max(*asked, *before);
    if (frozen < kFrozenAfter) return;
    coordinator.pass_over(frozen);
    member.pass_over(frozen);
    for (auto& [pod, since] : lost) since += frozen;
    judges_from = now + kTakeIn;
  }

  void on_time(Instant now, CoordinationOutputs& out) {
    if (judges_from && now < *judges_from) return;
    judges_from.reset();
    answer_early_hooks(now, out);
    if (attempt == 0) {
      job_start.on_wake(now, out);
      return;
    }
    notice_lost_pods(now, out);
    if (const auto wake = coordinator.next_wake(); wake && now >= *wake) coordinator.on_wake(now, out);
    if (const auto wake = member.next_wake(); wake && now >= *wake) member.on_wake(now, out);
    periodic_member.on_wake(now, out);
    periodic_leader.drive(may_lead_periodic(), now, out);
  }

  // Periodic checkpoints are of jobs that train undisturbed.
  bool may_lead_periodic() const {
    if (!pods.all_reachable() || pods.lowest_reachable() != config.ordinal) return false;
    if (member.state() != MemberState::free || coordinator.leading() || ending) return false;
    for (std::uint32_t pod = 0; pod < config.pods; ++pod) {
      if (pods.finished(pod)) return false;
    }
    const auto trains = [](const auto& rank) { return rank.second.alive && !rank.second.finished; };
    return ranks.all_known() && std::all_of(ranks.all().begin(), ranks.all().end(), trains);
  }

  void allow_exit(Instant now, CoordinationOutputs& out) {
    if (!ending || exit_reported) return;
    if (attempt == 0 ? may_still_begin(now) : !member.exit_allowed(coordinator.leading(), now)) return;
    exit_reported = true;
    out.push_back(ExitAllowed{});
  }
};

Coordination::Coordination(CoordinationConfig config) : parts_(std::make_unique<Parts>(config)) {}
Coordination::~Coordination() = default;
Coordination::Coordination(Coordination&&) noexcept = default;
Coordination& Coordination::operator=(Coordination&&) noexcept = default;

CoordinationOutputs Coordination::advance(const CoordinationEvent& event, Instant now) {
  Parts& parts = *parts_;
  parts.notice_frozen_time(next_wake(), now);
  CoordinationOutputs out;
  std::deque<PeerMessage> to_self;
  CoordinationOutputs fresh;
  int self_messages = 0;
  const auto sort_out = [&] {
    for (CoordinationOutput& output : fresh) {
      auto* message = std::get_if<SendToPeer>(&output);
      if (message != nullptr && message->ordinal == parts.config.ordinal)
        to_self.push_back(std::move(message->message));
      else if (message == nullptr || parts.pods.reachable(message->ordinal)) out.push_back(std::move(output));
    }
    fresh.clear();
  };
  const auto deliver = [&] {
    sort_out();
    while (!to_self.empty()) {
      const PeerMessage message = std::move(to_self.front());
      to_self.pop_front();
      if (++self_messages > kSelfMessagesMax) continue;
      parts.handle(PeerMessageArrived{parts.config.ordinal, parts.attempt, message}, now, fresh);
      parts.begin_attempt_if_assembled(now, fresh);
      sort_out();
    }
  };
  std::visit([&](const auto& known) { parts.handle(known, now, fresh); }, event);
  parts.begin_attempt_if_assembled(now, fresh);
  deliver();
  parts.on_time(now, fresh);
  parts.begin_attempt_if_assembled(now, fresh);
  deliver();
  parts.allow_exit(now, out);
  return out;
}

std::optional<Instant> Coordination::next_wake() const {
  const Parts& parts = *parts_;
  std::optional<Instant> wake;
  const auto consider = [&wake](std::optional<Instant> at) {
    if (at) wake = wake ? std::min(*wake, *at) : *at;
  };
  const auto when_judged = [&] {
    if (parts.judges_from && wake) wake = std::max(*wake, *parts.judges_from);
    return wake;
  };
  for (const auto& early : parts.early_hooks) consider(early.until(parts.config.limits));
  if (parts.attempt == 0) {
    consider(parts.job_start.next_wake());
    if (!parts.exit_reported) consider(parts.rejoin_awaited_until());
    return when_judged();
  }
  consider(parts.member.next_wake());
  consider(parts.coordinator.next_wake());
  consider(parts.periodic_member.next_wake());
  consider(parts.periodic_leader.next_wake());
  if (!parts.exit_reported) consider(parts.member.terminating_until());
  for (const auto& [pod, since] : parts.lost) consider(since + parts.config.limits.pod_lost_grace);
  return when_judged();
}

std::uint32_t Coordination::attempt() const { return parts_->attempt; }

bool Coordination::coordinating() const {
  return parts_->coordinator.leading() ||
         (parts_->pods.lowest_reachable() == parts_->config.ordinal && !parts_->member.follows_another());
}

SidecarPhase Coordination::phase() const {
  const Parts& parts = *parts_;
  if (parts.attempt == 0) return parts.job_start.restoring() ? SidecarPhase::restoring : SidecarPhase::waiting;
  if (parts.ranks.all_finished()) return SidecarPhase::finished;
  switch (parts.member.state()) {
    case MemberState::free: return SidecarPhase::training;
    case MemberState::held:
    case MemberState::writing: return SidecarPhase::saving;
    case MemberState::settled: return SidecarPhase::parked;
  }
  return SidecarPhase::training;
}

std::uint32_t Coordination::live_ranks() const {
  const Parts& parts = *parts_;
  auto live = static_cast<std::uint32_t>(parts.ranks.live().size());
  for (const std::uint32_t pod : parts.pods.reachable_pods()) {
    if (pod != parts.config.ordinal && !parts.pods.finished(pod)) live += parts.config.ranks_per_pod;
  }
  return live;
}

std::optional<Protection> Coordination::protection() const {
  const Parts& parts = *parts_;
  if (parts.attempt == 0 || !parts.layouts.knows_all()) return std::nullopt;
  const auto shards = parts.layouts.shards();
  if (!shards || (*shards)->groups.empty()) return std::nullopt;
  std::vector<StepGroup> groups;
  for (std::size_t i = 0; i < (*shards)->groups.size(); ++i)
    groups.push_back({(*shards)->groups[i].ranks, (*shards)->sharers[i]});
  return protection_of(groups, parts.config.snapshots.shadow_every_steps);
}

std::string Coordination::describe() const {
  const Parts& parts = *parts_;
  std::string text = format("phase={} attempt={}", to_string(phase()), parts.attempt);
  if (parts.attempt == 0) {
    return text + format(" job_start={}", to_string(parts.job_start.state()));
  }
  text += format(" member={} coordinator={} term={} leader={}", to_string(parts.member.state()),
                 to_string(parts.coordinator.state()), parts.member.highest_term(), parts.member.leader());
  if (parts.config.snapshots.keeps_anything()) text += format(" periodic={}", to_string(parts.periodic_leader.state()));
  return text;
}

}  // namespace rekindle::sidecar
