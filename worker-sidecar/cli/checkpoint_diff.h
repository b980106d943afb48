// `rekindle checkpoint diff`: in what two checkpoints differ.
#pragma once

#include <string>

#include "worker-sidecar/cli/command_streams.h"
#include "worker-sidecar/storage/file_system.h"

namespace rekindle::cli {

// Verifies both, then compares tensors by name (type, shape, every byte) and states by rank and
// name. How a checkpoint is cut into files does not count. Returns the exit code: 0 the same, 1
// different or not readable.
int diff_checkpoints(FileSystem& file_system, const std::string& left, const std::string& right,
                     CommandStreams streams);

}  // namespace rekindle::cli
