#include "worker-sidecar/mindspore/group_info.h"

#include <algorithm>

#include "common/base/format.h"
#include "worker-sidecar/mindspore/group_info.pb.h"

namespace rekindle {

using mindspore::straspb::ParallelGroupMap;

Result<RankGroup> decode_group_info(std::string_view bytes) {
  if (bytes.empty()) return fail(ErrorCode::corrupt, "the file is empty");
  if (bytes.size() > kGroupInfoBytesMax) {
    return fail(ErrorCode::invalid_input,
                format("it has {} bytes; at most {} are read", bytes.size(), kGroupInfoBytesMax));
  }
  ParallelGroupMap map;
  if (!map.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return fail(ErrorCode::corrupt, "it is damaged, or is not a group_info.pb of MindSpore");
  if (map.parallel_group_item_size() > kCommunicationGroupsMax) {
    return fail(ErrorCode::invalid_input, format("it has {} communication groups; at most {} are read",
                                                 map.parallel_group_item_size(), kCommunicationGroupsMax));
  }
  if (!map.has_ckpt_restore_rank_list()) {
    return fail(ErrorCode::invalid_input, "it has no list of ranks that restore (ckpt_restore_rank_list, field 2)");
  }
  const auto& ranks = map.ckpt_restore_rank_list().dim();
  RankGroup group(ranks.begin(), ranks.end());
  if (group.empty())
    return fail(ErrorCode::invalid_input, "its list of ranks that restore (ckpt_restore_rank_list) is empty");
  std::ranges::sort(group);
  if (group.back() > kGroupRankMax) {
    return fail(ErrorCode::invalid_input, format("it lists rank {}; ranks go up to {}", group.back(), kGroupRankMax));
  }
  if (const auto twice = std::ranges::adjacent_find(group); twice != group.end()) {
    return fail(ErrorCode::invalid_input, format("it lists rank {} twice", *twice));
  }
  return group;
}

std::string encode_group_info(const RankGroup& ranks) {
  ParallelGroupMap map;
  map.mutable_ckpt_restore_rank_list()->mutable_dim()->Add(ranks.begin(), ranks.end());
  return map.SerializeAsString();
}

std::string comma_joined(const std::vector<std::uint32_t>& ranks) {
  std::string text;
  for (const std::uint32_t rank : ranks) text.append(text.empty() ? "" : ",").append(std::to_string(rank));
  return text;
}

}  // namespace rekindle
