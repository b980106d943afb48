// `rekindle checkpoint groups`: which rank of a MindSpore job restores each group, whether what the
// ranks hold allows it, and a lost rank's file from a copy.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "worker-sidecar/cli/command_streams.h"
#include "worker-sidecar/storage/file_system.h"

namespace rekindle::cli {

struct GroupsQuestion {
  // holds device<rank>/group_info.pb or rank_<rank>/group_info.pb
  std::string root;
  std::vector<std::uint32_t> faulty;
  std::optional<std::uint32_t> world_size;
  // holds the ranks' checkpoint files; empty: they are not read (with rebuild: `root`)
  std::string checkpoints;
  std::string prefix;  // of their names; empty: any
  // give lost ranks a copy of the file that is chosen for them
  bool rebuild = false;
};

// The exit code: kExitProblemsFound also when a group has no living copy, or what the ranks hold
// does not fit together.
int show_groups(FileSystem& file_system, const GroupsQuestion& question, const std::string& nonce,
                CommandStreams streams);

}  // namespace rekindle::cli
