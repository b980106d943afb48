#include "worker-sidecar/protocol/shadow_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace rekindle {
namespace {

using ::testing::HasSubstr;

const Layout kLayout{{whole_tensor("weights", Dtype::f32, {10, 3}), whole_tensor("scale", Dtype::f64, {}),
                      whole_tensor("nothing", Dtype::u8, {0, 4})}};

ShadowPlan plan(bool snapshots, std::uint64_t every) {
  return *plan_shadow({.rank = 2,
                       .incarnation = 7,
                       .serial = 3,
                       .snapshots = snapshots,
                       .shadow_every_steps = every,
                       .state_bytes = 8192},
                      kLayout, {{"weights", 4, 9}, {"scale", 0, 1}, {"nothing", 0, 0}});
}

TEST(ShadowPlan, HasTwoSlotsForAShadowAndOneForSnapshots) {
  EXPECT_EQ(plan(false, 5).slots, 2u);
  EXPECT_FALSE(plan(false, 5).has_snapshot_slot());
  EXPECT_EQ(plan(true, 0).slots, 1u);
  EXPECT_EQ(plan(true, 0).snapshot_slot, 0u);
  EXPECT_EQ(plan(true, 5).slots, 3u);
  EXPECT_EQ(plan(true, 5).snapshot_slot, 2u);
  EXPECT_EQ(plan(true, 5).shadow_slots(), 2u);
}

TEST(ShadowPlan, PiecesLieApartBehindTheSlotsPageAndBeforeTheState) {
  const ShadowPlan made = plan(true, 1);
  ASSERT_EQ(made.pieces.size(), 3u);
  EXPECT_EQ(made.pieces[0].offset, 4096u);
  EXPECT_EQ(made.pieces[0].bytes, 5u * 12);
  EXPECT_EQ(made.pieces[1].offset, 4096u + 64);
  EXPECT_EQ(made.pieces[1].bytes, 8u);
  EXPECT_EQ(made.pieces[2].bytes, 0u);
  EXPECT_EQ(made.state_offset % 64, 0u);
  EXPECT_GE(made.state_offset, made.pieces[1].offset + 8);
  EXPECT_GE(made.slot_bytes, made.state_offset + 8192);
}

TEST(ShadowPlan, ReadsBackWhatWasWritten) {
  const ShadowPlan made = plan(true, 5);
  const std::string bytes = encode_shadow_plan(made);
  EXPECT_EQ(bytes.size(), made.slots_offset);
  EXPECT_LE(*shadow_front_bytes(bytes), bytes.size());
  const Result<ShadowPlan> read = decode_shadow_plan(bytes);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, made);
}

TEST(ShadowPlan, RowsThatTheRankDoesNotHaveAreRefusedByName) {
  const Result<ShadowPlan> made = plan_shadow({.rank = 2, .snapshots = true}, kLayout, {{"weights", 4, 11}});
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message, HasSubstr("rows 4 to 11 of \"weights\""));
  EXPECT_FALSE(plan_shadow({.snapshots = true}, kLayout, {{"elsewhere", 0, 1}}));
}

TEST(ShadowPlan, ACutInsideAByteIsRefusedByName) {
  const Layout packed{{whole_tensor("nibbles", Dtype::f4, {8})}};
  const Result<ShadowPlan> made = plan_shadow({.rank = 2, .snapshots = true}, packed, {{"nibbles", 2, 8}});
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->pieces[0].bytes, 3u);
  const Result<ShadowPlan> inside = plan_shadow({.rank = 2, .snapshots = true}, packed, {{"nibbles", 3, 8}});
  ASSERT_FALSE(inside);
  EXPECT_THAT(inside.error().message, HasSubstr("rows 3 to 8 of \"nibbles\""));
}

TEST(ShadowPlan, AnotherVersionIsRefusedByItsNumber) {
  std::string bytes = encode_shadow_plan(plan(true, 5));
  bytes[8] = 9;
  const Result<ShadowPlan> read = decode_shadow_plan(bytes);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::refused);
  EXPECT_THAT(read.error().message, HasSubstr("version 9"));
}

TEST(ShadowPlan, NoChangedByteLeadsOutsideTheFile) {
  const std::string whole = encode_shadow_plan(plan(true, 5));
  const std::uint64_t used = *shadow_front_bytes(whole);
  std::uint64_t accepted = 0;
  for (std::uint64_t at = 0; at < used; ++at) {
    for (const unsigned flip : {0x01u, 0x80u, 0xffu}) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(static_cast<unsigned char>(bytes[at]) ^ flip);
      const Result<ShadowPlan> read = decode_shadow_plan(bytes);
      if (!read) continue;
      ++accepted;
      // Numbers that only name something (rank, serial...) may differ; places must still be inside.
      for (const ShadowPiece& piece : read->pieces) {
        EXPECT_LE(piece.offset + piece.bytes, read->state_offset);
        EXPECT_LE(read->state_offset + read->state_bytes, read->slot_bytes);
      }
    }
  }
  EXPECT_GT(accepted, 0u);
}

// A rank would divide by zero, or copy into the slot of a snapshot.
TEST(ShadowPlan, SlotsThatDoNotFitWhatTheyAreForAreRefused) {
  struct Wrong {
    bool snapshots;
    std::uint64_t every;
    std::uint32_t snapshot_slot;
    std::uint64_t every_written;
  };
  for (const Wrong& wrong : {Wrong{true, 5, 2, 0}, Wrong{false, 5, 2, 0}, Wrong{true, 0, 0, 5}, Wrong{true, 5, 0, 5},
                             Wrong{true, 5, 1, 5}}) {
    ShadowPlan changed = plan(wrong.snapshots, wrong.every);
    changed.snapshot_slot = wrong.snapshot_slot;
    changed.shadow_every_steps = wrong.every_written;
    const Result<ShadowPlan> read = decode_shadow_plan(encode_shadow_plan(changed));
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, ErrorCode::corrupt);
  }
}

TEST(ShadowPlan, ACutFileIsAnErrorAtEveryLength) {
  const std::string whole = encode_shadow_plan(plan(true, 5));
  for (std::uint64_t bytes = 0; bytes < *shadow_front_bytes(whole); ++bytes)
    EXPECT_FALSE(decode_shadow_plan(std::string_view(whole).substr(0, bytes)));
}

}  // namespace
}  // namespace rekindle
