#include "common/system/clock.h"

#include <gtest/gtest.h>

namespace rekindle {
namespace {

using namespace std::chrono_literals;

TEST(Clock, MonotonicTimeNeverRunsBackwards) {
  const Instant first = monotonic_now();
  EXPECT_GE(monotonic_now(), first);
}

TEST(Clock, TheTwoWallClocksAgree) {
  const auto before = wall_seconds().time_since_epoch();
  const auto now = std::chrono::floor<std::chrono::seconds>(wall_now().time_since_epoch());
  const auto after = wall_seconds().time_since_epoch();
  EXPECT_LE(before, now);
  EXPECT_LE(now, after);
}

TEST(Clock, TheTimeUntilAMomentIsSplitIntoSecondsAndNanoseconds) {
  const timespec left = timespec_until(Instant(5s + 20ns), Instant(2s));
  EXPECT_EQ(left.tv_sec, 3);
  EXPECT_EQ(left.tv_nsec, 20);
}

TEST(Clock, NothingIsLeftUntilAMomentThatHasPassed) {
  const timespec left = timespec_until(Instant(2s), Instant(5s));
  EXPECT_EQ(left.tv_sec, 0);
  EXPECT_EQ(left.tv_nsec, 0);
}

}  // namespace
}  // namespace rekindle
