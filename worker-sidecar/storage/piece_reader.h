// Reads a restore plan into memory, every file verified on the way.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "common/base/error.h"
#include "worker-sidecar/checkpoint/restore_plan.h"
#include "worker-sidecar/storage/array_memory.h"
#include "worker-sidecar/storage/file_system.h"

namespace rekindle {

struct Destination {
  void* data = nullptr;
  std::uint64_t bytes = 0;
  const ArrayMemory* array = nullptr;  // instead of `data`
};

struct RestoreMemory {
  std::span<const Destination> tensors;  // one for each tensor of the layout that the plan was made for
  std::span<const Destination> states;   // one for each registered state
};

// Reads each file that the plan names once, from beginning to end, hashes it, and copies what the plan asks for. Success means that size and
// hash of every such file were right. After a failure the memory may be partly overwritten. Errors: corrupt (with the
// file's name), not_found, io. `may_go_on` as in file_writer.h.
Status read_plan(FileSystem& file_system, const std::string& checkpoint_folder, const Manifest& manifest,
                 const RestorePlan& plan, const RestoreMemory& memory, const std::function<Status()>& may_go_on = {});

// Only the ranges, without hashes: for a checkpoint that has just been verified.
Status read_plan_unverified(FileSystem& file_system, const std::string& checkpoint_folder, const RestorePlan& plan,
                            const RestoreMemory& memory);

}  // namespace rekindle
