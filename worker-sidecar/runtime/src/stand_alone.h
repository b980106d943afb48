// Checkpoints of a process that runs without a sidecar: one rank, which claims its own attempt,
// writes and publishes by itself. Files and folders are those of docs/formats/checkpoint.md, so
// `rekindle checkpoint` and a later run under a sidecar read them.
//
// Threads: the training thread; save() is for any, and that of a BackgroundSaver calls it. One of
// the two writes at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "worker-sidecar/checkpoint/attempt.h"
#include "worker-sidecar/checkpoint/candidates.h"
#include "worker-sidecar/checkpoint/interval.h"
#include "worker-sidecar/checkpoint/manifest.h"
#include "worker-sidecar/runtime/src/checkpoint_loader.h"
#include "worker-sidecar/runtime/src/failure.h"
#include "worker-sidecar/runtime/src/open_options.h"
#include "worker-sidecar/runtime/src/registry.h"
#include "worker-sidecar/runtime/src/shadow_mapping.h"
#include "worker-sidecar/runtime/src/small_state.h"
#include "worker-sidecar/storage/file_system.h"
#include "worker-sidecar/storage/file_writer.h"
#include "worker-sidecar/storage/waiter.h"

namespace rekindle::runtime {

class StandAlone {
 public:
  struct Restored {
    std::uint64_t attempt = 1;
    std::uint64_t step = 0;
    // whole path, empty when there was nothing
    std::string path;
    bool state_missing = false;
  };

  // Opens or makes the job's folder and tries what it needs there. Without a checkpoint folder
  // everything but checkpoint() works. Storage that fails for a while is waited for by `waiter`.
  static Outcome<StandAlone> open(FileSystem& file_system, const OpenOptions& options, Waiter& waiter = real_waiter());

  // The newest checkpoint that verifies, by checkpoint/restore_policy.h; then claims the attempt
  // that continues it.
  Outcome<Restored> restore(const Registry& registry);

  // What is saved: the states, and what describes the tensors whose bytes lie elsewhere.
  struct NamedState {
    std::string name;
    std::string bytes;
  };
  struct Snapshot {
    std::uint64_t step = 0;
    Layout layout;
    std::vector<NamedState> states;
    bool states_incomplete = false;  // none are kept then
    // Has the tensors of exactly this step and layout. Null: they are read where they are
    // registered.
    std::shared_ptr<const ShadowMapping> copy;
  };
  static Snapshot describe(const Registry& registry, const SmallState& small_state, std::uint64_t step,
                           std::uint8_t slot);

  // A snapshot with a copy of its own, durable when it returns. Answers with the folder's name.
  // STATE, and nothing is published, when the copy is, or becomes meanwhile, that of another step.
  // Any thread.
  Outcome<std::string> save(const Snapshot& snapshot, std::string rhythm);

  // How often the job has failed before this attempt.
  FailureHistory failures() const { return failures_; }

  // Durable when it returns. `slot` holds the captured values of this step.
  Done checkpoint(const Registry& registry, const SmallState& small_state, std::uint64_t step, std::uint8_t slot);

 private:
  StandAlone(FileSystem& file_system, Waiter& waiter, JobIdentity job, std::string job_folder,
             CheckpointSettings settings)
      : file_system_(&file_system),
        waiter_(&waiter),
        job_(std::move(job)),
        job_folder_(std::move(job_folder)),
        settings_(settings) {}

  struct Found {
    FolderScan scan;
    CandidateOrder order;
  };
  Outcome<Found> find_checkpoints();

  // `tensors[i]` is the i-th of the layout.
  Outcome<std::string> write(const Snapshot& snapshot, const std::vector<MemoryPiece>& tensors,
                             CheckpointTrigger trigger);
  // Files and manifest of one folder.
  Done fill(const std::string& name, const std::string& nonce, const Snapshot& snapshot,
            const std::vector<MemoryPiece>& tensors, CheckpointTrigger trigger);

  FileSystem* file_system_;
  Waiter* waiter_;
  JobIdentity job_;
  std::string job_folder_;  // empty: there is none
  CheckpointSettings settings_;
  AttemptRecord attempt_;
  FailureHistory failures_;
  // one at a time: both prune
  std::unique_ptr<std::mutex> writing_ = std::make_unique<std::mutex>();
};

}  // namespace rekindle::runtime
