// How a breakpoint ends, and who is told: the last part of breakpoint_coordinator.h.
#include <algorithm>

#include "worker-sidecar/coordination/breakpoint_coordinator.h"

namespace rekindle::sidecar {

std::vector<CollectedRank> BreakpointCoordinator::collected_ranks() const {
  std::vector<CollectedRank> ranks;
  for (const auto& [pod, answer] : answers_) ranks.insert(ranks.end(), answer.begin(), answer.end());
  return ranks;
}

bool BreakpointCoordinator::may_still_rebuild() const {
  if (!causes_.contains(TriggerCause::collective_failed) || !only_communicators_failed(causes_)) return false;
  std::vector<CollectedRank> ranks = ranks_.collected();
  for (CollectedRank& rank : collected_ranks()) ranks.push_back(std::move(rank));
  return std::ranges::all_of(ranks, [](const CollectedRank& rank) { return rank.alive && rank.rebuilds; });
}

bool BreakpointCoordinator::permit_leads_beyond(std::uint64_t step) const {
  if (!permitted_at_ || permitted_step_ <= step) return false;
  return std::ranges::any_of(collected_ranks(), [this](const CollectedRank& rank) {
    // Whatever else it says is from before it waited there, and late.
    const bool moves = rank.phase != RankPhase::collective_failed;
    return rank.alive && moves && rank.step + 1 == permitted_step_ &&
           std::ranges::binary_search(permitted_ranks_, rank.rank);
  });
}

// A failed collective alone: where everybody lives the ranks make their communicators anew.
// Otherwise nobody would end parked processes: they leave, and the job is restarted.
AfterBreakpoint BreakpointCoordinator::effective_after(std::optional<std::uint64_t> step) {
  const AfterBreakpoint asked = reason_.trigger.after;
  if (!only_communicators_failed(causes_)) return asked;
  const std::vector<CollectedRank> ranks = collected_ranks();
  const bool failed = causes_.contains(TriggerCause::collective_failed) && !goes_on(asked);
  const bool apart = told_apart(ranks);
  if (!failed && !apart) return asked;
  if (!step) return AfterBreakpoint::stop;
  std::string why_not =
      why_not_rebuild({.ranks = ranks,
                       .world_size = config_.world_size(),
                       .step = *step,
                       .alike = [this](std::uint32_t one, std::uint32_t other) { return layouts_.alike(one, other); }});
  if (why_not.empty() && rebuilds_.at(*step) >= config_.limits.rebuilds_max) {
    why_not = "they did " + std::to_string(config_.limits.rebuilds_max) +
              " times at this step, and the collective fails again";
  }
  if (why_not.empty()) return AfterBreakpoint::rebuild;
  // Where nobody has asked for it there is nothing to explain.
  if (std::ranges::any_of(ranks, [](const CollectedRank& rank) { return rank.rebuilds; })) {
    choice_.why +=
        (choice_.why.empty() ? "" : "; ") + ("the ranks leave instead of making their communicators anew: " + why_not);
  }
  return AfterBreakpoint::stop;
}

void BreakpointCoordinator::conclude(const KnownCheckpoint& checkpoint, Instant now, CoordinationOutputs& out) {
  const CommittedMessage committed{.term = term_,
                                   .step = checkpoint.step,
                                   .path = checkpoint.path,
                                   .manifest_hash = checkpoint.manifest_hash,
                                   .after = effective_after(checkpoint.step),
                                   .bytes = checkpoint.bytes,
                                   .seconds = std::max(0.0, to_seconds(now - began_))};
  if (!checkpoint.path.empty()) known_ = checkpoint;
  record_.step = checkpoint.step;
  record_.path = checkpoint.path;
  record_.manifest_hash = checkpoint.manifest_hash;
  record_.bytes = checkpoint.bytes;
  record_.durable_milliseconds = to_milliseconds(now - began_);
  std::string message = choice_.why;
  for (const std::string& refused : choice_.refused) message += (message.empty() ? "" : "; ") + refused;
  if (checkpoint.path.empty()) message = "there was nothing to save";
  record_.rebuild = committed.after == AfterBreakpoint::rebuild;
  if (record_.rebuild) {
    message +=
        (message.empty() ? "" : "; ") + ("every rank lives: they make their communicators anew and go on with step " +
                                         std::to_string(checkpoint.step + 1));
  }
  tell(SaveState::durable, std::move(message), out);
  send_to_all(committed, out);
  finish(committed);
}

void BreakpointCoordinator::fail_breakpoint(Error error, CoordinationOutputs& out) {
  remove_unfinished(out);
  tell(SaveState::failed, error.message, out);
  const FailedMessage failed{term_, std::move(error), effective_after(std::nullopt)};
  send_to_all(failed, out);
  finish(failed);
}

// What is not going to be published takes space that the next try may need. While it is being
// published nobody knows.
void BreakpointCoordinator::remove_unfinished(CoordinationOutputs& out) {
  if (state_ == CoordinatorState::writing) out.push_back(RemoveFolder{writing_.abandon()});
}

void BreakpointCoordinator::finish(Outcome outcome) {
  state_ = goes_on(after_of(outcome)) ? CoordinatorState::idle : CoordinatorState::settled;
  if (const auto* committed = std::get_if<CommittedMessage>(&outcome)) rebuilds_.note(*committed);
  outcome_ = std::move(outcome);
}

void BreakpointCoordinator::tell(SaveState state, std::string message, CoordinationOutputs& out) {
  told_open_ = state == SaveState::collecting || state == SaveState::writing;
  if (state == SaveState::failed) record_.rebuild = false;
  if (told_open_) record_.rebuild = may_still_rebuild();
  record_.state = state;
  record_.term = term_;
  record_.ranks = live_ranks_;
  record_.message = std::move(message);
  if (ids_.empty()) out.push_back(ReportBreakpoint{record_});
  for (const std::string& id : ids_) {
    BreakpointRecord record = record_;
    record.id = id;
    out.push_back(ReportBreakpoint{std::move(record)});
  }
}

void BreakpointCoordinator::on_outcome(const Outcome& outcome, CoordinationOutputs& out) {
  if (const auto* committed = std::get_if<CommittedMessage>(&outcome); committed && !committed->path.empty()) {
    known_ = KnownCheckpoint{committed->step, committed->path, committed->manifest_hash, committed->bytes};
  }
  // our own word
  if (term_of(outcome) == term_ && coordinator_of(term_) == config_.ordinal && !leading()) return;
  if (told_open_) {
    // What we began was ended by somebody else.
    if (const auto* committed = std::get_if<CommittedMessage>(&outcome)) {
      record_.step = committed->step;
      record_.path = committed->path;
      record_.manifest_hash = committed->manifest_hash;
      record_.bytes = committed->bytes;
      record_.rebuild = committed->after == AfterBreakpoint::rebuild;
      tell(SaveState::durable, "pod " + std::to_string(coordinator_of(committed->term)) + " made it durable", out);
    } else {
      tell(SaveState::failed, std::get<FailedMessage>(outcome).error.message, out);
    }
  }
  finish(outcome);
}

}  // namespace rekindle::sidecar
