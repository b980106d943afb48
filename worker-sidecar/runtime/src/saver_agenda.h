// What the background saver of a process without a sidecar does next. Pure: from the steps that the
// process makes, what came of the snapshots, and a time.
//
// One snapshot at a time: the next one is announced when the last is durable or has failed.
#pragma once

#include <cstdint>
#include <optional>

#include "common/base/instant.h"
#include "worker-sidecar/checkpoint/snapshot_schedule.h"

namespace rekindle::runtime {

class SaverAgenda {
 public:
  struct Next {
    enum class Work { wait, write, end } work = Work::wait;
    // to wait: the step at which the process is to copy its state, when it is a new one
    std::optional<std::uint64_t> announce;
    Instant wake{};  // to wait: when to ask again
  };

  // Training begins after `step`.
  SaverAgenda(const SnapshotSettings& settings, std::uint64_t step, FailureHistory failures, Instant now);

  // What to do now, where the process has made `step`.
  Next next(std::uint64_t step, Instant now);

  // Whether there is memory for the next copy.
  void planned(bool has_room) { has_room_ = has_room; }
  // There is a copy, for which training stood so long.
  void taken(Duration stopped);
  // There is none, or it could not be written.
  void failed(Instant now);
  // It is durable, after so long.
  void saved(Duration written, Instant now);
  // What was taken is still written.
  void close() { closing_ = true; }

  const SnapshotSchedule& schedule() const { return schedule_; }

 private:
  SnapshotSchedule schedule_;
  bool has_room_ = false;
  bool closing_ = false;
  std::optional<std::uint64_t> target_step_;
  // how long training stood for the copy that is to be written, and for the one that is being
  // written
  std::optional<Duration> copy_waits_;
  Duration writing_{0};
};

}  // namespace rekindle::runtime
