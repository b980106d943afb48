// `rekindle checkpoint groups`: which ranks of a MindSpore job can stand in for the lost ones (docs/formats/group-info.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "worker-sidecar/cli/command_streams.h"
#include "worker-sidecar/storage/file_system.h"

namespace rekindle {

struct GroupsQuestion {
  std::string root;  // the folder with device<rank>/group_info.pb or rank_<rank>/group_info.pb
  std::vector<std::uint32_t> faulty;
  std::optional<std::uint32_t> world_size;
};

// Prints the groups and the values of RESTORE_RANKS and RESTORE_RANKS_MAP. Returns the exit code: 0 when every group has a living copy, else 1.
int show_groups(FileSystem& file_system, const GroupsQuestion& question, CommandStreams streams);

}  // namespace rekindle
