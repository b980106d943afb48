// `rekindle checkpoint verify`: what is wrong, where, what it hits, and what can still be restored.
#pragma once

#include <string>
#include <vector>

#include "worker-sidecar/cli/command_streams.h"
#include "worker-sidecar/storage/file_system.h"

namespace rekindle::cli {

int verify_checkpoints(FileSystem& file_system, const std::vector<std::string>& directories, CommandStreams streams);

}  // namespace rekindle::cli
