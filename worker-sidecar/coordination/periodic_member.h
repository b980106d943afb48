// The part of one pod in periodic checkpoints: keeps the shadows of its ranks as the leader planned
// them, has its ranks take the snapshot of one step, and has what they took written while they
// train on (docs/formats/shadow.md). Never holds a rank. Pure.
//
// Expected flow: keep, kept of each rank -> snapshot, taken by each rank -> assign -> written,
// states -> (again from snapshot). Guarantees: one answer for each order of the newest term; an
// older one's late answers are dropped. A rank that cannot take part makes the pod say so.
// Assumptions: ranks report what they took through the shell; words of live ranks are seen after
// InspectRanks.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "worker-sidecar/coordination/config.h"
#include "worker-sidecar/coordination/event.h"
#include "worker-sidecar/coordination/job_layouts.h"
#include "worker-sidecar/coordination/local_ranks.h"
#include "worker-sidecar/coordination/membership.h"
#include "worker-sidecar/coordination/message_parts.h"
#include "worker-sidecar/coordination/output.h"

namespace rekindle::sidecar {

class PeriodicMember {
 public:
  PeriodicMember(const CoordinationConfig& config, const Membership& pods, const LocalRanks& ranks,
                 const JobLayouts& layouts)
      : config_(config), pods_(pods), ranks_(ranks), layouts_(layouts) {}

  void on_keep(std::uint32_t from, const PeerKeepMessage& keep, CoordinationOutputs& out);
  void on_snapshot(std::uint32_t from, const SnapshotMessage& snapshot, Instant now, CoordinationOutputs& out);
  void on_assign(std::uint32_t from, const AssignMessage& part, CoordinationOutputs& out);

  // A rank has registered something after the attempt began: what was planned no longer fits.
  void on_layout_changed(CoordinationOutputs& out);
  void on_rank_kept(const RankKept& kept, CoordinationOutputs& out);
  void on_rank_snapshotted(const RankSnapshotted& snapshotted, CoordinationOutputs& out);
  void on_rank_seen(std::uint32_t rank, Instant now, CoordinationOutputs& out);
  void on_rank_died(std::uint32_t rank, CoordinationOutputs& out);
  // The rank is through with training: what is under way comes to nothing, and that is no failure.
  void on_rank_finished(CoordinationOutputs& out);
  void on_rank_written(const RankWritten& written, CoordinationOutputs& out);
  void on_rank_write_failed(const RankWriteFailed& failed, CoordinationOutputs& out);
  void on_states_written(const StatesWritten& written, CoordinationOutputs& out);

  void on_wake(Instant now, CoordinationOutputs& out);
  std::optional<Instant> next_wake() const;

 private:
  void answer_kept(std::uint32_t rank, Status kept, CoordinationOutputs& out);
  void answer_snapshot(SnapshotOutcome outcome, Error error, CoordinationOutputs& out);
  void finish_write_if_done(CoordinationOutputs& out);
  void fail_write(Error error, CoordinationOutputs& out);

  const CoordinationConfig& config_;
  const Membership& pods_;
  const LocalRanks& ranks_;
  const JobLayouts& layouts_;

  std::uint32_t leader_ = 0;

  std::uint64_t keep_term_ = 0;
  std::set<std::uint32_t> keeping_;  // ranks that have not answered

  std::uint64_t snapshot_term_ = 0;
  std::uint64_t snapshot_step_ = 0;  // 0: none is awaited
  std::set<std::uint32_t> taking_;
  // when a rank was seen past the step without having said that it took it
  std::map<std::uint32_t, Instant> beyond_;
  std::uint64_t longest_microseconds_ = 0;
  Instant next_inspection_;

  AssignParts assign_parts_;
  PodWrittenMessage written_;  // term 0: nothing is being written
  std::set<std::uint32_t> writing_;
  bool states_awaited_ = false;
};

}  // namespace rekindle::sidecar
