// `rekindle checkpoint prune`: removes what no restart needs.
#pragma once

#include <cstdint>
#include <string>

#include "worker-sidecar/cli/command_streams.h"
#include "worker-sidecar/storage/file_system.h"

namespace rekindle::cli {

struct PruneQuestion {
  std::string directory;  // the folder of one job
  std::uint32_t keep = 3;
  bool dry_run = false;
};

// By the rules of checkpoint/retention.h: the newest usable ones stay, and so does what cannot be
// read. Returns the exit code.
int prune_job(FileSystem& file_system, const PruneQuestion& question, CommandStreams streams);

}  // namespace rekindle::cli
