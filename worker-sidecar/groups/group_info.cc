#include "worker-sidecar/groups/group_info.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include <google/protobuf/io/coded_stream.h>

#include "worker-sidecar/groups/group_info.pb.h"

namespace rekindle {
namespace {

using google::protobuf::io::CodedInputStream;
using mindspore::straspb::ParallelGroupMap;
using mindspore::straspb::ParallelGroupRanks;

// How a protobuf field is laid out: the low three bits of its tag.
enum WireType : std::uint32_t { kVarint = 0, kEightBytes = 1, kLengthDelimited = 2, kFourBytes = 5 };

bool parse(google::protobuf::MessageLite& message, std::string_view bytes) {
  return message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()));
}

// The length-delimited ones of `unknown` by their numbers; parts of one field are laid end to end, which is how protobuf merges messages.
// Stops at what it cannot step over (a group, which nobody writes).
std::map<std::uint32_t, std::string> length_delimited_fields(std::string_view unknown) {
  std::map<std::uint32_t, std::string> fields;
  CodedInputStream stream(reinterpret_cast<const std::uint8_t*>(unknown.data()), static_cast<int>(unknown.size()));
  while (const std::uint32_t tag = stream.ReadTag()) {
    std::uint64_t number = 0;
    std::uint32_t bytes = 0;
    std::string part;
    bool passed = false;
    switch (tag & 7) {
      case kVarint: passed = stream.ReadVarint64(&number); break;
      case kEightBytes: passed = stream.Skip(8); break;
      case kFourBytes: passed = stream.Skip(4); break;
      case kLengthDelimited:
        passed = stream.ReadVarint32(&bytes) && stream.ReadString(&part, static_cast<int>(bytes));
        if (passed) fields[tag >> 3] += part;
        break;
      default: break;
    }
    if (!passed) break;
  }
  return fields;
}

// The field that is a message of ranks and nothing else, where ckpt_restore_rank_list has no place of its own.
Result<ParallelGroupRanks> find_ranks_elsewhere(std::string_view unknown) {
  std::optional<std::pair<std::uint32_t, ParallelGroupRanks>> found;
  for (const auto& [number, bytes] : length_delimited_fields(unknown)) {
    ParallelGroupRanks ranks;
    if (!parse(ranks, bytes) || ranks.dim_size() == 0 || !ranks.unknown_fields().empty()) continue;
    if (found) {
      return fail(ErrorCode::invalid_input, "field 2 is missing, and fields " + std::to_string(found->first) + " and " + std::to_string(number) +
                                                " could both be the list of ranks that restore");
    }
    found.emplace(number, std::move(ranks));
  }
  if (!found) return fail(ErrorCode::invalid_input, "it has no list of ranks that restore (ckpt_restore_rank_list)");
  return std::move(found->second);
}

}  // namespace

Result<RankGroup> decode_group_info(std::string_view bytes) {
  if (bytes.empty()) return fail(ErrorCode::corrupt, "the file is empty");
  if (bytes.size() > kGroupInfoBytesMax) {
    return fail(ErrorCode::invalid_input, "it has " + std::to_string(bytes.size()) + " bytes; at most " + std::to_string(kGroupInfoBytesMax) + " are read");
  }
  ParallelGroupMap map;
  if (!parse(map, bytes)) return fail(ErrorCode::corrupt, "it is damaged, or is not a group_info.pb of MindSpore");
  if (map.parallel_group_item_size() > kCommunicationGroupsMax) {
    return fail(ErrorCode::invalid_input, "it has " + std::to_string(map.parallel_group_item_size()) + " communication groups; at most " +
                                              std::to_string(kCommunicationGroupsMax) + " are read");
  }
  const Result<ParallelGroupRanks> ranks =
      map.has_ckpt_restore_rank_list() ? std::move(*map.mutable_ckpt_restore_rank_list()) : find_ranks_elsewhere(map.unknown_fields());
  if (!ranks) return std::unexpected(ranks.error());
  RankGroup group(ranks->dim().begin(), ranks->dim().end());
  if (group.empty()) return fail(ErrorCode::invalid_input, "its list of ranks that restore (ckpt_restore_rank_list) is empty");
  std::ranges::sort(group);
  if (group.back() > kGroupRankMax) {
    return fail(ErrorCode::invalid_input, "it lists rank " + std::to_string(group.back()) + "; ranks go up to " + std::to_string(kGroupRankMax));
  }
  if (const auto twice = std::ranges::adjacent_find(group); twice != group.end()) {
    return fail(ErrorCode::invalid_input, "it lists rank " + std::to_string(*twice) + " twice");
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
