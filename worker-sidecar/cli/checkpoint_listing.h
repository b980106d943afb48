// What `ls` and `show` print. Each returns the exit code.
#pragma once

#include <string>
#include <vector>

#include "worker-sidecar/cli/command_streams.h"
#include "worker-sidecar/storage/file_system.h"

namespace rekindle::cli {

int list_checkpoints(FileSystem& file_system, const std::vector<std::string>& directories, CommandStreams streams);
int show_checkpoints(FileSystem& file_system, const std::vector<std::string>& directories, CommandStreams streams);

}  // namespace rekindle::cli
