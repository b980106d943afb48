#include "operator/controller/token_bucket.h"

#include <gtest/gtest.h>

#include "tests/unit/operator/controller/start.h"

namespace rekindle::op {
namespace {

using namespace std::chrono_literals;

TEST(TokenBucket, GivesItsBurstAtOnce) {
  TokenBucket bucket(10, 3);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(bucket.reserve(kStart), 0s);
  EXPECT_GT(bucket.reserve(kStart), 0s);
}

TEST(TokenBucket, RefillsAtItsRateAndNoFurtherThanTheBurst) {
  TokenBucket bucket(10, 2);
  for (int i = 0; i < 2; ++i) bucket.reserve(kStart);
  EXPECT_EQ(bucket.reserve(kStart + 100ms), 0s);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(bucket.reserve(kStart + 1h), 0s);
  EXPECT_EQ(bucket.reserve(kStart + 1h), 100ms);
}

TEST(TokenBucket, SaysHowLongTheNextOneTakes) {
  TokenBucket bucket(4, 1);
  EXPECT_EQ(bucket.reserve(kStart), 0s);
  EXPECT_EQ(bucket.reserve(kStart + 50ms), 200ms);
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
  EXPECT_EQ(bucket.reserve(kStart), 0s);
  EXPECT_EQ(bucket.reserve(kStart - 1h), 100ms);
  EXPECT_EQ(bucket.reserve(kStart), 200ms);
}

TEST(TokenBucket, HugeJumpsStaySane) {
  TokenBucket bucket(1e9, 5);
  EXPECT_EQ(bucket.reserve(Instant(1ns)), 0s);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(bucket.reserve(Instant(Duration::max() / 2)), 0s);
  EXPECT_GT(bucket.reserve(Instant(Duration::max() / 2)), 0s);
}

TEST(TokenBucket, NoRateMeansNoLimit) {
  TokenBucket bucket(0, 1);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(bucket.reserve(kStart), 0s);
}

}  // namespace
}  // namespace rekindle::op
