// The numbers of memory_room.h as the kernel has them now.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "worker-sidecar/runtime/src/memory_room.h"

namespace rekindle::runtime {

// Of this process. `root` stands in front of every path, for tests. Never fails: what cannot be
// read is absent.
MemoryRoom read_memory_room(const std::string& root = "");

// Free on the volume that the file is on; absent where it has no bound.
std::optional<std::uint64_t> free_volume_bytes(int descriptor);

}  // namespace rekindle::runtime
