#include "worker-sidecar/coordination/periodic_member.h"

#include <algorithm>
#include <utility>

#include "common/base/sentence.h"
#include "worker-sidecar/checkpoint/layout.h"

namespace rekindle {
namespace {

constexpr Duration kLookEach = std::chrono::milliseconds(50);
// A report of a rank that was just seen beyond the step may still be on its way.
constexpr Duration kReportMax = std::chrono::milliseconds(500);

}  // namespace

// ---- plan ----

void PeriodicMember::on_survey(std::uint32_t from, const SurveyMessage& survey, CoordinationOutputs& out) {
  leader_ = from;
  SurveyedMessage answer{.term = survey.term, .ordinal = config_.ordinal};
  std::map<std::string, RanksLayout> others;
  for (const auto& [number, rank] : ranks_.all()) {
    if (!rank.registered || rank.finished) continue;
    answer.ranks.push_back(number);
    const std::string hash = layout_hash(rank.registered->layout);
    if (hash == survey.layout_hash) continue;
    RanksLayout& same = others[hash];
    if (same.ranks.empty()) same.layout = rank.registered->layout;
    same.ranks.push_back(number);
  }
  for (auto& [hash, layout] : others) answer.layouts.push_back(std::move(layout));
  out.push_back(SendToPeer{from, std::move(answer)});
}

void PeriodicMember::on_layout_changed(CoordinationOutputs& out) {
  if (keep_term_ == 0) return;
  out.push_back(SendToPeer{leader_, SurveyedMessage{.term = 0, .ordinal = config_.ordinal}});
}

void PeriodicMember::on_keep(std::uint32_t from, const PeerKeepMessage& keep, CoordinationOutputs& out) {
  leader_ = from;
  keep_term_ = keep.term;
  keeping_.clear();
  shares_.clear();
  for (const WriterPlan& share : keep.shares) {
    if (config_.hosts(share.rank)) shares_[share.rank] = share;
  }
  // Ranks without a share have small state to keep all the same.
  for (const std::uint32_t rank : ranks_.live()) {
    keeping_.insert(rank);
    const auto share = shares_.find(rank);
    out.push_back(KeepForRank{.rank = rank,
                              .term = keep.term,
                              .snapshots = keep.snapshots,
                              .shadow_every_steps = keep.shadow_every_steps,
                              .pieces = share == shares_.end() ? std::vector<PiecePlan>() : share->second.pieces});
  }
  if (keeping_.empty()) answer_kept({}, out);
}

void PeriodicMember::on_rank_kept(const RankKept& kept, CoordinationOutputs& out) {
  if (kept.term != keep_term_ || keeping_.erase(kept.rank) == 0) return;
  if (!kept.kept) {
    keeping_.clear();
    answer_kept(std::unexpected(with_context(kept.kept.error(), sentence("rank {} keeps no copy", kept.rank))), out);
  } else if (keeping_.empty()) {
    answer_kept({}, out);
  }
}

void PeriodicMember::answer_kept(Status kept, CoordinationOutputs& out) {
  PeerKeptMessage answer{.term = keep_term_, .ordinal = config_.ordinal, .ok = kept.has_value()};
  if (!kept) answer.error = kept.error();
  out.push_back(SendToPeer{leader_, std::move(answer)});
}

// ---- snapshot ----

void PeriodicMember::on_snapshot(std::uint32_t from, const SnapshotMessage& snapshot, Instant now, CoordinationOutputs& out) {
  leader_ = from;
  snapshot_term_ = snapshot.term;
  snapshot_step_ = snapshot.step;
  taking_.clear();
  beyond_.clear();
  longest_microseconds_ = 0;
  written_.term = 0;
  out.push_back(OrderSnapshot{snapshot.step});
  if (snapshot.step == 0) return;
  for (const std::uint32_t rank : ranks_.live()) taking_.insert(rank);
  if (taking_.empty()) return answer_snapshot(SnapshotOutcome::failed, {ErrorCode::unavailable, "no rank of this pod trains any more"}, out);
  next_look_ = now + kLookEach;
}

void PeriodicMember::answer_snapshot(SnapshotOutcome outcome, Error error, CoordinationOutputs& out) {
  out.push_back(SendToPeer{leader_, PodSnapshottedMessage{.term = snapshot_term_,
                                                          .ordinal = config_.ordinal,
                                                          .outcome = outcome,
                                                          .microseconds = longest_microseconds_,
                                                          .error = std::move(error)}});
  snapshot_step_ = 0;
  taking_.clear();
  beyond_.clear();
  out.push_back(OrderSnapshot{0});
}

void PeriodicMember::on_rank_snapshotted(const RankSnapshotted& snapshotted, CoordinationOutputs& out) {
  if (snapshot_step_ == 0 || snapshotted.step != snapshot_step_ || taking_.erase(snapshotted.rank) == 0) return;
  if (!snapshotted.taken) {
    return answer_snapshot(SnapshotOutcome::failed, with_context(snapshotted.taken.error(), sentence("rank {} could not copy its share", snapshotted.rank)), out);
  }
  longest_microseconds_ = std::max(longest_microseconds_, snapshotted.microseconds);
  if (taking_.empty()) answer_snapshot(SnapshotOutcome::taken, {}, out);
}

void PeriodicMember::on_rank_seen(std::uint32_t rank, Instant now, CoordinationOutputs& out) {
  if (snapshot_step_ == 0 || !taking_.contains(rank)) return;
  const auto known = ranks_.all().find(rank);
  if (known == ranks_.all().end() || known->second.word.step <= snapshot_step_) return;
  const Instant since = beyond_.try_emplace(rank, now).first->second;
  if (now - since >= kReportMax) answer_snapshot(SnapshotOutcome::missed, {}, out);
}

void PeriodicMember::on_rank_died(std::uint32_t rank, CoordinationOutputs& out) {
  if (keeping_.erase(rank) != 0) {
    keeping_.clear();
    answer_kept(fail(ErrorCode::unavailable, sentence("rank {} ended", rank)), out);
  }
  if (snapshot_step_ != 0 && taking_.contains(rank)) {
    answer_snapshot(SnapshotOutcome::failed, {ErrorCode::unavailable, sentence("rank {} ended before it took its snapshot", rank)}, out);
  }
}

void PeriodicMember::on_rank_finished(CoordinationOutputs& out) {
  keeping_.clear();
  if (snapshot_step_ == 0) return;
  snapshot_step_ = 0;
  out.push_back(OrderSnapshot{0});
}

// ---- write ----

void PeriodicMember::on_assign(std::uint32_t from, const AssignMessage& assign, CoordinationOutputs& out) {
  if (assign.term != snapshot_term_ || written_.term == assign.term) return;
  leader_ = from;
  written_ = {.term = assign.term, .ordinal = config_.ordinal, .ok = true};
  writing_.clear();
  for (const WriterPlan& writer : assign.writers) {
    if (!config_.hosts(writer.rank)) continue;
    writing_.insert(writer.rank);
    out.push_back(
        WriteFromShadow{writer.rank, {.term = assign.term, .step = assign.step, .path = assign.path, .file = writer.file, .pieces = writer.pieces}});
  }
  states_awaited_ = ranks_.has_states();
  if (states_awaited_) {
    WriteStates states{.term = assign.term, .step = assign.step, .path = assign.path};
    for (const auto& [number, rank] : ranks_.all()) states.ranks.push_back(number);
    out.push_back(std::move(states));
  }
  finish_write_if_done(out);
}

void PeriodicMember::on_rank_written(const RankWritten& written, CoordinationOutputs& out) {
  if (written.written.term != written_.term || writing_.erase(written.rank) == 0) return;
  written_.ranks.push_back({written.rank, written.written.written});
  finish_write_if_done(out);
}

void PeriodicMember::on_rank_write_failed(const RankWriteFailed& failed, CoordinationOutputs& out) {
  if (failed.failed.term != written_.term || !writing_.contains(failed.rank)) return;
  fail_write(with_context(failed.failed.error, sentence("the snapshot of rank {} could not be written", failed.rank)), out);
}

void PeriodicMember::on_states_written(const StatesWritten& written, CoordinationOutputs& out) {
  if (written.term != written_.term || !states_awaited_) return;
  // Nothing is ending: a checkpoint that would not bring small state back is not worth replacing a better one.
  if (!written.written) return fail_write(with_context(written.written.error(), "the small state could not be written"), out);
  if (!written.written->missing.empty()) {
    return fail_write({ErrorCode::not_found, sentence("the small state of rank {} at this step is not there", written.written->missing.front())}, out);
  }
  states_awaited_ = false;
  written_.states_file = written.written->file;
  written_.states = written.written->states;
  finish_write_if_done(out);
}

void PeriodicMember::finish_write_if_done(CoordinationOutputs& out) {
  if (!writing_.empty() || states_awaited_) return;
  out.push_back(SendToPeer{leader_, written_});
}

void PeriodicMember::fail_write(Error error, CoordinationOutputs& out) {
  PodWrittenMessage failed{.term = written_.term, .ordinal = config_.ordinal, .ok = false, .error = std::move(error)};
  writing_.clear();
  states_awaited_ = false;
  written_.term = 0;
  out.push_back(SendToPeer{leader_, std::move(failed)});
}

// ---- time ----

void PeriodicMember::on_wake(Instant now, CoordinationOutputs& out) {
  if (snapshot_step_ == 0 || now < next_look_) return;
  next_look_ = now + kLookEach;
  out.push_back(LookAtRanks{});
}

std::optional<Instant> PeriodicMember::next_wake() const {
  if (snapshot_step_ == 0) return std::nullopt;
  return next_look_;
}

}  // namespace rekindle
