// Leads the periodic checkpoints of a job and plans what every rank keeps in its shadow (PROTOCOL
// P11). Every sidecar has one; the one of the lowest pod that can be reached leads. Pure.
//
// Expected flow: off -> keeping (every rank has its shadow) -> waiting -> snapshotting -> creating
// -> writing -> publishing -> waiting. With a shadow and no periodic checkpoints it stays in
// waiting. Guarantees: a checkpoint is published only when every pod has written its part of one
// snapshot of one step; training is never held. Whatever goes wrong, and a breakpoint that begins,
// gives the checkpoint under way up; its folder is removed, and the next one comes in its time. A
// breakpoint never waits for it. Assumptions: after a pod was lost and came back everything is
// planned anew, so no order is sent twice.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/enum_names.h"
#include "worker-sidecar/checkpoint/snapshot_schedule.h"
#include "worker-sidecar/coordination/breakpoint_coordinator.h"
#include "worker-sidecar/coordination/config.h"
#include "worker-sidecar/coordination/event.h"
#include "worker-sidecar/coordination/job_layouts.h"
#include "worker-sidecar/coordination/local_ranks.h"
#include "worker-sidecar/coordination/membership.h"
#include "worker-sidecar/coordination/output.h"
#include "worker-sidecar/coordination/writing_round.h"

namespace rekindle::sidecar {

enum class PeriodicState : std::uint8_t { off, keeping, waiting, snapshotting, creating, writing, publishing };
constexpr auto enum_names(PeriodicState) {
  return std::to_array<EnumName<PeriodicState>>({
      {PeriodicState::off, "off"},
      {PeriodicState::keeping, "keeping"},
      {PeriodicState::waiting, "waiting"},
      {PeriodicState::snapshotting, "snapshotting"},
      {PeriodicState::creating, "creating"},
      {PeriodicState::writing, "writing"},
      {PeriodicState::publishing, "publishing"},
  });
}

class PeriodicLeader {
 public:
  PeriodicLeader(const CoordinationConfig& config, const Membership& pods, const LocalRanks& ranks,
                 const JobLayouts& layouts)
      : config_(config), pods_(pods), ranks_(ranks), layouts_(layouts), schedule_(config.snapshots), writing_(config) {}

  void begin_attempt(std::uint32_t attempt, std::optional<std::uint64_t> step, std::optional<ParentPoint> parent,
                     FailureHistory failures, Instant now);

  // After every event: `may_lead` while this pod is the lowest that can be reached, all can, and no
  // breakpoint is under way.
  void drive(bool may_lead, Instant now, CoordinationOutputs& out);

  void on_pods_changed() { plan_stale_ = true; }
  // What some rank holds has changed, and JobLayouts knows. Tensors that appear late seldom come
  // alone, so the new plan waits a moment.
  void on_layouts_changed(Instant now);
  void on_kept(const PeerKeptMessage& kept, Instant now, CoordinationOutputs& out);
  void on_snapshotted(const PodSnapshottedMessage& snapshotted, Instant now, CoordinationOutputs& out);
  void on_folder_created(const FolderCreated& created, Instant now, CoordinationOutputs& out);
  void on_written(const PodWrittenMessage& written, Instant now, CoordinationOutputs& out);
  // What is durable now, for the breakpoints of the same step.
  std::optional<KnownCheckpoint> on_published(const CheckpointPublished& published, Instant now,
                                              CoordinationOutputs& out);

  std::optional<Instant> next_wake() const;
  PeriodicState state() const { return state_; }

 private:
  void send_to_all(const PeerMessage& message, CoordinationOutputs& out) const;
  void next_term();
  void keep(Instant now, CoordinationOutputs& out);
  void evaluate(Instant now, CoordinationOutputs& out);
  void publish(Instant now, CoordinationOutputs& out);
  Result<Manifest> make_manifest() const;
  void give_up(const Error& why, Instant now, CoordinationOutputs& out);
  void drop(Instant now, CoordinationOutputs& out);
  void fall_back(const Error& why, Instant now, CoordinationOutputs& out);
  void note(const Error& error, CoordinationOutputs& out);

  const CoordinationConfig& config_;
  const Membership& pods_;
  const LocalRanks& ranks_;
  const JobLayouts& layouts_;
  SnapshotSchedule schedule_;

  std::uint32_t attempt_ = 0;
  std::optional<ParentPoint> parent_;
  PeriodicState state_ = PeriodicState::off;
  bool may_lead_ = false;
  bool plan_stale_ = true;
  Instant retry_at_;
  std::uint64_t number_ = 0;
  std::uint64_t term_ = 0;
  std::set<std::uint32_t> awaited_;  // pods; ranks while keeping
  Instant requested_at_;

  std::shared_ptr<const JobShards> shards_;
  std::vector<WriterPlan> shares_;

  std::uint64_t step_ = 0;
  Instant taken_at_;
  std::uint64_t longest_microseconds_ = 0;
  WritingRound writing_;
  std::uint64_t bytes_ = 0;
  std::string noted_;  // the last thing that went wrong
};

}  // namespace rekindle::sidecar
