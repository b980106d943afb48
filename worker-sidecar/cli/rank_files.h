// The checkpoint files that MindSpore's ranks left when something was ending, one folder a rank,
// and a lost one's copy from a replica.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "worker-sidecar/cli/progress.h"
#include "worker-sidecar/mindspore/restore_ranks.h"
#include "worker-sidecar/storage/file_system.h"

namespace rekindle::cli {

struct RankFile {
  std::string folder;  // "rank_3", inside the root
  std::string name;    // "resnet-2_84_breakpoint.ckpt"
  HeldCheckpoint held;
};

struct RankFiles {
  // of each rank that has one
  std::map<std::uint32_t, std::string> folders;
  // the newest of each rank that reads well
  std::map<std::uint32_t, RankFile> files;
  // a message for each file that does not
  std::vector<std::string> unreadable;
};

// Searches rank_<r>/ and device<r>/ of `root` for <prefix>-<epoch>_<step>_breakpoint.ckpt and
// ttp_rank_<r>-<epoch>_<step>.ckpt. The step is step_num inside the file, the hash one of
// everything in it but what belongs to one rank only. Error: the root cannot be read, or has two
// folders of one rank.
Result<RankFiles> find_rank_files(FileSystem& file_system, const std::string& root, const std::string& prefix,
                                  Progress& progress);

struct RebuiltFile {
  std::uint32_t rank = 0;
  std::uint32_t from_rank = 0;
  std::string path;  // inside the root
};

// Gives every rank of `lost` the file of the rank that is chosen for its group; check_copies has
// passed. A rank that has an equal one is left as it is. Each copy is read back and compared before
// it gets its name, and replaces nothing.
Result<std::vector<RebuiltFile>> rebuild_rank_files(FileSystem& file_system, const std::string& root,
                                                    const RankFiles& files, const RestoreChoice& choice,
                                                    const std::set<std::uint32_t>& lost, const std::string& nonce,
                                                    Progress& progress);

}  // namespace rekindle::cli
