#include "worker-sidecar/coordination/periodic_leader.h"

#include <algorithm>
#include <array>
#include <utility>

#include "common/base/format.h"
#include "worker-sidecar/checkpoint/names.h"
#include "worker-sidecar/checkpoint/plan.h"

namespace rekindle::sidecar {
namespace {

// An answer that a pod owes and that is not a matter of training's pace or the disk's.
constexpr Duration kAnswerMax = std::chrono::seconds(60);
constexpr Duration kRetrySoon = std::chrono::seconds(1);
// A rank that has no memory for its copies will hardly have some in a second.
constexpr Duration kRetryLater = std::chrono::seconds(60);

}  // namespace

void PeriodicLeader::begin_attempt(std::uint32_t attempt, std::optional<std::uint64_t> step,
                                   std::optional<ParentPoint> parent, FailureHistory failures, Instant now) {
  attempt_ = attempt;
  parent_ = std::move(parent);
  retry_at_ = now;
  if (config_.snapshots.periodic()) schedule_.begin(step, failures, now);
}

void PeriodicLeader::send_to_all(const PeerMessage& message, CoordinationOutputs& out) const {
  for (const std::uint32_t pod : pods_.reachable_pods()) out.push_back(SendToPeer{pod, message});
}

// Above whatever an earlier leader, or this one before it was restarted, may have used: members
// take the newest order and drop answers of others.
void PeriodicLeader::next_term() { term_ = make_periodic_term(++number_, config_.ordinal); }

void PeriodicLeader::note(const Error& error, CoordinationOutputs& out) {
  if (noted_ == error.message) return;
  noted_ = error.message;
  out.push_back(NoteProblem{"periodic_checkpoint", error.message});
}

void PeriodicLeader::drive(bool may_lead, Instant now, CoordinationOutputs& out) {
  if (attempt_ == 0 || !config_.snapshots.keeps_anything()) return;
  may_lead_ = may_lead;
  if (!may_lead) {
    // its outcome is known in a moment, and no rank waits for it
    if (state_ == PeriodicState::publishing) return;
    if (state_ > PeriodicState::waiting) drop(now, out);
    if (state_ == PeriodicState::keeping) state_ = PeriodicState::off;
    return;
  }
  if (state_ == PeriodicState::keeping && now >= requested_at_ + kAnswerMax) {
    return fall_back(
        {ErrorCode::deadline_exceeded,
         format("rank {} has not made room for its copies in {} s; there are no periodic checkpoints until it has",
                *awaited_.begin(), static_cast<std::int64_t>(to_seconds(kAnswerMax)))},
        now, out);
  }
  if (plan_stale_ && state_ >= PeriodicState::snapshotting && state_ <= PeriodicState::writing) {
    drop(now, out);  // what the ranks hold has changed, or a pod was away
  }
  if ((state_ == PeriodicState::off || (plan_stale_ && state_ == PeriodicState::waiting)) && now >= retry_at_)
    return keep(now, out);
  if (state_ == PeriodicState::waiting && !plan_stale_ && config_.snapshots.periodic()) evaluate(now, out);
}

// ---- plan ----

void PeriodicLeader::on_layouts_changed(Instant now) {
  plan_stale_ = true;
  retry_at_ = now + kRetrySoon;
}

void PeriodicLeader::keep(Instant now, CoordinationOutputs& out) {
  retry_at_ = now + kRetrySoon;
  Result<std::shared_ptr<const JobShards>> shards = layouts_.shards();
  if (!shards) {
    // A sidecar that was restarted is being told what the others hold; what cannot be one job was
    // refused at the start.
    if (layouts_.knows_all()) note(with_context(shards.error(), "there are no periodic checkpoints and shadows"), out);
    return;
  }
  shards_ = *std::move(shards);
  shares_ = split_for_writers(shards_->groups);
  next_term();
  plan_stale_ = false;
  state_ = PeriodicState::keeping;
  requested_at_ = now;
  awaited_.clear();
  std::map<std::uint32_t, const WriterPlan*> of_rank;
  for (const WriterPlan& share : shares_) of_rank.emplace(share.rank, &share);
  for (std::uint32_t rank = 0; rank < config_.world_size(); ++rank) {
    awaited_.insert(rank);
    // Ranks without a share have small state to keep all the same.
    const auto share = of_rank.find(rank);
    out.push_back(SendToPeer{
        config_.pod_of(rank),
        PeerKeepMessage{.term = term_,
                        .snapshots = config_.snapshots.periodic(),
                        .shadow_every_steps = config_.snapshots.shadow_every_steps,
                        .share = share == of_rank.end() ? WriterPlan{.rank = rank, .file = rank_file_name(rank)}
                                                        : *share->second}});
  }
}

void PeriodicLeader::on_kept(const PeerKeptMessage& kept, Instant now, CoordinationOutputs& out) {
  if (state_ != PeriodicState::keeping || kept.term != term_ || awaited_.erase(kept.rank) == 0) return;
  if (!kept.ok) {
    fall_back(kept.error, now, out);
    retry_at_ = now + kRetryLater;
    return;
  }
  if (!awaited_.empty()) return;
  noted_.clear();
  state_ = PeriodicState::waiting;
}

// ---- one checkpoint ----

void PeriodicLeader::evaluate(Instant now, CoordinationOutputs& out) {
  const std::optional<Instant> due = schedule_.next_check();
  if (!due || now < *due) return;
  std::uint64_t step = 0;
  for (const auto& [number, rank] : ranks_.all()) {
    if (rank.alive && !rank.finished) step = std::max(step, rank.word.step);
  }
  // The words that were seen may be old; those for the next evaluation are fetched now.
  out.push_back(InspectRanks{});
  const std::optional<std::uint64_t> target = schedule_.next_target(step, now);
  if (!target) return;
  next_term();
  step_ = *target;
  state_ = PeriodicState::snapshotting;
  longest_microseconds_ = 0;
  const std::vector<std::uint32_t> pods = pods_.reachable_pods();
  awaited_ = {pods.begin(), pods.end()};
  send_to_all(SnapshotMessage{.term = term_, .step = step_}, out);
}

void PeriodicLeader::on_snapshotted(const PodSnapshottedMessage& snapshotted, Instant now, CoordinationOutputs& out) {
  if (state_ != PeriodicState::snapshotting || snapshotted.term != term_ || !awaited_.contains(snapshotted.ordinal))
    return;
  if (snapshotted.outcome == SnapshotOutcome::missed) {
    schedule_.missed();
    send_to_all(SnapshotMessage{.term = term_, .step = 0}, out);
    state_ = PeriodicState::waiting;
    return;
  }
  if (snapshotted.outcome == SnapshotOutcome::failed) return give_up(snapshotted.error, now, out);
  awaited_.erase(snapshotted.ordinal);
  longest_microseconds_ = std::max(longest_microseconds_, snapshotted.microseconds);
  if (!awaited_.empty()) return;
  taken_at_ = now;
  writing_.clear();
  state_ = PeriodicState::creating;
  out.push_back(CreateFolder{term_, attempt_, step_});
}

void PeriodicLeader::on_folder_created(const FolderCreated& created, Instant now, CoordinationOutputs& out) {
  if (created.term != term_ || state_ != PeriodicState::creating) {
    if (created.path) out.push_back(RemoveFolder{*created.path});
    return;
  }
  if (!created.path) return give_up(with_context(created.path.error(), "making the checkpoint's folder"), now, out);
  const std::vector<std::uint32_t> pods = pods_.reachable_pods();
  writing_.begin(term_, step_, *created.path, shares_, {pods.begin(), pods.end()});
  state_ = PeriodicState::writing;
  for (const std::uint32_t pod : pods) writing_.send_order(pod, out);
}

void PeriodicLeader::on_written(const PodWrittenMessage& written, Instant now, CoordinationOutputs& out) {
  if (state_ != PeriodicState::writing || written.term != term_ || !writing_.pods().contains(written.ordinal)) return;
  if (!written.ok) return give_up(written.error, now, out);
  switch (writing_.add(written)) {
    case ReportState::part: return;
    case ReportState::incomplete:
      return give_up({ErrorCode::unavailable,
                      format("pod {} has not told of everything that it was to write", written.ordinal), Retry::yes},
                     now, out);
    case ReportState::whole:
      if (writing_.has_every_pod()) publish(now, out);
  }
}

void PeriodicLeader::publish(Instant now, CoordinationOutputs& out) {
  Result<Manifest> manifest = make_manifest();
  if (!manifest) return give_up(manifest.error(), now, out);
  bytes_ = file_bytes(*manifest);
  state_ = PeriodicState::publishing;
  out.push_back(PublishCheckpoint{term_, writing_.path(), *std::move(manifest)});
}

Result<Manifest> PeriodicLeader::make_manifest() const {
  Manifest manifest{.kind = CheckpointKind::periodic,
                    .attempt = attempt_,
                    .step = step_,
                    .term = 0,  // a breakpoint of the same step goes first
                    .world_size = config_.world_size(),
                    .live_ranks = config_.world_size(),
                    .trigger = {"periodic", describe(config_.snapshots)},
                    .parent = parent_};
  if (Status added = writing_.add_to(manifest, *shards_); !added) return std::unexpected(added.error());
  return manifest;
}

std::optional<KnownCheckpoint> PeriodicLeader::on_published(const CheckpointPublished& published, Instant now,
                                                            CoordinationOutputs& out) {
  if (published.term != term_ || state_ != PeriodicState::publishing) return std::nullopt;
  if (!published.published) {
    give_up(with_context(published.published.error(), "publishing the checkpoint"), now, out);
    return std::nullopt;
  }
  schedule_.done({.stopped = std::chrono::microseconds(longest_microseconds_), .written = now - taken_at_}, now);
  noted_.clear();
  state_ = PeriodicState::waiting;
  out.push_back(ReportPeriodic{.step = step_,
                               .path = writing_.path(),
                               .bytes = published.published->bytes,
                               .stopped_milliseconds = static_cast<double>(longest_microseconds_) / 1e3,
                               .written_milliseconds = to_milliseconds(now - taken_at_),
                               .rhythm = schedule_.explain()});
  return KnownCheckpoint{step_, writing_.path(), published.published->manifest_hash, published.published->bytes};
}

// ---- when it does not work out ----

void PeriodicLeader::give_up(const Error& why, Instant now, CoordinationOutputs& out) {
  note(with_context(why, format("the periodic checkpoint of step {} was given up", step_)), out);
  drop(now, out);
}

// Something more important has come, or training is over: nothing to report.
void PeriodicLeader::drop(Instant now, CoordinationOutputs& out) {
  const bool announced = state_ >= PeriodicState::snapshotting;
  const bool has_folder =
      !writing_.path().empty() && (state_ == PeriodicState::writing || state_ == PeriodicState::publishing);
  state_ = PeriodicState::waiting;
  schedule_.abandoned(now);
  if (announced) send_to_all(SnapshotMessage{.term = term_, .step = 0}, out);
  if (has_folder) out.push_back(RemoveFolder{writing_.abandon()});
}

void PeriodicLeader::fall_back(const Error& why, Instant now, CoordinationOutputs& out) {
  state_ = PeriodicState::off;
  plan_stale_ = true;
  retry_at_ = now + kRetrySoon;
  note(why, out);
}

std::optional<Instant> PeriodicLeader::next_wake() const {
  if (attempt_ == 0 || !may_lead_ || !config_.snapshots.keeps_anything()) return std::nullopt;
  switch (state_) {
    case PeriodicState::off: return retry_at_;
    case PeriodicState::keeping: return requested_at_ + kAnswerMax;
    case PeriodicState::waiting: {
      if (plan_stale_) return retry_at_;
      return config_.snapshots.periodic() ? schedule_.next_check() : std::nullopt;
    }
    default: return std::nullopt;
  }
}

}  // namespace rekindle::sidecar
