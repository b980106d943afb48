#include "worker-sidecar/coordination/breakpoint_member.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "common/base/format.h"
#include "common/contract/exit_codes.h"
#include "worker-sidecar/coordination/message_parts.h"

namespace rekindle::sidecar {
namespace {

constexpr std::size_t kOrdersRemembered = 256;

// Held without a message for this many resend intervals: query the coordinator.
constexpr int kSilenceIntervals = 4;

HookDoneMessage done_of(const Outcome& outcome, Duration waited) {
  HookDoneMessage done{.milliseconds = static_cast<std::uint64_t>(std::max(0.0, to_milliseconds(waited)))};
  if (const auto* committed = std::get_if<CommittedMessage>(&outcome)) {
    done.step = committed->step;
    done.path = committed->path;
    done.outcome = committed->path.empty() ? HookOutcome::nothing_to_save : HookOutcome::durable;
    done.message = committed->path.empty()
                       ? "there is nothing to save: no step has been made since the start, or every rank has finished"
                       : format("step {} is durable", committed->step);
  } else {
    done.outcome = HookOutcome::failed;
    done.message = std::get<FailedMessage>(outcome).error.message;
  }
  return done;
}

}  // namespace

void BreakpointMember::begin_attempt(std::uint64_t term, bool held, Instant now, CoordinationOutputs& out) {
  highest_term_ = std::max(highest_term_, term);
  resend_at_ = now + config_.limits.resend;
  if (!held) return;
  // A coordinator that still leads this hold, or knows how it ended, will answer; else a new
  // breakpoint finds out.
  state_ = MemberState::held;
  give_up_ = now + config_.limits.deadline + config_.limits.outcome_grace;
  out.push_back(HoldRanks{});
  raise({.cause = TriggerCause::sidecar,
         .pod = config_.ordinal,
         .detail = "the sidecar was restarted and found its ranks held"},
        {}, now, out);
}

void BreakpointMember::send(std::uint32_t ordinal, PeerMessage message, CoordinationOutputs& out) const {
  out.push_back(SendToPeer{ordinal, std::move(message)});
}

std::uint32_t BreakpointMember::leader() const {
  if (is_held()) {
    const std::uint32_t leading = coordinator_of(highest_term_);
    if (highest_term_ != 0 && pods_.reachable(leading)) return leading;
  }
  return pods_.lowest_reachable();
}

// All reasons of this pod in one, but for failed collectives: an order to rebuild may have answered
// those while they travel, and then they count no more. Those of a coordinator that is lost as
// well, since the next coordinator must know them. With none it asks how the breakpoint ended.
std::vector<TimedTrigger> BreakpointMember::reasons() const {
  const bool orphaned = is_held() && highest_term_ != 0 && !pods_.reachable(coordinator_of(highest_term_));
  std::optional<TimedTrigger> failed;
  std::optional<TimedTrigger> other;
  const auto add = [&](const TimedTrigger& trigger) {
    std::optional<TimedTrigger>& into = trigger.trigger.cause == TriggerCause::collective_failed ? failed : other;
    if (into) merge_trigger(*into, trigger);
    else into = trigger;
  };
  if (orphaned) add(reason_);
  for (const TimedTrigger& trigger : pending_) add(trigger);
  if (!failed && !other)
    other = {
        .trigger = {.cause = TriggerCause::sidecar, .pod = config_.ordinal, .detail = "asks how the breakpoint ended"}};
  std::vector<TimedTrigger> all;
  for (std::optional<TimedTrigger>& reason : {std::ref(failed), std::ref(other)}) {
    if (!reason) continue;
    reason->trigger.term = is_held() ? highest_term_ : 0;
    all.push_back(*std::move(reason));
  }
  return all;
}

// --- own reasons ---

void BreakpointMember::raise(TriggerMessage trigger, std::optional<Instant> until, Instant now,
                             CoordinationOutputs& out) {
  pending_.push_back({.trigger = std::move(trigger), .until = until});
  send_trigger(now, out);
}

void BreakpointMember::send_trigger(Instant now, CoordinationOutputs& out) {
  resend_at_ = now + config_.limits.resend;
  for (const TimedTrigger& reason : reasons()) send(leader(), message_of(reason, now), out);
}

void BreakpointMember::on_hook(const HookCalled& called, Instant now, CoordinationOutputs& out) {
  const Duration given = called.seconds_left > 0 ? duration_of_seconds(called.seconds_left) : config_.limits.deadline;
  // Very short times are split rather than refused.
  const Duration margin = std::min(config_.limits.hook_margin, given / 4);
  hook_called_ = true;
  if (settled_durable()) {
    out.push_back(AnswerHook{called.hook, done_of(*outcome_, Duration{0})});
    end_ranks_if_ending(now, out);
    return;
  }
  if (ranks_.all_finished()) {
    out.push_back(AnswerHook{
        called.hook, {.outcome = HookOutcome::nothing_to_save, .message = "every rank of this pod has finished"}});
    return;
  }
  hooks_[called.hook] = {now, now + given - margin / 2};
  raise(
      {.cause = TriggerCause::hook, .pod = config_.ordinal, .detail = called.container, .after = AfterBreakpoint::park},
      now + given - margin, now, out);
}

void BreakpointMember::on_hook_gone(const HookGone& gone) { hooks_.erase(gone.hook); }

void BreakpointMember::on_terminating(const Terminating& terminating, Instant now, CoordinationOutputs& out) {
  const Duration given =
      terminating.seconds_left > 0 ? duration_of_seconds(terminating.seconds_left) : config_.limits.deadline;
  terminating_until_ = now + given;
  ending_ = true;
  if (state_ == MemberState::settled) {
    end_ranks_if_ending(now, out);
  } else if (!ranks_.live().empty()) {
    raise({.cause = TriggerCause::terminated,
           .pod = config_.ordinal,
           .detail = "the sidecar was told to end while its ranks live",
           .after = AfterBreakpoint::park},
          now + given - std::min(config_.limits.hook_margin, given / 4), now, out);
  }
}

void BreakpointMember::on_order(const OrderArrived& order, Instant now, CoordinationOutputs& out) {
  if (orders_.contains(order.breakpoint)) return;
  if (orders_.size() >= kOrdersRemembered) orders_.erase(orders_.begin());
  orders_.insert(order.breakpoint);
  const auto until =
      order.seconds_left > 0 ? std::optional(now + duration_of_seconds(order.seconds_left)) : std::nullopt;
  raise({.cause = TriggerCause::operator_order,
         .pod = config_.ordinal,
         .detail = order.detail,
         .after = order.after,
         .breakpoint = order.breakpoint},
        until, now, out);
}

void BreakpointMember::on_checkpoint_requested(const RankRequestedCheckpoint& request, Instant now,
                                               CoordinationOutputs& out) {
  if (request.step) {
    // Where every rank asks at the same step, the first ones' breakpoint is the others' as well.
    std::optional<CheckpointDoneMessage> done;
    if (outcome_ && is_durable(*outcome_)) done = answer_of(*outcome_, *request.step);
    if (done && (done->outcome == HookOutcome::durable || state_ == MemberState::settled)) {
      out.push_back(AnswerCheckpoint{request.rank, *std::move(done)});
      return;
    }
    requests_.add(request.rank, *request.step, now + config_.limits.deadline + config_.limits.outcome_grace);
  }
  if (state_ == MemberState::settled) return requests_.settle(*outcome_, out);
  if (durable_at_ && now - *durable_at_ < config_.limits.minimum_interval)  // P18
    return requests_.refuse(request.rank, "the last checkpoint became durable a moment ago; ask again later", out);
  raise({.cause = TriggerCause::user,
         .pod = config_.ordinal,
         .detail = format("rank {} asked for a checkpoint", request.rank)},
        {}, now, out);
}

void BreakpointMember::on_collective_failed(const RankCollectiveFailed& failed, Instant now, CoordinationOutputs& out) {
  if (state_ == MemberState::settled) return;  // a consequence of what has been saved already
  // It failed before this rank was told to rebuild, which is its answer.
  const LocalRank* const rank = ranks_.find(failed.rank);
  if (rank != nullptr && failed.failed.rebuilt < rank->rebuild_term) return;
  raise({.cause = TriggerCause::collective_failed,
         .pod = config_.ordinal,
         .detail = format("rank {}: {}", failed.rank, failed.failed.why),
         .after = config_.after_fault,
         .rebuilt = failed.failed.rebuilt},
        {}, now, out);
}

// --- ranks ---

void BreakpointMember::report(bool again, CoordinationOutputs& out) {
  if (!is_held()) return;
  for (const std::uint32_t rank : ranks_.live()) {
    if (!seen_.contains(rank)) return;
  }
  std::vector<CollectedRank> ranks = ranks_.collected();
  if (has_reported_ && ranks == reported_ && !again) return;
  has_reported_ = true;
  reported_ = ranks;
  CollectedMessage answer{.term = highest_term_, .ordinal = config_.ordinal, .ranks = {}};
  if (coordinator_job_layout_ != layouts_.job_hash()) {
    auto layouts = one_layout_each(layouts_.list(0, config_.world_size(), coordinator_layouts_));
    for (std::size_t i = 0; i + 1 < layouts.size(); ++i) {
      answer.layouts = std::move(layouts[i]);
      answer.more = true;
      send(coordinator_of(highest_term_), answer, out);
    }
    answer.layouts = std::move(layouts.back());
    answer.more = false;
  }
  answer.ranks = std::move(ranks);
  send(coordinator_of(highest_term_), std::move(answer), out);
}

void BreakpointMember::on_rank_seen(std::uint32_t rank, Instant, CoordinationOutputs& out) {
  seen_.insert(rank);
  if (move(MemberInput::rank_seen) == MemberMove::report) report(false, out);
}

void BreakpointMember::on_rank_died(std::uint32_t rank, Instant now, CoordinationOutputs& out) {
  ending_ = true;
  requests_.forget(rank);
  const MemberMove what = move(MemberInput::rank_died);
  if (what == MemberMove::end_ranks) {
    end_ranks_if_ending(now, out);
    return;
  }
  if (what == MemberMove::raise_and_report) {
    const auto writing = writing_ranks_.find(rank);
    if (state_ == MemberState::writing && writing != writing_ranks_.end() && writing->second == WriteSource::memory) {
      fail_write(rank, {ErrorCode::unavailable, format("rank {} ended while it wrote", rank), Retry::yes}, out);
    }
    report(false, out);
  }
  raise({.cause = TriggerCause::rank_died,
         .pod = config_.ordinal,
         .detail = format("rank {} ended without rk_close", rank),
         .after = config_.after_fault},
        {}, now, out);
}

void BreakpointMember::on_rank_finished(std::uint32_t rank, Instant now, CoordinationOutputs& out) {
  requests_.forget(rank);
  if (ranks_.all_finished() && !hooks_.empty() && state_ == MemberState::free) {
    answer_hooks(CommittedMessage{.term = highest_term_, .after = AfterBreakpoint::park}, now, out);
  }
  report(false, out);
}

// --- Collect, Hold, Write ---

void BreakpointMember::on_collect(std::uint32_t from, const CollectMessage& collect, Instant now,
                                  CoordinationOutputs& out) {
  if (move(MemberInput::collect) == MemberMove::send_outcome && outcome_ &&
      (is_durable(*outcome_) || collect.term <= highest_term_)) {
    send(from, message_of(*outcome_), out);
    return;
  }
  if (collect.term < highest_term_) {  // P7
    send(from, CollectedMessage{highest_term_, config_.ordinal, {}}, out);
    return;
  }
  reason_ = arrive(collect.trigger, now);
  coordinator_job_layout_ = collect.job_layout_hash;
  coordinator_layouts_ = collect.layout_hashes;
  give_up_ = (reason_.until ? *reason_.until : now + config_.limits.deadline) + config_.limits.outcome_grace;
  resend_at_ = now + config_.limits.resend * (pending_.empty() ? kSilenceIntervals : 1);
  if (is_held() && collect.term == highest_term_) {
    report(true, out);
    return;
  }
  highest_term_ = collect.term;
  state_ = MemberState::held;
  seen_.clear();
  has_reported_ = false;
  writing_ranks_.clear();
  out.push_back(HoldRanks{});
  report(false, out);  // at once when no rank lives
}

void BreakpointMember::on_permit(const PermitMessage& permit, Instant now, CoordinationOutputs& out) {
  if (move(MemberInput::permit) != MemberMove::permit || permit.term != highest_term_) return;
  resend_at_ = now + config_.limits.resend * kSilenceIntervals;
  PermitUpdate local{.step = permit.step};
  for (const std::uint32_t rank : permit.ranks) {
    if (ranks_.is_live(rank)) local.ranks.push_back(rank);
  }
  if (!local.ranks.empty()) out.push_back(std::move(local));
}

void BreakpointMember::on_assign(std::uint32_t from, const AssignMessage& part, Instant now, CoordinationOutputs& out) {
  if (move(MemberInput::assign) != MemberMove::write) return;
  if (part.term < highest_term_) {
    send(from, CollectedMessage{highest_term_, config_.ordinal, {}}, out);
    return;
  }
  if (part.term != highest_term_) return;  // its collect was lost and comes again
  resend_at_ = now + config_.limits.resend * kSilenceIntervals;
  if (state_ == MemberState::writing) {
    if (written_sent_) send_written(out);
    return;
  }
  const std::optional<AssignMessage> whole = assign_parts_.add(part);
  if (!whole) return;
  const AssignMessage& assign = *whole;
  state_ = MemberState::writing;
  written_ = {.term = assign.term, .ordinal = config_.ordinal, .ok = true};
  written_sent_ = false;
  writing_ranks_.clear();
  // No permit outlives the choice of the step: who is written from may not move.
  out.push_back(PermitUpdate{ranks_.live(), 0});
  for (const WriterPlan& writer : assign.writers) {
    if (!config_.hosts(writer.rank)) continue;
    const WriteMessage write{
        .term = assign.term, .step = assign.step, .path = assign.path, .file = writer.file, .pieces = writer.pieces};
    if (writer.source == WriteSource::shadow) {
      writing_ranks_[writer.rank] = WriteSource::shadow;
      out.push_back(WriteFromShadow{writer.rank, write});
      continue;
    }
    if (!ranks_.is_live(writer.rank)) {
      fail_write(writer.rank,
                 {ErrorCode::unavailable, format("rank {} ended before it wrote", writer.rank), Retry::yes}, out);
      return;
    }
    writing_ranks_[writer.rank] = WriteSource::memory;
    out.push_back(StartWrite{writer.rank, write});
  }
  states_awaited_ = ranks_.has_states();
  if (states_awaited_) {
    WriteStates states{.term = assign.term, .step = assign.step, .path = assign.path};
    for (const auto& [number, rank] : ranks_.all()) states.ranks.push_back(number);
    out.push_back(std::move(states));
  }
  finish_write_if_done(out);
}

void BreakpointMember::send_written(CoordinationOutputs& out) {
  written_sent_ = true;
  send_in_parts(coordinator_of(written_.term), written_, out);
}

void BreakpointMember::finish_write_if_done(CoordinationOutputs& out) {
  if (writing_ranks_.empty() && !states_awaited_ && !written_sent_) send_written(out);
}

void BreakpointMember::fail_write(std::uint32_t rank, Error error, CoordinationOutputs& out) {
  if (written_sent_ && !written_.ok) return;
  written_.ok = false;
  written_.error = std::move(error);
  written_.failed_ranks = {rank};
  writing_ranks_.erase(rank);
  send_written(out);
}

void BreakpointMember::on_rank_written(const RankWritten& written, CoordinationOutputs& out) {
  if (move(MemberInput::rank_written) != MemberMove::gather || written.written.term != highest_term_) return;
  if (writing_ranks_.erase(written.rank) == 0) return;
  written_.ranks.push_back({written.rank, written.written.written});
  finish_write_if_done(out);
}

void BreakpointMember::on_rank_write_failed(const RankWriteFailed& failed, CoordinationOutputs& out) {
  if (move(MemberInput::rank_written) != MemberMove::gather || failed.failed.term != highest_term_) return;
  if (!writing_ranks_.contains(failed.rank)) return;
  fail_write(failed.rank, with_context(failed.failed.error, format("rank {} could not write its part", failed.rank)),
             out);
}

void BreakpointMember::on_states_written(const StatesWritten& written, CoordinationOutputs& out) {
  if (move(MemberInput::states_written) != MemberMove::gather || written.term != highest_term_ || !states_awaited_)
    return;
  states_awaited_ = false;
  if (written.written) {
    written_.states_file = written.written->file;
    written_.states = written.written->states;
    written_.inexact_ranks = written.written->missing;
  } else {
    // The tensors can still be complete: the step counts more than the small state of these ranks.
    for (const auto& [number, rank] : ranks_.all()) written_.inexact_ranks.push_back(number);
  }
  finish_write_if_done(out);
}

// --- outcome ---

void BreakpointMember::on_outcome(const Outcome& outcome, Instant now, CoordinationOutputs& out) {
  if (move(MemberInput::outcome) != MemberMove::adopt) return;
  // A rank that is parked or stopped made no step since, so such an outcome holds whatever its
  // term.
  if (term_of(outcome) < highest_term_ && !is_final(outcome)) return;
  if (state_ == MemberState::settled && outcome_) {
    const bool stronger = after_of(outcome) > after_of(*outcome_);
    const bool better = is_durable(outcome) && !is_durable(*outcome_);
    if (!stronger && !better && (is_durable(*outcome_) || term_of(outcome) <= term_of(*outcome_))) {
      if (is_durable(*outcome_)) {
        std::erase_if(pending_, [&](const TimedTrigger& t) { return t.trigger.after <= after_of(*outcome_); });
      }
      return;
    }
    if (is_durable(*outcome_) && !is_durable(outcome)) return;
  }
  adopt(outcome, now, out);
}

void BreakpointMember::adopt(const Outcome& outcome, Instant now, CoordinationOutputs& out) {
  highest_term_ = std::max(highest_term_, term_of(outcome));
  outcome_ = outcome;
  if (is_durable(outcome)) durable_at_ = now;
  const AfterBreakpoint after = after_of(outcome);
  switch (after) {
    case AfterBreakpoint::go_on:
      if (is_held()) out.push_back(ReleaseRanks{GateOrder::go_on});
      state_ = MemberState::free;
      break;
    case AfterBreakpoint::rebuild:
      order_rebuild(std::get<CommittedMessage>(outcome), out);
      state_ = MemberState::free;
      break;
    case AfterBreakpoint::stop:
      out.push_back(ReleaseRanks{GateOrder::stop});
      state_ = MemberState::settled;
      break;
    case AfterBreakpoint::park:
      if (state_ == MemberState::free) out.push_back(HoldRanks{});
      state_ = MemberState::settled;
      break;
  }
  writing_ranks_.clear();
  std::erase_if(pending_, [&](const TimedTrigger& trigger) { return trigger.trigger.after <= after; });
  if (!goes_on(after)) {
    answer_hooks(outcome, now, out);
    end_ranks_if_ending(now, out);
  }
  requests_.settle(outcome, out);
  if (!requests_.empty()) {
    pending_.push_back({.trigger = {.cause = TriggerCause::user,
                                    .pod = config_.ordinal,
                                    .detail = "a rank asked for a checkpoint of a newer step"},
                        .until = {}});
  }
  if (!pending_.empty()) send_trigger(now, out);
}

// Of all ranks of this pod, held or not: those that were not held when this came have communicators
// that the others abort.
void BreakpointMember::order_rebuild(const CommittedMessage& committed, CoordinationOutputs& out) {
  for (const std::uint32_t rank : ranks_.live()) ranks_.find(rank)->rebuild_term = committed.term;
  out.push_back(ReleaseRanks{GateOrder::rebuild,
                             {.term = committed.term,
                              .step = committed.step,
                              .path = committed.path,
                              .manifest_hash = committed.manifest_hash}});
  // What has failed until now did so on communicators that no rank uses any more.
  std::erase_if(pending_, [&](const TimedTrigger& trigger) {
    return trigger.trigger.cause == TriggerCause::collective_failed && trigger.trigger.rebuilt < committed.term;
  });
}

void BreakpointMember::answer_hooks(const Outcome& outcome, Instant now, CoordinationOutputs& out) {
  for (const auto& [id, hook] : hooks_) out.push_back(AnswerHook{id, done_of(outcome, now - hook.called)});
  hooks_.clear();
  std::erase_if(pending_, [](const TimedTrigger& trigger) { return trigger.trigger.cause == TriggerCause::hook; });
}

bool BreakpointMember::has_ranks_to_end() const {
  return (ending_ || hook_called_) && !ended_ranks_ && state_ == MemberState::settled &&
         after_of(*outcome_) == AfterBreakpoint::park && !ranks_.live().empty();
}

void BreakpointMember::end_ranks_if_ending(Instant now, CoordinationOutputs& out) {
  if (!has_ranks_to_end()) return;
  if (!ending_) {
    if (!end_ranks_at_) end_ranks_at_ = now + config_.limits.stop_wait;
    if (now < *end_ranks_at_) return;
  }
  std::vector<std::uint32_t> live = ranks_.live();
  ended_ranks_ = true;
  out.push_back(EndRanks{std::move(live), kStoppedExitCode});
}

// --- time ---

void BreakpointMember::on_pod_connected(Instant now, CoordinationOutputs& out) {
  if (!pending_.empty()) send_trigger(now, out);
}

void BreakpointMember::on_pod_lost(Instant now, CoordinationOutputs& out) {
  // The pod that leads now, or has to take over, gets our triggers at once.
  if (is_held() && !pods_.reachable(coordinator_of(highest_term_))) send_trigger(now, out);
}

void BreakpointMember::give_up_overdue_hooks(Instant now, CoordinationOutputs& out) {
  for (auto hook = hooks_.begin(); hook != hooks_.end();) {
    if (now < hook->second.until) {
      ++hook;
      continue;
    }
    const FailedMessage failed{
        .error = {ErrorCode::deadline_exceeded,
                  "the time of this hook is over and the checkpoint is not durable yet; the newest complete one "
                  "stands. Raise the job's deadline or give the volume more bandwidth"}};
    out.push_back(AnswerHook{hook->first, done_of(failed, now - hook->second.called)});
    hook = hooks_.erase(hook);
  }
}

void BreakpointMember::on_wake(Instant now, CoordinationOutputs& out) {
  give_up_overdue_hooks(now, out);
  requests_.give_up_overdue(now, out);
  if (is_held() && now >= give_up_) {
    adopt(
        FailedMessage{.term = highest_term_,
                      .error = {ErrorCode::deadline_exceeded,
                                format("no sidecar told how the breakpoint ended; look at the log of pod {}'s sidecar",
                                       coordinator_of(highest_term_))},
                      .after = reason_.trigger.after},
        now, out);
  }
  if ((is_held() || !pending_.empty()) && now >= resend_at_) {
    send_trigger(now, out);
    if (pending_.empty()) resend_at_ = now + config_.limits.resend * kSilenceIntervals;
  }
  end_ranks_if_ending(now, out);
}

void BreakpointMember::pass_over(Duration frozen) {
  give_up_ += frozen;
  requests_.pass_over(frozen);
}

std::optional<Instant> BreakpointMember::next_wake() const {
  std::optional<Instant> wake;
  const auto consider = [&wake](Instant at) { wake = wake ? std::min(*wake, at) : at; };
  if (is_held()) consider(give_up_);
  if (is_held() || !pending_.empty()) consider(resend_at_);
  for (const auto& [id, hook] : hooks_) consider(hook.until);
  if (const std::optional<Instant> overdue = requests_.next_wake()) consider(*overdue);
  if (end_ranks_at_ && has_ranks_to_end()) consider(*end_ranks_at_);
  return wake;
}

bool BreakpointMember::exit_allowed(bool leading, Instant now) const {
  if (!terminating_until_) return false;
  if (now >= *terminating_until_) return true;
  if (leading || is_held() || has_pending()) return false;
  return state_ == MemberState::settled || ranks_.live().empty();
}

}  // namespace rekindle::sidecar
