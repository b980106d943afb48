#include "worker-sidecar/runtime/src/shadow_mapping.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/format.h"

namespace rekindle::runtime {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kMiB = 1u << 20;

// A rank whose copies need 40 MiB, in a container of which the test says what memory it has.
class ShadowMappingTest : public ::testing::Test {
 protected:
  ShadowMappingTest() {
    const Layout layout{{whole_tensor("weights", Dtype::u8, {20 * kMiB})}};
    plan_ = *plan_shadow({.rank = 3, .incarnation = 7, .serial = 1, .shadow_every_steps = 1, .state_bytes = 4096},
                         layout, {{"weights", 0, 20 * kMiB}});
    const std::string front = encode_shadow_plan(plan_);
    front_bytes_ = front.size();
    EXPECT_EQ(::pwrite(file_, front.data(), front.size(), 0), static_cast<ssize_t>(front.size()));
  }
  ~ShadowMappingTest() override { ::close(file_); }

  // `left` bytes, of which the n-th look finds `taken_each * n` less.
  ShadowHost host(std::uint64_t left, std::uint64_t taken_each = 0, std::uint32_t ranks = 1) {
    return {.ranks = ranks, .read_room = [this, left, taken_each] {
              return MemoryRoom{.limits = {{"/group/memory.max", left, taken_each * looks_++}}};
            }};
  }
  std::uint64_t file_blocks() const {
    struct stat about{};
    EXPECT_EQ(::fstat(file_, &about), 0);
    return static_cast<std::uint64_t>(about.st_blocks) * 512;
  }

  const int file_ = ::memfd_create("shadow", MFD_CLOEXEC);
  ShadowPlan plan_;
  std::uint64_t front_bytes_ = 0;
  std::uint64_t looks_ = 0;
};

TEST_F(ShadowMappingTest, TakesAllOfItsMemoryWhereThereIsRoom) {
  const Outcome<ShadowMapping> mapping = ShadowMapping::map(file_, 3, 7, host(plan_.file_bytes()));
  ASSERT_TRUE(mapping) << mapping.error().message;
  EXPECT_GE(file_blocks(), plan_.file_bytes());
  EXPECT_EQ(mapping->header_of(1).step, 0u);
}

TEST_F(ShadowMappingTest, TakesNothingBeyondALimitAndSaysWhatToSet) {
  const Outcome<ShadowMapping> mapping = ShadowMapping::map(file_, 3, 7, host(30 * kMiB));
  ASSERT_FALSE(mapping);
  EXPECT_EQ(mapping.error().status, RK_ERROR_MEMORY);
  EXPECT_THAT(mapping.error().message,
              HasSubstr(format("rank 3 needs {} bytes of memory for copies of its share", plan_.file_bytes())));
  EXPECT_THAT(mapping.error().message, HasSubstr("raise the memory limit of the training container by"));
  EXPECT_LE(file_blocks(), 2 * kShadowPageBytes);
}

TEST_F(ShadowMappingTest, GivesBackWhatItHasTakenWhenOthersTakeTheRest) {
  const Outcome<ShadowMapping> mapping = ShadowMapping::map(file_, 3, 7, host(60 * kMiB, 30 * kMiB));
  ASSERT_FALSE(mapping);
  EXPECT_EQ(looks_, 3u) << "two parts of 16 MiB fit, the rest does not";
  EXPECT_LE(file_blocks(), 2 * kShadowPageBytes);
}

TEST_F(ShadowMappingTest, LeavesEachRankOfTheContainerItsNextPart) {
  EXPECT_TRUE(ShadowMapping::map(file_, 3, 7, host(64 * kMiB, 0, 4)));
  EXPECT_FALSE(ShadowMapping::map(file_, 3, 7, host(63 * kMiB, 0, 4)));
}

TEST_F(ShadowMappingTest, PrivateMemoryObeysTheSameLimits) {
  EXPECT_TRUE(ShadowMapping::make_private(plan_, host(plan_.file_bytes())));
  const Outcome<ShadowMapping> mapping = ShadowMapping::make_private(plan_, host(30 * kMiB));
  ASSERT_FALSE(mapping);
  EXPECT_EQ(mapping.error().status, RK_ERROR_MEMORY);
  EXPECT_FALSE(ShadowMapping::make_private(plan_, host(60 * kMiB, 30 * kMiB)));
}

TEST_F(ShadowMappingTest, AShadowOfAnotherProcessIsRefused) {
  EXPECT_EQ(ShadowMapping::map(file_, 3, 8, host(1ull << 40)).error().status, RK_ERROR_UNAVAILABLE);
  EXPECT_EQ(ShadowMapping::map(file_, 2, 7, host(1ull << 40)).error().status, RK_ERROR_UNAVAILABLE);
}

}  // namespace
}  // namespace rekindle::runtime
