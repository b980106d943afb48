// group_info.pb: the ranks that hold the same parameters as the rank that wrote it
// (docs/formats/group-info.md). Bytes in, values out. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"

namespace rekindle {

inline constexpr std::size_t kGroupInfoBytesMax = 1u << 20;
inline constexpr int kCommunicationGroupsMax = 10'000;
inline constexpr std::uint32_t kGroupRankMax = 4095;

// Ranks with identical parameters, ascending, each once, none above kGroupRankMax, at least one.
using RankGroup = std::vector<std::uint32_t>;

// Errors: corrupt (not such a file, or cut short), invalid_input (a limit or a rule is broken). The
// message does not name the file.
Result<RankGroup> decode_group_info(std::string_view bytes);

// What MindSpore's restore_group_info_list reads back.
// For tests: what the reader has to read.
std::string encode_group_info(const RankGroup& ranks);

// "0,4": how a group is named in RESTORE_RANKS_MAP and to people.
std::string comma_joined(const std::vector<std::uint32_t>& ranks);

}  // namespace rekindle
