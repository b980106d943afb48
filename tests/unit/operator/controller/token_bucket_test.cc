#include "operator/controller/token_bucket.h"

#include <gtest/gtest.h>

#include "tests/unit/operator/controller/start.h"

namespace rekindle::op {
namespace {

using namespace std::chrono_literals;

TEST(TokenBucket, GivesItsBurstAtOnce) {
  TokenBucket bucket(10, 3);
  EXPECT_TRUE(bucket.try_take(kStart));
  EXPECT_TRUE(bucket.try_take(kStart));
  EXPECT_TRUE(bucket.try_take(kStart));
  EXPECT_FALSE(bucket.try_take(kStart));
}

TEST(TokenBucket, RefillsAtItsRateAndNoFurtherThanTheBurst) {
  TokenBucket bucket(10, 2);
  bucket.try_take(kStart);
  bucket.try_take(kStart);
  EXPECT_FALSE(bucket.try_take(kStart + 99ms));
  EXPECT_TRUE(bucket.try_take(kStart + 101ms));
  EXPECT_TRUE(bucket.try_take(kStart + 1h));
  EXPECT_TRUE(bucket.try_take(kStart + 1h));
  EXPECT_FALSE(bucket.try_take(kStart + 1h));
}

TEST(TokenBucket, SaysWhenTheNextTakeSucceeds) {
  TokenBucket bucket(4, 1);
  EXPECT_EQ(bucket.next_at(kStart), kStart);
  ASSERT_TRUE(bucket.try_take(kStart));
  const Instant next = bucket.next_at(kStart);
  EXPECT_FALSE(bucket.try_take(next - 1ms));
  EXPECT_TRUE(bucket.try_take(next));
}

TEST(TokenBucket, ReservationsQueueUp) {
  TokenBucket bucket(10, 1);
  EXPECT_EQ(bucket.reserve(kStart), 0s);
  EXPECT_EQ(bucket.reserve(kStart), 100ms);
  EXPECT_EQ(bucket.reserve(kStart), 200ms);
  EXPECT_EQ(bucket.reserve(kStart + 100ms), 200ms);
}

TEST(TokenBucket, TimeThatGoesBackwardsGivesNothing) {
  TokenBucket bucket(10, 1);
  ASSERT_TRUE(bucket.try_take(kStart));
  EXPECT_FALSE(bucket.try_take(kStart - 1h));
  EXPECT_FALSE(bucket.try_take(kStart));
  EXPECT_TRUE(bucket.try_take(kStart + 101ms));
}

TEST(TokenBucket, HugeJumpsStaySane) {
  TokenBucket bucket(1e9, 5);
  ASSERT_TRUE(bucket.try_take(Instant(1ns)));
  int taken = 0;
  while (taken < 100 && bucket.try_take(Instant(Duration::max() / 2))) ++taken;
  EXPECT_EQ(taken, 5);
}

TEST(TokenBucket, NoRateMeansNoLimit) {
  TokenBucket bucket(0, 1);
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(bucket.try_take(kStart));
  EXPECT_EQ(bucket.reserve(kStart), 0s);
  EXPECT_EQ(bucket.next_at(kStart), kStart);
}

}  // namespace
}  // namespace rekindle::op
