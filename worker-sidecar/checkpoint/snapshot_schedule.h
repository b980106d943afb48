// When the next periodic checkpoint is due, and at which step its snapshot is taken. Pure: a
// function of what has happened and the time; used by the coordinating sidecar and by a process
// that runs alone.
//
// A snapshot is announced for a step that lies ahead, because every rank has to take it at the same
// one. How far ahead: as many steps as ranks make while the announcement travels, doubled whenever
// it came too late.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/instant.h"
#include "common/contract/checkpoint_settings.h"
#include "worker-sidecar/checkpoint/interval.h"

namespace rekindle {

// What one periodic checkpoint cost.
struct SnapshotCost {
  // training stood for the copy, the longest of all ranks
  Duration stopped{0};
  // from the copy until it was durable
  Duration written{0};
};

class SnapshotSchedule {
 public:
  explicit SnapshotSchedule(SnapshotSettings settings) : settings_(settings) {}

  // Training begins, or goes on, after this step; none: which one, the first look will tell.
  void begin(std::optional<std::uint64_t> step, FailureHistory failures, Instant now);

  // The step to announce, now that ranks have reached `step` and nothing is under way; nothing
  // while it is not due yet.
  std::optional<std::uint64_t> next_target(std::uint64_t step, Instant now);

  // Ranks had passed the target before they were notified of it.
  void missed();
  // It failed or was given up: the next one comes after the usual time, or at the next multiple of
  // the steps.
  void abandoned(Instant now);
  void done(const SnapshotCost& cost, Instant now);

  // When to check the ranks' steps again.
  std::optional<Instant> next_check() const;

  // Between checkpoints, for rhythm time and automatic.
  Duration interval() const;
  const SnapshotSettings& settings() const { return settings_; }

  // Why it is so often, for the log: "every 84.00 s: the last copy took 310.00 ms, writing it 2.00
  // s, a failure is expected every 8.00 h (2 seen)".
  std::string explain() const;

 private:
  void observe(std::uint64_t step, Instant now);

  SnapshotSettings settings_;
  FailureHistory failures_;
  SnapshotCost cost_{.stopped = std::chrono::seconds(1)};  // until one was measured
  bool begun_ = false;
  Instant began_;
  Instant due_;
  std::uint64_t announced_ = 0;  // the newest target
  std::uint64_t margin_steps_ = 1;
  Instant looked_;
  Instant seen_at_;
  std::optional<std::uint64_t> seen_step_;
};

}  // namespace rekindle
