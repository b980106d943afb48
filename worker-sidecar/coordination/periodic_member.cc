#include "worker-sidecar/coordination/periodic_member.h"

#include <algorithm>
#include <utility>

#include "common/base/format.h"
#include "worker-sidecar/coordination/message_parts.h"

namespace rekindle::sidecar {
namespace {

constexpr Duration kInspectInterval = std::chrono::milliseconds(50);
// A report of a rank that was just seen beyond the step may still be on its way.
constexpr Duration kReportMax = std::chrono::milliseconds(500);

}  // namespace

// ---- plan ----

void PeriodicMember::on_layout_changed(CoordinationOutputs& out) {
  if (!config_.snapshots.keeps_anything()) return;
  const std::uint32_t leader = pods_.lowest_reachable();
  for (std::vector<HeldLayout>& reported :
       one_layout_each(layouts_.list(config_.first_rank(), config_.ranks_per_pod, {}))) {
    out.push_back(SendToPeer{leader, LayoutsMessage{config_.ordinal, std::move(reported)}});
  }
}

void PeriodicMember::on_keep(std::uint32_t from, const PeerKeepMessage& keep, CoordinationOutputs& out) {
  if (!config_.hosts(keep.share.rank)) return;
  if (keep.term != keep_term_) keeping_.clear();
  leader_ = from;
  keep_term_ = keep.term;
  if (!ranks_.is_live(keep.share.rank)) {
    return answer_kept(keep.share.rank,
                       fail(ErrorCode::unavailable, format("rank {} does not train", keep.share.rank), Retry::yes),
                       out);
  }
  keeping_.insert(keep.share.rank);
  out.push_back(KeepForRank{.rank = keep.share.rank,
                            .term = keep.term,
                            .snapshots = keep.snapshots,
                            .shadow_every_steps = keep.shadow_every_steps,
                            .pieces = keep.share.pieces});
}

void PeriodicMember::on_rank_kept(const RankKept& kept, CoordinationOutputs& out) {
  if (kept.term != keep_term_ || keeping_.erase(kept.rank) == 0) return;
  answer_kept(
      kept.rank,
      kept.kept ? Status()
                : Status(std::unexpected(with_context(kept.kept.error(), format("rank {} keeps no copy", kept.rank)))),
      out);
}

void PeriodicMember::answer_kept(std::uint32_t rank, Status kept, CoordinationOutputs& out) {
  PeerKeptMessage answer{.term = keep_term_, .rank = rank, .ok = kept.has_value()};
  if (!kept) answer.error = kept.error();
  out.push_back(SendToPeer{leader_, std::move(answer)});
}

// ---- snapshot ----

void PeriodicMember::on_snapshot(std::uint32_t from, const SnapshotMessage& snapshot, Instant now,
                                 CoordinationOutputs& out) {
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
  if (taking_.empty())
    return answer_snapshot(SnapshotOutcome::failed, {ErrorCode::unavailable, "no rank of this pod trains any more"},
                           out);
  next_inspection_ = now + kInspectInterval;
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
    return answer_snapshot(
        SnapshotOutcome::failed,
        with_context(snapshotted.taken.error(), format("rank {} could not copy its share", snapshotted.rank)), out);
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
  if (keeping_.erase(rank) != 0)
    answer_kept(rank, fail(ErrorCode::unavailable, format("rank {} ended", rank), Retry::yes), out);
  if (snapshot_step_ != 0 && taking_.contains(rank)) {
    answer_snapshot(SnapshotOutcome::failed,
                    {ErrorCode::unavailable, format("rank {} ended before it took its snapshot", rank)}, out);
  }
}

void PeriodicMember::on_rank_finished(CoordinationOutputs& out) {
  keeping_.clear();
  if (snapshot_step_ == 0) return;
  snapshot_step_ = 0;
  out.push_back(OrderSnapshot{0});
}

// ---- write ----

void PeriodicMember::on_assign(std::uint32_t from, const AssignMessage& part, CoordinationOutputs& out) {
  if (part.term != snapshot_term_ || written_.term == part.term) return;
  const std::optional<AssignMessage> whole = assign_parts_.add(part);
  if (!whole) return;
  const AssignMessage& assign = *whole;
  leader_ = from;
  written_ = {.term = assign.term, .ordinal = config_.ordinal, .ok = true};
  writing_.clear();
  for (const WriterPlan& writer : assign.writers) {
    if (!config_.hosts(writer.rank)) continue;
    writing_.insert(writer.rank);
    out.push_back(WriteFromShadow{
        writer.rank,
        {.term = assign.term, .step = assign.step, .path = assign.path, .file = writer.file, .pieces = writer.pieces}});
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
  fail_write(with_context(failed.failed.error, format("the snapshot of rank {} could not be written", failed.rank)),
             out);
}

void PeriodicMember::on_states_written(const StatesWritten& written, CoordinationOutputs& out) {
  if (written.term != written_.term || !states_awaited_) return;
  // Nothing is ending: a checkpoint that would not bring small state back is not worth replacing a
  // better one.
  if (!written.written)
    return fail_write(with_context(written.written.error(), "the small state could not be written"), out);
  if (!written.written->missing.empty()) {
    return fail_write({ErrorCode::not_found, format("the small state of rank {} at this step is not there",
                                                    written.written->missing.front())},
                      out);
  }
  states_awaited_ = false;
  written_.states_file = written.written->file;
  written_.states = written.written->states;
  finish_write_if_done(out);
}

void PeriodicMember::finish_write_if_done(CoordinationOutputs& out) {
  if (!writing_.empty() || states_awaited_) return;
  send_in_parts(leader_, written_, out);
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
  if (snapshot_step_ == 0 || now < next_inspection_) return;
  next_inspection_ = now + kInspectInterval;
  out.push_back(InspectRanks{});
}

std::optional<Instant> PeriodicMember::next_wake() const {
  if (snapshot_step_ == 0) return std::nullopt;
  return next_inspection_;
}

}  // namespace rekindle::sidecar
