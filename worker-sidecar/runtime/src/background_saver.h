// Periodic checkpoints of a process that runs without a sidecar: a thread that says at which step a
// snapshot is taken, and writes it while training goes on. Exists only when the user has configured
// periodic checkpoints (REKINDLE_CHECKPOINT_EVERY or REKINDLE_CHECKPOINT_CONFIG).
//
// What is done when stands in SaverAgenda; this is its thread.
// Threads: plan(), taken() and the destructor on the training thread. The destructor waits until a
// snapshot that was taken is durable.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>

#include "common/base/instant.h"
#include "worker-sidecar/protocol/control_block.h"
#include "worker-sidecar/protocol/local_message.h"
#include "worker-sidecar/runtime/src/registry.h"
#include "worker-sidecar/runtime/src/saver_agenda.h"
#include "worker-sidecar/runtime/src/shadow_keeper.h"
#include "worker-sidecar/runtime/src/stand_alone.h"

namespace rekindle::runtime {

class BackgroundSaver {
 public:
  // All outlive this. Training begins after `step`.
  BackgroundSaver(StandAlone& alone, const SnapshotSettings& settings, ControlBlock& block, ShadowKeeper& keeper,
                  std::uint64_t step);
  ~BackgroundSaver();

  // What is registered, at the start and after each change. Without memory for the copy there are
  // no periodic checkpoints until the next change, and it is said.
  void plan(const Registry& registry);

  // The keeper's report, with the states as the slot of that step has them, and the copy. What is
  // registered may change before it is written.
  void taken(const SnapshottedMessage& message, StandAlone::Snapshot snapshot);

 private:
  void run();
  // With mutex_ held.
  void write(std::unique_lock<std::mutex>& held);

  StandAlone& alone_;
  ControlBlock& block_;
  ShadowKeeper& keeper_;

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  SaverAgenda agenda_;
  StandAlone::Snapshot snapshot_;  // the one that the agenda has to write
  std::string reported_problem_;

  std::thread thread_;
};

}  // namespace rekindle::runtime
