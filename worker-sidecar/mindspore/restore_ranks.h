// Which rank's checkpoint restores each group of ranks with identical parameters
// (docs/formats/group-info.md). Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "worker-sidecar/mindspore/group_info.h"

namespace rekindle {

struct GroupChoice {
  RankGroup ranks;
  std::vector<std::uint32_t> usable;    // without the faulty ones, ascending
  std::optional<std::uint32_t> chosen;  // the smallest usable
};

// Every rank of the world is in exactly one group; by their smallest rank.
using RestoreChoice = std::vector<GroupChoice>;

// `groups`: what the file of each rank says, as decode_group_info gives it; ranks without a file
// are known from the files of others. Without `world_size` the largest rank that is named anywhere
// is the last. Errors (invalid_input) name the ranks: the files do not fit together, or leave a
// rank without a group. A group without a usable rank is no error here.
Result<RestoreChoice> choose_restore_ranks(const std::map<std::uint32_t, RankGroup>& groups,
                                           const std::set<std::uint32_t>& faulty,
                                           std::optional<std::uint32_t> world_size = {});

// A message for each group that has no living copy.
std::vector<std::string> lost_groups(const RestoreChoice& choice);

struct RestoreEnvironment {
  // RESTORE_RANKS; "-1": take the periodic checkpoint
  std::string ranks;
  std::optional<std::string> map;  // RESTORE_RANKS_MAP, JSON; nothing with "-1"
};

RestoreEnvironment restore_environment(const RestoreChoice& choice);

struct HeldCheckpoint {
  std::uint64_t step = 0;
  // of the parameters, without what belongs to one rank only
  std::string hash;
};

// Refuses (by name) a choice that would mix steps or trust one of two copies that differ. `held`:
// what each rank has; a rank that is not in it has nothing.
Status check_copies(const RestoreChoice& choice, const std::map<std::uint32_t, HeldCheckpoint>& held);

}  // namespace rekindle
