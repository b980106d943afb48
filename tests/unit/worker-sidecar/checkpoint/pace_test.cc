#include "worker-sidecar/checkpoint/pace.h"

#include <gtest/gtest.h>

#include "common/base/prng.h"
#include "tests/support/random_seed.h"

namespace rekindle {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(Pace, WithoutACapNothingWaits) {
  Pace pace(0, 0, {});
  EXPECT_EQ(pace.wait_for(1u << 30, {}), Duration());
  EXPECT_EQ(pace.wait_for(1u << 30, {}), Duration());
}

TEST(Pace, BytesAreEarnedBeforeTheyGo) {
  Pace pace(1'000'000, 0, seconds(7));
  EXPECT_EQ(pace.wait_for(250'000, seconds(7)), milliseconds(250));
  EXPECT_EQ(pace.wait_for(250'000, seconds(7)), milliseconds(500)) << "the second portion comes after the first";
}

TEST(Pace, TimeThatHasPassedCounts) {
  Pace pace(1'000'000, 0, {});
  EXPECT_EQ(pace.wait_for(250'000, {}), milliseconds(250));
  EXPECT_EQ(pace.wait_for(250'000, milliseconds(400)), milliseconds(250))
      << "the idle 150 ms earned nothing without a bucket";
}

TEST(Pace, SlowStorageIsMadeUpForByNoMoreThanTheBucketHolds) {
  Pace pace(1'000'000, 100'000, {});
  EXPECT_EQ(pace.wait_for(50'000, {}), milliseconds(50)) << "the bucket begins empty";
  EXPECT_EQ(pace.wait_for(100'000, seconds(60)), Duration()) << "a bucket's worth goes at once";
  EXPECT_EQ(pace.wait_for(100'000, seconds(60)), milliseconds(100)) << "and not a byte more";
}

void keep_to_the_cap(std::uint64_t seed) {
  Prng prng(seed);
  constexpr std::uint64_t kRate = 64u << 20;
  Pace pace(kRate, 4u << 20, {});
  Duration now{};
  std::uint64_t gone = 0;
  for (int i = 0; i < 5'000; ++i) {
    const std::uint64_t bytes = 1 + prng.below(4u << 20);
    now += pace.wait_for(bytes, now);
    gone += bytes;
    ASSERT_LE(static_cast<double>(gone),
              to_seconds(now) * static_cast<double>(kRate) + 1e-3 * static_cast<double>(kRate))
        << i;
    now += Duration(static_cast<std::int64_t>(prng.below(50'000'000)));
  }
}

TEST(Pace, WhateverTheStorageDoesNoMoreGoesThanTheCapAllows) { test::for_each_seed({}, keep_to_the_cap); }

TEST(Pace, ACapOfOneByteASecondDoesNotOverflow) {
  Pace pace(1, UINT64_MAX, {});
  EXPECT_GT(pace.wait_for(UINT64_MAX, {}), seconds(1'000'000'000));
}

}  // namespace
}  // namespace rekindle
