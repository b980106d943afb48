#include "worker-sidecar/mindspore/group_info.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "common/base/format.h"
#include "tests/support/random_seed.h"
#include "worker-sidecar/mindspore/group_info.pb.h"

namespace rekindle {
namespace {

using mindspore::straspb::ParallelGroupMap;

std::string bytes_of(std::initializer_list<unsigned char> bytes) { return {bytes.begin(), bytes.end()}; }

// What MindSpore writes: the communication groups, then the answer.
ParallelGroupMap make_map(const RankGroup& ranks, int communication_groups = 2) {
  ParallelGroupMap map;
  for (int i = 0; i < communication_groups; ++i) {
    auto* item = map.add_parallel_group_item();
    item->set_group_name(format("group-{}", i));
    item->mutable_parallel_group_ranks()->add_dim(7);
  }
  for (const std::uint32_t rank : ranks) map.mutable_ckpt_restore_rank_list()->add_dim(rank);
  return map;
}

std::string group_error_of(std::string_view bytes) {
  const Result<RankGroup> group = decode_group_info(bytes);
  return group ? "fine" : group.error().message;
}

TEST(GroupInfo, ReadsWhatProtobufsOwnWriterMade) {
  EXPECT_EQ(decode_group_info(make_map({39, 47, 55, 63}).SerializeAsString()), (RankGroup{39, 47, 55, 63}));
}

// These bytes came out of MindSpore 2.10.0's own message class (Python): world group of 8, ranks 0
// and 4 alike.
TEST(GroupInfo, ReadsWhatMindSporeMade) {
  const std::string bytes = bytes_of({0x0a, 0x24, 0x0a, 0x10}) + "hccl_world_group" +
                            bytes_of({0x12, 0x10, 0x08, 0x00, 0x08, 0x01, 0x08, 0x02, 0x08, 0x03, 0x08, 0x04, 0x08,
                                      0x05, 0x08, 0x06, 0x08, 0x07}) +
                            bytes_of({0x12, 0x04, 0x08, 0x00, 0x08, 0x04});
  EXPECT_EQ(decode_group_info(bytes), (RankGroup{0, 4}));
}

TEST(GroupInfo, WritesTheListAsFieldTwo) {
  EXPECT_EQ(encode_group_info({0, 4}), bytes_of({0x12, 0x04, 0x08, 0x00, 0x08, 0x04}));
  EXPECT_EQ(decode_group_info(encode_group_info({1, 5, 4095})), (RankGroup{1, 5, 4095}));
}

TEST(GroupInfo, ReadsPackedListsAndListsInPartsAndSorts) {
  EXPECT_EQ(decode_group_info(bytes_of({0x12, 0x04, 0x0a, 0x02, 0x04, 0x00})), (RankGroup{0, 4})) << "packed";
  EXPECT_EQ(decode_group_info(bytes_of({0x12, 0x02, 0x08, 0x04, 0x12, 0x02, 0x08, 0x00})), (RankGroup{0, 4}))
      << "in two parts";
}

TEST(GroupInfo, OtherFieldsAreNotTheList) {
  EXPECT_EQ(decode_group_info(encode_group_info({0, 4}) + bytes_of({0x1a, 0x02, 0x08, 0x07})), (RankGroup{0, 4}));
  EXPECT_EQ(group_error_of(bytes_of({0x1a, 0x02, 0x08, 0x00})),
            "it has no list of ranks that restore (ckpt_restore_rank_list, field 2)");
}

TEST(GroupInfo, SaysThatTheListIsMissingOrEmpty) {
  EXPECT_EQ(group_error_of(make_map({}).SerializeAsString()),
            "it has no list of ranks that restore (ckpt_restore_rank_list, field 2)");
  EXPECT_EQ(group_error_of(bytes_of({0x12, 0x00})), "its list of ranks that restore (ckpt_restore_rank_list) is empty");
  EXPECT_EQ(group_error_of(""), "the file is empty");
}

TEST(GroupInfo, RanksEndAt4095) {
  EXPECT_EQ(decode_group_info(encode_group_info({0, 4095})), (RankGroup{0, 4095}));
  EXPECT_EQ(group_error_of(encode_group_info({0, 4096})), "it lists rank 4096; ranks go up to 4095");
  EXPECT_EQ(group_error_of(encode_group_info({0, 0xffffffffu})), "it lists rank 4294967295; ranks go up to 4095");
}

TEST(GroupInfo, ARankTwiceIsRefused) {
  EXPECT_EQ(group_error_of(encode_group_info({4, 0, 4})), "it lists rank 4 twice");
}

TEST(GroupInfo, CommunicationGroupsEndAt10000) {
  EXPECT_EQ(decode_group_info(make_map({0, 4}, 10'000).SerializeAsString()), (RankGroup{0, 4}));
  EXPECT_EQ(group_error_of(make_map({0, 4}, 10'001).SerializeAsString()),
            "it has 10001 communication groups; at most 10000 are read");
}

TEST(GroupInfo, BytesEndAtOneMebibyte) {
  ParallelGroupMap map = make_map({0, 4}, 1);
  map.mutable_parallel_group_item(0)->set_group_name("");
  // The lengths of the name and of its item then take two bytes more each.
  map.mutable_parallel_group_item(0)->set_group_name(std::string(kGroupInfoBytesMax - map.ByteSizeLong() - 4, 'x'));
  std::string bytes = map.SerializeAsString();
  ASSERT_EQ(bytes.size(), kGroupInfoBytesMax);
  EXPECT_EQ(decode_group_info(bytes), (RankGroup{0, 4}));
  EXPECT_EQ(group_error_of(bytes + bytes_of({0x20})), "it has 1048577 bytes; at most 1048576 are read");
}

TEST(GroupInfo, FullOfEmptyGroupsItIsRefusedAndNotFallenOver) {
  std::string bytes;
  while (bytes.size() < kGroupInfoBytesMax) bytes += bytes_of({0x0a, 0x00});
  EXPECT_EQ(group_error_of(bytes), "it has 524288 communication groups; at most 10000 are read");
}

// Nested without end: protobuf's own limit stops it.
TEST(GroupInfo, DeepNestingIsRefused) {
  EXPECT_EQ(group_error_of(std::string(100'000, 0x1b)), "it is damaged, or is not a group_info.pb of MindSpore");
}

TEST(GroupInfo, CutAnywhereItNeverGivesAnotherList) {
  const std::string bytes = make_map({0, 4, 300}).SerializeAsString();
  for (std::size_t kept = 0; kept < bytes.size(); ++kept) {
    EXPECT_FALSE(decode_group_info(std::string_view(bytes).substr(0, kept))) << "cut to " << kept << " bytes";
  }
}

void decode_random_bytes(std::uint64_t seed) {
  std::mt19937 random(seed);
  const std::string valid = make_map({0, 4, 300}).SerializeAsString();
  for (int i = 0; i < 5'000; ++i) {
    std::string bytes = valid;
    if (i % 2 == 0) {
      bytes.resize(random() % 200);
      for (char& byte : bytes) byte = static_cast<char>(random());
    } else {
      for (int flips = 0; flips < 3; ++flips) bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    const Result<RankGroup> group = decode_group_info(bytes);
    if (!group) continue;
    ASSERT_FALSE(group->empty());
    ASSERT_LE(group->back(), kGroupRankMax);
    ASSERT_TRUE(std::ranges::is_sorted(*group, std::less_equal())) << "ascending, each once";
    ASSERT_EQ(decode_group_info(encode_group_info(*group)), *group);
  }
}

TEST(GroupInfo, RandomBytesGiveAnErrorOrAListWithinTheRules) { test::for_each_seed({}, decode_random_bytes); }

}  // namespace
}  // namespace rekindle
