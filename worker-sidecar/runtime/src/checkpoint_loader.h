// Fills the registered memory from one checkpoint, every byte verified on the way.
//
// Threads: the training thread, while nothing is being trained.
#pragma once

#include <string>
#include <vector>

#include "common/base/error.h"
#include "worker-sidecar/checkpoint/manifest.h"
#include "worker-sidecar/runtime/src/failure.h"
#include "worker-sidecar/runtime/src/registry.h"
#include "worker-sidecar/runtime/src/restore_tries.h"
#include "worker-sidecar/storage/file_system.h"
#include "worker-sidecar/storage/piece_reader.h"

namespace rekindle::runtime {

struct CheckpointPlace {
  std::string job_folder;
  // name of the folder inside it
  std::string path;
  std::string manifest_hash;  // empty: whatever it is
};

struct RankPlace {
  std::uint32_t rank = 0;
  std::uint32_t world_size = 1;
  // of this pod, which read the same files at the same time
  std::uint32_t ranks_here = 1;
  bool job_checked = false;  // as in RestoreTarget
};

// What the program is given only when the whole job has taken the checkpoint: states of variable
// size and the cursor.
struct HeldState {
  std::size_t index = 0;  // of the registered states
  std::vector<char> bytes;
};

struct Loading {
  Done result;
  ErrorCode code = ErrorCode::internal;  // of a failure, for checkpoint/restore_policy.h
  bool state_missing = false;
  bool memory_touched = false;  // also after a failure
  ReadReport read;              // after a success
  std::vector<HeldState> held;
};

// CORRUPT, MISMATCH with the differences, STORAGE, UNAVAILABLE.
Loading load_checkpoint(FileSystem& file_system, const CheckpointPlace& place, const RankPlace& rank,
                        const Registry& registry);

// The same again and again while that may help, as checkpoint/restore_policy.h has it. `then`: what
// becomes of the checkpoint after the failure that is returned.
Loading load_patiently(FileSystem& file_system, const CheckpointPlace& place, const RankPlace& rank,
                       const Registry& registry, RestoreTries tries, AfterFailure& then);

// Hands over what was held. MISMATCH with the state's name when its load function refuses the
// bytes.
Done hand_over(const std::vector<HeldState>& held, const Registry& registry);

}  // namespace rekindle::runtime
