// `rekindle checkpoint import`: files that others wrote become the checkpoint from which a job goes
// on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "worker-sidecar/cli/command_streams.h"
#include "worker-sidecar/storage/file_system.h"

namespace rekindle::cli {

struct ImportQuestion {
  std::vector<std::string> files;
  // the folder above the folders of jobs
  std::string root;
  std::string job;  // "<namespace>.<job>"
  // without it the files must say it
  std::optional<std::uint64_t> step;
};

// What comes from outside the command: the wall clock as text, and names that no other process has.
struct ImportStamp {
  std::string time;
  std::string nonce;
};

// Writes a complete checkpoint of a new attempt that continues nothing, verifies it, and claims the
// attempt's record, so that the next start of the job restores it. The checkpoints that were there
// before stay, off the line. An error leaves nothing behind. Returns the exit code.
int import_checkpoint(FileSystem& file_system, const ImportQuestion& question, const ImportStamp& stamp,
                      CommandStreams streams);

}  // namespace rekindle::cli
