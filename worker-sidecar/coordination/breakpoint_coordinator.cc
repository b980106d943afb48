#include "worker-sidecar/coordination/breakpoint_coordinator.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/format.h"
#include "worker-sidecar/checkpoint/names.h"

namespace rekindle::sidecar {
namespace {

// With a pause of nothing in between: what a storage refuses longer than that, it refuses.
constexpr int kWriterTriesMax = 3;

// The operator also passes on a Breakpoint that a user made by hand; nothing is wrong then.
TriggerCause cause_of(const TriggerMessage& trigger) {
  return trigger.cause == TriggerCause::operator_order && trigger.after == AfterBreakpoint::go_on ? TriggerCause::user
                                                                                                  : trigger.cause;
}

}  // namespace

void BreakpointCoordinator::begin_attempt(std::uint32_t attempt, std::optional<KnownCheckpoint> restored) {
  attempt_ = attempt;
  restored_ = restored;
  known_ = std::move(restored);
  rebuilds_ = {};
}

void BreakpointCoordinator::send(std::uint32_t ordinal, PeerMessage message, CoordinationOutputs& out) const {
  out.push_back(SendToPeer{ordinal, std::move(message)});
}

void BreakpointCoordinator::send_to_all(const PeerMessage& message, CoordinationOutputs& out) const {
  for (const std::uint32_t pod : pods_.reachable_pods()) send(pod, message, out);
}

// No wait takes more than a quarter of the time that the breakpoint has.
Duration BreakpointCoordinator::bound(Duration wait) const { return std::min(wait, given() / 4); }

// --- triggers ---

void BreakpointCoordinator::on_trigger(std::uint32_t from, const TriggerMessage& trigger, Instant now,
                                       CoordinationOutputs& out) {
  // It failed on communicators that have been replaced since: a rank that reports it late has the
  // order to rebuild already.
  if (trigger.cause == TriggerCause::collective_failed && trigger.rebuilt < rebuilds_.term()) {
    if (outcome_) send(from, message_of(*outcome_), out);
    return;
  }
  const TimedTrigger reason = arrive(trigger, now);
  switch (move(CoordinatorInput::trigger)) {
    case CoordinatorMove::merge: merge(from, reason, now, out); return;
    case CoordinatorMove::answer:
      if (outcome_ && is_durable(*outcome_) && trigger.after <= after_of(*outcome_)) {
        send(from, message_of(*outcome_), out);
        if (!trigger.breakpoint.empty() && ids_.insert(trigger.breakpoint).second) {
          record_.id = trigger.breakpoint;
          out.push_back(ReportBreakpoint{record_});
        }
        return;
      }
      if (outcome_ && is_durable(*outcome_)) {  // parked, and now the ranks have to leave
        auto committed = std::get<CommittedMessage>(*outcome_);
        committed.after = trigger.after;
        committed.term =
            make_term(std::max(round_of(committed.term), round_of(member_.highest_term())) + 1, config_.ordinal);
        outcome_ = committed;
        send_to_all(committed, out);
        return;
      }
      if (outcome_ && trigger.cause == TriggerCause::sidecar) {
        send(from, message_of(*outcome_), out);
        return;
      }
      break;
    default:
      // The sender is held by a breakpoint that is over, or asks again for one that was carried
      // out.
      if (outcome_ && ((trigger.term != 0 && trigger.term <= term_of(*outcome_)) ||
                       (ids_.contains(trigger.breakpoint) && trigger.after <= after_of(*outcome_)))) {
        send(from, message_of(*outcome_), out);
        return;
      }
      // Its leader will collect the sender, or the sender asks there.
      if (member_.follows_another()) return;
      break;
  }
  begin(reason, now, out);
}

void BreakpointCoordinator::begin(const TimedTrigger& reason, Instant now, CoordinationOutputs& out) {
  reason_ = reason;
  causes_ = {cause_of(reason.trigger)};
  began_ = now;
  deadline_ = reason.until ? *reason.until : now + config_.limits.deadline;
  frozen_ = Duration{0};
  rounds_ = 0;
  failed_writers_.clear();
  failed_shadows_.clear();
  writer_tries_max_ = 1;
  last_error_.reset();
  ids_.clear();
  record_ = {.id = reason.trigger.breakpoint,
             .cause = reason.trigger.cause,
             .pod = reason.trigger.pod,
             .detail = reason.trigger.detail};
  if (!record_.id.empty()) ids_.insert(record_.id);
  start_round(reason.trigger.term, now, out);
}

void BreakpointCoordinator::merge(std::uint32_t from, const TimedTrigger& reason, Instant now,
                                  CoordinationOutputs& out) {
  const TriggerMessage before = reason_.trigger;
  merge_trigger(reason_, reason);
  causes_.insert(cause_of(reason.trigger));
  if (reason.until) deadline_ = std::min(deadline_, *reason.until);
  record_.cause = reason_.trigger.cause;
  record_.pod = reason_.trigger.pod;
  record_.detail = reason_.trigger.detail;
  if (!reason.trigger.breakpoint.empty() && ids_.insert(reason.trigger.breakpoint).second && record_.id.empty()) {
    record_.id = reason.trigger.breakpoint;
  }
  if (state_ == CoordinatorState::collecting) {
    if (reason_.trigger.after != before.after) send_to_all(collect_message(now), out);
    else if (!answers_.contains(from)) send(from, collect_message(now), out);
  }
  // Who restarts jobs must not wait for ranks that will not rebuild, and writes down what happened.
  const bool is_news = reason_.trigger.cause != before.cause || (record_.rebuild && !may_still_rebuild());
  if (record_open_ && is_news) report(record_.state, record_.message, out);
}

// --- Collect ---

void BreakpointCoordinator::start_round(std::uint64_t above, Instant now, CoordinationOutputs& out) {
  remove_unfinished(out);
  const std::uint64_t round =
      std::max({round_of(above), round_of(term_), round_of(member_.highest_term()), round_of(refused_with_)}) + 1;
  ++rounds_;
  term_ = make_term(round, config_.ordinal);
  state_ = CoordinatorState::collecting;
  raise_round_at_.reset();
  started_ = now;
  next_resend_ = now + config_.limits.resend;
  answers_.clear();
  answered_at_.reset();
  evaluated_at_ = now;
  permitted_at_.reset();
  permitted_ranks_.clear();
  choice_ = {};
  writing_.clear();
  stripes_done_at_.reset();
  report(SaveState::collecting, last_error_ ? "another round: " + last_error_->message : "", out);
  send_to_all(collect_message(now), out);
}

void BreakpointCoordinator::new_round(const Error& why, Instant now, CoordinationOutputs& out) {
  last_error_ = why;
  if (rounds_ >= config_.limits.rounds_max) {
    fail_breakpoint(with_context(why, format("the checkpoint failed {} times; the last time", rounds_)), out);
    return;
  }
  start_round(0, now, out);
}

CollectMessage BreakpointCoordinator::collect_message(Instant now) const {
  CollectMessage collect{term_, message_of(reason_, now), layouts_.job_hash(), layouts_.hashes()};
  collect.trigger.term = 0;
  collect.trigger.seconds_left = std::max(0.001, to_seconds(deadline_ - now));
  return collect;
}

void BreakpointCoordinator::on_collected(std::uint32_t from, const CollectedMessage& collected, Instant now,
                                         CoordinationOutputs& out) {
  if (collected.term > term_) {
    if (move(CoordinatorInput::refused) != CoordinatorMove::raise_round) return;
    refused_with_ = std::max(refused_with_, collected.term);
    // Its coordinator, if it can be reached, collects us in a moment; otherwise that term leads
    // nowhere.
    const std::uint32_t other = coordinator_of(collected.term);
    if (other == config_.ordinal || !pods_.reachable(other)) start_round(0, now, out);
    else if (!raise_round_at_) raise_round_at_ = now + config_.limits.resend;
    return;
  }
  if (collected.term != term_) return;
  const CoordinatorMove what = move(CoordinatorInput::collected);
  if (what == CoordinatorMove::ignore) return;
  layouts_.adopt(from, collected.layouts);
  if (collected.more) return;
  // it refuses an order of an earlier round that reached it late, and says nothing about its ranks
  if (collected.ranks.empty()) return;
  // A part of the answer was lost: it is requested again.
  if (std::any_of(collected.ranks.begin(), collected.ranks.end(),
                  [&](const CollectedRank& rank) { return rank.alive && !layouts_.knows(rank.rank); }))
    return;
  std::vector<CollectedRank>& ranks = answers_[from];
  ranks.clear();
  for (const CollectedRank& rank : collected.ranks) {
    // a pod reports its own ranks only
    if (config_.pod_of(rank.rank) == from && rank.rank < config_.world_size()) ranks.push_back(rank);
  }
  if (what == CoordinatorMove::evaluate) evaluate(now, out);
  else check_writers(now, out);
}

// When the answers that are missing are no longer waited for; empty: all are in.
std::optional<Instant> BreakpointCoordinator::answers_due() const {
  std::optional<Instant> due;
  for (std::uint32_t pod = 0; pod < config_.pods; ++pod) {
    if (has_answered(pod)) continue;
    const bool reachable = pods_.reachable(pod);
    if (!reachable && (pods_.gone_or_stale(pod) || pods_.finished(pod))) continue;
    Instant since = started_;
    // A connection that breaks again and again does not use up all the time that there is.
    if (const auto changed = links_changed_.find(pod); changed != links_changed_.end())
      since = std::max(since, std::min(changed->second, deadline_ - given() / 2));
    const Instant at = since + bound(reachable ? config_.limits.answer_wait : config_.limits.collect_wait);
    due = due ? std::max(*due, at) : at;
  }
  return due;
}

bool BreakpointCoordinator::may_write(const std::map<std::uint32_t, int>& failed, std::uint32_t rank) const {
  const auto found = failed.find(rank);
  return found == failed.end() || found->second < writer_tries_max_;
}

ChooseInput BreakpointCoordinator::choose_input(Instant now) const {
  const CoordinationLimits& limits = config_.limits;
  ChooseInput input{.world_size = config_.world_size(), .states_matter = ranks_.has_states()};
  for (std::uint32_t pod = 0; pod < config_.pods; ++pod) {
    if (const auto answer = answers_.find(pod); answer != answers_.end()) {
      for (CollectedRank rank : answer->second) {
        if (!may_write(failed_writers_, rank.rank)) rank.clean = false;
        if (!may_write(failed_shadows_, rank.rank)) rank.shadow_steps.clear();
        input.ranks.push_back(rank);
      }
    } else if (pods_.finished(pod)) {
      for (std::uint32_t i = 0; i < config_.ranks_per_pod; ++i) {
        input.ranks.push_back({.rank = pod * config_.ranks_per_pod + i, .phase = RankPhase::finished});
      }
    }
  }
  const Instant from = *answered_at_;
  const Instant moved = permitted_at_ ? std::max(from, *permitted_at_) : from;
  input.updating_over = now >= moved + bound(limits.updating_wait);
  input.arrival_over = now >= from + bound(limits.arrival_wait);
  input.straggler_over = now >= from + bound(limits.straggler_wait);
  input.permit_over = permitted_at_ && now >= *permitted_at_ + bound(limits.permit_wait);
  for (std::size_t i = 0; shards_ && i < shards_->groups.size(); ++i)
    input.groups.push_back({shards_->groups[i].ranks, shards_->sharers[i]});
  return input;
}

// What is lost with the groups of which the newest step has no copy.
std::string BreakpointCoordinator::describe_losses() const {
  if (choice_.lost_groups.empty() || shards_->groups.size() < 2) return {};
  std::string text = describe_group(shards_->groups[choice_.lost_groups.front()]);
  if (choice_.lost_groups.size() > 1)
    text += format("; and what {} other groups of ranks hold", choice_.lost_groups.size() - 1);
  return text;
}

std::string BreakpointCoordinator::what_stands() const {
  if (known_ && !known_->path.empty()) return "the newest complete checkpoint stands";
  // A sidecar that came back does not know from where the attempt began, and periodic checkpoints
  // are known where they were led.
  const bool knows_all = known_ && (config_.pods == 1 || !config_.snapshots.periodic());
  return knows_all ? "there is no checkpoint yet: the next start begins at step 1"
                   : "the next start goes on from the newest complete checkpoint, if there is one";
}

bool BreakpointCoordinator::parts_lack_shadows() const {
  return shards_ && shards_->groups.size() > 1 && config_.snapshots.shadow_every_steps == 0 &&
         std::ranges::all_of(collected_ranks(), [](const CollectedRank& rank) { return rank.shadow_steps.empty(); });
}

void BreakpointCoordinator::evaluate(Instant now, CoordinationOutputs& out) {
  evaluated_at_ = now;
  if (const auto due = answers_due(); due && now < *due) return;
  if (!answered_at_) answered_at_ = now;
  auto shards = layouts_.shards();
  shards_ = shards ? *shards : nullptr;
  const ChooseInput input = choose_input(now);
  live_ranks_ = static_cast<std::uint32_t>(
      std::count_if(input.ranks.begin(), input.ranks.end(), [](const auto& rank) { return rank.alive; }));
  Choice choice = choose_step(input);
  // A disk that failed once may take the only copy all the same.
  const bool falls_back = choice.kind == ChoiceKind::none || (choice.kind == ChoiceKind::take && choice.steps_lost > 0);
  const bool some_failed = !failed_writers_.empty() || !failed_shadows_.empty();
  if (falls_back && some_failed && writer_tries_max_ < kWriterTriesMax) {
    ++writer_tries_max_;
    evaluate(now, out);
    return;
  }
  if (!shards && choice.kind != ChoiceKind::finished) {
    fail_breakpoint({shards.error().code, format("{}; {}", shards.error().message, what_stands())}, out);
    return;
  }
  switch (choice.kind) {
    case ChoiceKind::wait: return;
    case ChoiceKind::permit: permit(choice, now, out); return;
    case ChoiceKind::take:
      // Ranks that rebuild at a step must not be beyond it, and who was permitted may be on the
      // way.
      if (!input.permit_over && permit_leads_beyond(choice.step) &&
          (may_still_rebuild() || rebuild_orders_differ(input.ranks)))
        return;
      take(std::move(choice), now, out);
      return;
    case ChoiceKind::finished: conclude({}, now, out); return;
    case ChoiceKind::none: break;
  }
  choice_ = std::move(choice);
  const std::string losses = describe_losses();
  Error error{ErrorCode::unavailable,
              format("{}{}; {}", choice_.why, losses.empty() ? "" : format(" (lost: {})", losses), what_stands())};
  if (parts_lack_shadows())
    error.message +=
        ". Where ranks hold different parts, shadows keep a complete step: set rekindle.dev/shadow-every on the job, "
        "or "
        "--shadow-every of `rekindle run`";
  if (last_error_) error.message = format("{}; after that, {}", last_error_->message, error.message);
  fail_breakpoint(std::move(error), out);
}

void BreakpointCoordinator::permit(const Choice& choice, Instant now, CoordinationOutputs& out) {
  // The same ranks, or fewer because some have moved: under way already.
  const bool known =
      permitted_at_ && permitted_step_ == choice.step &&
      std::includes(permitted_ranks_.begin(), permitted_ranks_.end(), choice.ranks.begin(), choice.ranks.end());
  if (known) return;
  permitted_at_ = now;
  permitted_step_ = choice.step;
  permitted_ranks_ = choice.ranks;
  send_to_all(PermitMessage{term_, choice.step, choice.ranks}, out);
}

void BreakpointCoordinator::take(Choice choice, Instant now, CoordinationOutputs& out) {
  choice_ = std::move(choice);
  if (const std::string losses = describe_losses(); !losses.empty()) choice_.why += format(" ({})", losses);
  if (known_ && known_->step > choice_.step) {  // a shadow that is older than what is durable
    choice_.steps_lost -= std::min(choice_.steps_lost, known_->step - choice_.step);
    choice_.step = known_->step;
  }
  record_.step = choice_.step;
  record_.steps_lost = choice_.steps_lost;
  record_.agreed_milliseconds = to_milliseconds(now - began_);
  // the start itself; a sidecar that came back does not know what was restored
  if (choice_.step == 0) {
    conclude({}, now, out);
    return;
  }
  if (known_ && known_->step == choice_.step) {
    conclude(*known_, now, out);
    return;
  }
  state_ = CoordinatorState::creating;
  out.push_back(CreateFolder{term_, attempt_, choice_.step});
}

// --- Assign, Write ---

void BreakpointCoordinator::on_folder_created(const FolderCreated& created, Instant now, CoordinationOutputs& out) {
  if (created.term != term_) return;  // of a round that is over; retention removes the folder
  const auto input = created.path ? CoordinatorInput::folder_created : CoordinatorInput::folder_failed;
  const CoordinatorMove what = move(input);
  if (what == CoordinatorMove::assign) assign(*created.path, now, out);
  if (what == CoordinatorMove::new_round_or_fail) {
    const Error error = with_context(created.path.error(), "making the checkpoint's folder");
    if (error.retry == Retry::yes) new_round(error, now, out);
    else fail_breakpoint(error, out);
  }
}

void BreakpointCoordinator::assign(const std::string& path, Instant now, CoordinationOutputs& out) {
  std::set<std::uint32_t> pods;
  for (const std::uint32_t pod : pods_.reachable_pods()) {
    if (answers_.contains(pod)) pods.insert(pod);
  }
  writing_.begin(term_, choice_.step, path, plan_write(shards_->groups, choice_.ranks, choice_.shadows).writers,
                 std::move(pods));
  state_ = CoordinatorState::writing;
  next_resend_ = now + config_.limits.resend;
  report(SaveState::writing, "", out);
  for (const std::uint32_t pod : writing_.pods()) writing_.send_order(pod, out);
  check_writers(now, out);
}

// Every rank that shall write still has what it shall write, unless it is done.
bool BreakpointCoordinator::writers_are_fit() const {
  const auto fit = [this](std::uint32_t rank, WriteSource source) {
    const std::uint32_t pod = config_.pod_of(rank);
    if (writing_.has(pod)) return true;
    if (!pods_.reachable(pod)) return false;
    const auto answer = answers_.find(pod);
    if (answer == answers_.end()) return false;
    return std::any_of(answer->second.begin(), answer->second.end(), [&](const CollectedRank& seen) {
      if (seen.rank != rank) return false;
      // A shadow outlives its rank; only its pod can take it away.
      if (source == WriteSource::shadow) return true;
      return seen.alive && seen.clean && seen.step == choice_.step;
    });
  };
  if (state_ == CoordinatorState::creating) {
    return std::all_of(choice_.ranks.begin(), choice_.ranks.end(),
                       [&](std::uint32_t rank) { return fit(rank, WriteSource::memory); }) &&
           std::all_of(choice_.shadows.begin(), choice_.shadows.end(),
                       [&](std::uint32_t rank) { return fit(rank, WriteSource::shadow); });
  }
  return std::ranges::all_of(writing_.writers(),
                             [&](const WriterPlan& writer) { return fit(writer.rank, writer.source); });
}

void BreakpointCoordinator::check_writers(Instant now, CoordinationOutputs& out) {
  if (!writers_are_fit()) {
    new_round({ErrorCode::unavailable, "a rank or a pod was lost while the checkpoint was written", Retry::yes}, now,
              out);
    return;
  }
  if (state_ == CoordinatorState::writing) publish_if_written(now, out);
}

void BreakpointCoordinator::on_written(const PodWrittenMessage& written, Instant now, CoordinationOutputs& out) {
  if (written.term != term_ || !writing_.pods().contains(written.ordinal)) return;
  const CoordinatorMove what = move(written.ok ? CoordinatorInput::written : CoordinatorInput::write_failed);
  if (what == CoordinatorMove::new_round) {
    for (const std::uint32_t rank : written.failed_ranks) {
      if (config_.pod_of(rank) != written.ordinal) continue;
      const bool from_shadow = std::ranges::any_of(writing_.writers(), [&](const WriterPlan& writer) {
        return writer.rank == rank && writer.source == WriteSource::shadow;
      });
      ++(from_shadow ? failed_shadows_ : failed_writers_)[rank];
    }
    new_round(written.error, now, out);
  }
  // With a part missing the pod counts as silent, and is requested again.
  if (what == CoordinatorMove::gather && writing_.add(written) == ReportState::whole) publish_if_written(now, out);
}

void BreakpointCoordinator::publish_if_written(Instant now, CoordinationOutputs& out) {
  if (!writing_.has_every_writer()) return;
  if (!stripes_done_at_) stripes_done_at_ = now;
  // Small state of a pod that says nothing more is not worth the deadline.
  const bool states_over = now >= *stripes_done_at_ + bound(config_.limits.answer_wait);
  const auto awaited = [&](std::uint32_t pod) { return !writing_.has(pod) && pods_.reachable(pod); };
  if (!states_over && std::ranges::any_of(writing_.pods(), awaited)) return;
  Result<Manifest> manifest = make_manifest();
  if (!manifest) {
    new_round(manifest.error(), now, out);
    return;
  }
  state_ = CoordinatorState::publishing;
  bytes_ = file_bytes(*manifest);
  if (!manifest->inexact_ranks.empty()) {
    choice_.why += choice_.why.empty() ? "" : "; ";
    choice_.why += format("the small state of {} ranks at this step is lost", manifest->inexact_ranks.size());
  }
  out.push_back(PublishCheckpoint{term_, writing_.path(), std::move(*manifest)});
}

Result<Manifest> BreakpointCoordinator::make_manifest() const {
  Manifest manifest{.kind = CheckpointKind::breakpoint,
                    .attempt = attempt_,
                    .step = choice_.step,
                    .term = term_,
                    .world_size = config_.world_size(),
                    .live_ranks = live_ranks_,
                    .agreed_milliseconds = static_cast<std::uint64_t>(std::ceil(record_.agreed_milliseconds)),
                    .trigger = {std::string(to_string(record_.cause)), record_.detail}};
  if (restored_ && !restored_->path.empty()) {
    const auto name = parse_folder_name(restored_->path);
    if (name) manifest.parent = ParentPoint{name->attempt, restored_->step, restored_->path};
  }
  if (Status added = writing_.add_to(manifest, *shards_); !added) return std::unexpected(added.error());
  manifest.inexact_ranks = writing_.inexact_ranks(ranks_.has_states());
  return manifest;
}

// --- Commit ---

void BreakpointCoordinator::on_published(const CheckpointPublished& published, Instant now, CoordinationOutputs& out) {
  const bool ours = published.term == term_;
  const auto input = published.published ? CoordinatorInput::published : CoordinatorInput::publish_failed;
  CoordinatorMove what = move(input);
  if (!ours) what = published.published ? CoordinatorMove::remember : CoordinatorMove::ignore;
  if (what == CoordinatorMove::conclude) {
    conclude({choice_.step, writing_.path(), published.published->manifest_hash, published.published->bytes}, now, out);
  }
  if (what == CoordinatorMove::remember && ours && !writing_.path().empty() && choice_.step != 0) {
    known_ =
        KnownCheckpoint{choice_.step, writing_.path(), published.published->manifest_hash, published.published->bytes};
  }
  if (what == CoordinatorMove::new_round_or_fail) {
    const Error error = with_context(published.published.error(), "publishing the checkpoint");
    if (error.code == ErrorCode::exhausted) out.push_back(RemoveFolder{writing_.abandon()});
    if (error.retry == Retry::yes) new_round(error, now, out);
    else fail_breakpoint(error, out);
  }
}

// --- others ---

void BreakpointCoordinator::on_pod_connected(std::uint32_t ordinal, Instant now, CoordinationOutputs& out) {
  links_changed_[ordinal] = now;
  if (move(CoordinatorInput::pod_connected) != CoordinatorMove::request) return;
  // What it reported before it was lost is stale.
  if (state_ == CoordinatorState::collecting) answers_.erase(ordinal);
  send(ordinal, collect_message(now), out);
}

// What a lost pod has said stays known: how far its ranks came, and what they registered. But they
// are no source.
void BreakpointCoordinator::on_pod_lost(std::uint32_t ordinal, Instant now, CoordinationOutputs& out) {
  links_changed_[ordinal] = now;
  const CoordinatorMove what = move(CoordinatorInput::pod_lost);
  if (what == CoordinatorMove::evaluate) {
    if (const auto answer = answers_.find(ordinal); answer != answers_.end()) {
      for (CollectedRank& rank : answer->second) {
        rank.alive = false;
        rank.shadow_steps.clear();
      }
    }
    evaluate(now, out);
  }
  if (what == CoordinatorMove::check_writers) check_writers(now, out);
}

void BreakpointCoordinator::on_outranked(std::uint64_t term) {
  if (term <= term_ && leading()) return;
  if (move(CoordinatorInput::outranked) == CoordinatorMove::step_down) state_ = CoordinatorState::idle;
}

void BreakpointCoordinator::on_wake(Instant now, CoordinationOutputs& out) {
  if (move(CoordinatorInput::wake) != CoordinatorMove::drive) return;
  if (now >= deadline_) {
    std::string message = format(
        "the breakpoint was not durable when its time was over; {}. Raise the deadline or give the volume more "
        "bandwidth",
        what_stands());
    if (last_error_) message += format(" ({})", last_error_->message);
    fail_breakpoint({ErrorCode::deadline_exceeded, std::move(message)}, out);
    return;
  }
  if (raise_round_at_ && now >= *raise_round_at_) {
    start_round(0, now, out);
    return;
  }
  const bool resend = now >= next_resend_;
  if (resend) next_resend_ = now + config_.limits.resend;
  if (state_ == CoordinatorState::collecting) {
    if (resend) {
      for (const std::uint32_t pod : pods_.reachable_pods()) {
        if (!has_answered(pod)) send(pod, collect_message(now), out);
      }
      if (permitted_at_) send_to_all(PermitMessage{term_, permitted_step_, permitted_ranks_}, out);
    }
    evaluate(now, out);
  } else if (state_ == CoordinatorState::writing) {
    if (resend) {
      for (const std::uint32_t pod : writing_.pods()) {
        if (!writing_.has(pod)) writing_.send_order(pod, out);
      }
    }
    publish_if_written(now, out);
  }
}

void BreakpointCoordinator::pass_over(Duration frozen) {
  started_ += frozen;
  next_resend_ += frozen;
  evaluated_at_ += frozen;
  for (std::optional<Instant>* since : {&raise_round_at_, &answered_at_, &permitted_at_, &stripes_done_at_}) {
    if (*since) **since += frozen;
  }
  for (auto& [pod, changed] : links_changed_) changed += frozen;
  if (reason_.until) return;
  deadline_ += frozen;
  frozen_ += frozen;
}

std::optional<Instant> BreakpointCoordinator::next_wake() const {
  if (!leading()) return std::nullopt;
  Instant wake = std::min(deadline_, next_resend_);
  if (raise_round_at_) wake = std::min(wake, *raise_round_at_);
  if (state_ == CoordinatorState::creating || state_ == CoordinatorState::publishing) return deadline_;
  if (state_ == CoordinatorState::writing && stripes_done_at_)
    wake = std::min(wake, *stripes_done_at_ + bound(config_.limits.answer_wait));
  if (state_ != CoordinatorState::collecting) return wake;
  if (const auto due = answers_due(); due && *due > evaluated_at_) wake = std::min(wake, *due);
  if (!answered_at_) return wake;
  // A bound that is over has been evaluated; the next one that is not decides.
  const Duration waits[] = {config_.limits.updating_wait, config_.limits.arrival_wait, config_.limits.straggler_wait,
                            config_.limits.permit_wait};
  for (const Duration wait : waits) {
    const Instant from_answers = *answered_at_ + bound(wait);
    if (from_answers > evaluated_at_) wake = std::min(wake, from_answers);
    if (permitted_at_ && *permitted_at_ + bound(wait) > evaluated_at_)
      wake = std::min(wake, *permitted_at_ + bound(wait));
  }
  return wake;
}

// --- how it ends ---

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

// A failed collective alone: where every rank lives the ranks make their communicators anew.
// Otherwise no pod is deleted that would end parked processes: they leave, and the job is
// restarted.
AfterBreakpoint BreakpointCoordinator::effective_after(std::optional<std::uint64_t> step) {
  const AfterBreakpoint requested = reason_.trigger.after;
  if (!only_communicators_failed(causes_)) return requested;
  const std::vector<CollectedRank> ranks = collected_ranks();
  const bool failed = causes_.contains(TriggerCause::collective_failed) && !goes_on(requested);
  const bool apart = rebuild_orders_differ(ranks);
  if (!failed && !apart) return requested;
  if (!step) return AfterBreakpoint::stop;
  std::string why_not =
      why_not_rebuild({.ranks = ranks,
                       .world_size = config_.world_size(),
                       .step = *step,
                       .alike = [this](std::uint32_t one, std::uint32_t other) { return layouts_.alike(one, other); }});
  if (why_not.empty() && rebuilds_.at(*step) >= config_.limits.rebuilds_max) {
    why_not = format("they did {} times at this step, and the collective fails again", config_.limits.rebuilds_max);
  }
  if (why_not.empty()) return AfterBreakpoint::rebuild;
  // Where no rank has asked for a rebuild there is nothing to explain.
  if (std::ranges::any_of(ranks, [](const CollectedRank& rank) { return rank.rebuilds; })) {
    choice_.why += format("{}the ranks leave instead of making their communicators anew: {}",
                          choice_.why.empty() ? "" : "; ", why_not);
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
    message += format("{}every rank lives: they make their communicators anew and go on with step {}",
                      message.empty() ? "" : "; ", checkpoint.step + 1);
  }
  report(SaveState::durable, std::move(message), out);
  send_to_all(committed, out);
  finish(committed);
}

void BreakpointCoordinator::fail_breakpoint(Error error, CoordinationOutputs& out) {
  remove_unfinished(out);
  report(SaveState::failed, error.message, out);
  const FailedMessage failed{term_, std::move(error), effective_after(std::nullopt)};
  send_to_all(failed, out);
  finish(failed);
}

// What is not going to be published takes space that the next try may need. While it is being
// published it is not known whether it will be there.
void BreakpointCoordinator::remove_unfinished(CoordinationOutputs& out) {
  if (state_ == CoordinatorState::writing) out.push_back(RemoveFolder{writing_.abandon()});
}

void BreakpointCoordinator::finish(Outcome outcome) {
  state_ = goes_on(after_of(outcome)) ? CoordinatorState::idle : CoordinatorState::settled;
  if (const auto* committed = std::get_if<CommittedMessage>(&outcome)) rebuilds_.note(*committed);
  outcome_ = std::move(outcome);
}

void BreakpointCoordinator::report(SaveState state, std::string message, CoordinationOutputs& out) {
  record_open_ = state == SaveState::collecting || state == SaveState::writing;
  if (state == SaveState::failed) record_.rebuild = false;
  if (record_open_) record_.rebuild = may_still_rebuild();
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
  if (record_open_) {
    // Another coordinator ended what this one began.
    if (const auto* committed = std::get_if<CommittedMessage>(&outcome)) {
      record_.step = committed->step;
      record_.path = committed->path;
      record_.manifest_hash = committed->manifest_hash;
      record_.bytes = committed->bytes;
      record_.rebuild = committed->after == AfterBreakpoint::rebuild;
      report(SaveState::durable, format("pod {} made it durable", coordinator_of(committed->term)), out);
    } else {
      report(SaveState::failed, std::get<FailedMessage>(outcome).error.message, out);
    }
  }
  finish(outcome);
}

}  // namespace rekindle::sidecar
