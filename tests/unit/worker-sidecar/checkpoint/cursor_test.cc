#include "worker-sidecar/checkpoint/cursor.h"

#include <gtest/gtest.h>

namespace rekindle {
namespace {

std::string bytes_of(const Cursor& cursor) {
  std::string bytes;
  for (const std::uint64_t number : {cursor.epoch, cursor.samples}) {
    for (int shift = 0; shift < 64; shift += 8) bytes += static_cast<char>(number >> shift);
  }
  return bytes;
}

TEST(TheCursor, IsTwoLittleEndianNumbers) {
  const Cursor cursor{.epoch = 0x0102030405060708, .samples = 0xfffefdfcfbfaf9f8};
  EXPECT_EQ(*decode_cursor(bytes_of(cursor)), cursor);
  EXPECT_FALSE(decode_cursor("too short"));
}

TEST(TheCursor, IsFoundInAManifestByRank) {
  Manifest manifest;
  manifest.states = {
      {.rank = 2, .name = "rekindle.cursor"}, {.rank = 0, .name = "sampler"}, {.rank = 0, .name = "rekindle.cursor"}};
  const std::vector<const ManifestState*> copies = find_cursor(manifest);
  ASSERT_EQ(copies.size(), 2u);
  EXPECT_EQ(copies[0]->rank, 0u);
  EXPECT_EQ(copies[1]->rank, 2u);
  manifest.states.clear();
  EXPECT_TRUE(find_cursor(manifest).empty());
}

TEST(TheCursor, IsWhatAllRanksSay) {
  const Cursor cursor{.epoch = 3, .samples = 512};
  const std::vector<std::uint32_t> ranks{0, 2, 5};
  EXPECT_EQ(*agree_on_cursor(bytes_of(cursor) + bytes_of(cursor) + bytes_of(cursor), ranks), cursor);
  const Result<Cursor> torn =
      agree_on_cursor(bytes_of(cursor) + bytes_of(cursor) + bytes_of({.epoch = 3, .samples = 640}), ranks);
  ASSERT_FALSE(torn);
  EXPECT_EQ(torn.error().code, ErrorCode::corrupt);
  EXPECT_NE(torn.error().message.find("rank 0 was at sample 512 of epoch 3, rank 5 was at sample 640 of epoch 3"),
            std::string::npos)
      << torn.error().message;
  EXPECT_FALSE(agree_on_cursor(bytes_of(cursor), ranks)) << "bytes are missing";
  EXPECT_EQ(agree_on_cursor("", {}).error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace rekindle
