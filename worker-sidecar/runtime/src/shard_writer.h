// Carries out one write order: this rank's pieces of a checkpoint, straight from the registered
// memory into a file (PROTOCOL P4).
//
// A rank that is pinned cannot change what is being read. Whether it still is pinned is checked
// again for each chunk: the hold in the control block has the order's number, and the word is clean
// at the order's step. If not, what was written is removed.
//
// Threads: the library's thread. The registry is locked for the whole write.
#pragma once

#include <functional>
#include <string>

#include "common/base/error.h"
#include "worker-sidecar/protocol/control_block.h"
#include "worker-sidecar/protocol/local_message.h"
#include "worker-sidecar/runtime/src/gates.h"
#include "worker-sidecar/runtime/src/registry.h"
#include "worker-sidecar/runtime/src/small_state.h"
#include "worker-sidecar/storage/file_system.h"
#include "worker-sidecar/storage/file_writer.h"

namespace rekindle::runtime {

struct PinnedRank {
  const Registry& registry;
  const SmallState& small_state;
  const Gates& gates;
  const ControlBlock& block;
};

// Where rows of a tensor lie at the committed step, whose captured values are in `slot`.
// Unavailable when they could not be captured.
Result<MemoryPiece> piece_of(const RegisteredTensor& tensor, std::uint64_t begin_row, std::uint64_t end_row,
                             const SmallState& small_state, std::uint8_t slot);

// Conflict, with what is no longer so, or success while the rank is pinned for this order.
Status check_pin(const WriteMessage& order, const PinnedRank& rank);

// `may_go_on` is called for each chunk besides the pin. `job_folder` holds the folder that the
// order names.
Result<WrittenFile> write_shard(FileSystem& file_system, const std::string& job_folder, const WriteMessage& order,
                                const PinnedRank& rank, const std::function<Status()>& may_go_on,
                                std::uint64_t bytes_per_second_max = 0);

}  // namespace rekindle::runtime
