#include "operator/controller/backoff.h"

#include <gtest/gtest.h>

#include "tests/unit/operator/controller/start.h"

namespace rekindle::op {
namespace {

using namespace std::chrono_literals;

TEST(Backoff, DoublesUpToItsMost) {
  Prng luck(1);
  Backoff backoff({.first = 800ms, .max = 5s, .reset_after = 120s, .jitter = 0});
  std::vector<Duration> pauses;
  for (int i = 0; i < 6; ++i) pauses.push_back(backoff.failed(kStart, luck));
  EXPECT_EQ(pauses, (std::vector<Duration>{800ms, 1600ms, 3200ms, 5s, 5s, 5s}));
}

TEST(Backoff, JitterStretchesAndNeverShortens) {
  Prng luck(7);
  for (int i = 0; i < 1000; ++i) {
    Backoff backoff({.first = 800ms, .max = 30s, .reset_after = 120s, .jitter = 1.0});
    const Duration pause = backoff.failed(kStart, luck);
    EXPECT_GE(pause, 800ms);
    EXPECT_LT(pause, 1600ms);
  }
}

TEST(Backoff, JitterStaysUnderTheMost) {
  Prng luck(7);
  Backoff backoff({.first = 20s, .max = 30s, .reset_after = 120s, .jitter = 1.0});
  for (int i = 0; i < 100; ++i) EXPECT_LE(backoff.failed(kStart, luck), 30s);
}

TEST(Backoff, StartsAgainAfterAQuietTime) {
  Prng luck(1);
  Backoff backoff({.first = 1s, .max = 30s, .reset_after = 120s, .jitter = 0});
  EXPECT_TRUE(backoff.rested(kStart));
  backoff.failed(kStart, luck);
  backoff.failed(kStart + 10s, luck);
  EXPECT_FALSE(backoff.rested(kStart + 129s));
  EXPECT_TRUE(backoff.rested(kStart + 130s));
  EXPECT_EQ(backoff.failed(kStart + 130s, luck), 1s);
}

TEST(Backoff, SuccessForgets) {
  Prng luck(1);
  Backoff backoff({.first = 1s, .max = 30s, .reset_after = 120s, .jitter = 0});
  backoff.failed(kStart, luck);
  backoff.failed(kStart, luck);
  backoff.succeeded();
  EXPECT_EQ(backoff.failed(kStart, luck), 1s);
}

TEST(Backoff, TimeThatGoesBackwardsDoesNotReset) {
  Prng luck(1);
  Backoff backoff({.first = 1s, .max = 30s, .reset_after = 120s, .jitter = 0});
  backoff.failed(kStart, luck);
  EXPECT_EQ(backoff.failed(kStart - 30min, luck), 2s);
  EXPECT_FALSE(backoff.rested(kStart + 119s));
}

TEST(Backoff, ManyFailuresDoNotOverflow) {
  Prng luck(1);
  Backoff backoff({.first = 1s, .max = Duration::max() / 4, .reset_after = Duration::max(), .jitter = 1.0});
  for (int i = 0; i < 10000; ++i) {
    const Duration pause = backoff.failed(kStart, luck);
    ASSERT_GE(pause, 1s);
    ASSERT_LE(pause, Duration::max() / 4);
  }
}

}  // namespace
}  // namespace rekindle::op
