#include "worker-sidecar/checkpoint/interval.h"

#include <gtest/gtest.h>

#include <cmath>

namespace rekindle {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

// What a job loses per second of training: its checkpoints, and on average half an interval with
// each failure.
double loss(double interval, double cost, double failure) { return cost / interval + interval / (2 * failure); }

TEST(Interval, FollowsYoungWhenACheckpointCostsLittle) {
  const double interval = to_seconds(best_interval(seconds(1), hours(24)));
  EXPECT_NEAR(interval, std::sqrt(2.0 * 86400), 2.0);
}

TEST(Interval, IsDalysSeriesWhereCostMatters) {
  // C = 60 s, M = 3600 s: sqrt(2 C M) (1 + (C/2M)^(1/2) / 3 + (C/2M) / 9) - C.
  const double ratio = 60.0 / 7200;
  const double expected = std::sqrt(2.0 * 60 * 3600) * (1 + std::sqrt(ratio) / 3 + ratio / 9) - 60;
  EXPECT_NEAR(to_seconds(best_interval(seconds(60), seconds(3600))), expected, 1e-6);
}

TEST(Interval, LosesLessThanAnyOtherNearby) {
  const double best = to_seconds(best_interval(seconds(2), hours(10)));
  for (const double other : {best / 2, best / 1.3, best * 1.3, best * 2})
    EXPECT_LT(loss(best, 2, 36000), loss(other, 2, 36000));
}

TEST(Interval, IsTheTimeOfAFailureWhenACheckpointCostsMore) {
  EXPECT_EQ(best_interval(hours(3), hours(1)), Duration(hours(1)));
}

TEST(Interval, OfACostOfNothingIsStillSomething) { EXPECT_GT(best_interval(Duration{0}, hours(1)), Duration{0}); }

TEST(FailureHistory, BeginsWithWhatIsExpectedAndMovesWithWhatIsSeen) {
  EXPECT_EQ(mean_time_between_failures({}, hours(24)), Duration(hours(24)));
  EXPECT_EQ(mean_time_between_failures({.failures = 3, .observed = hours(4)}, hours(24)), Duration(hours(7)));
  EXPECT_EQ(mean_time_between_failures({.failures = 0, .observed = hours(240)}, hours(24)), Duration(hours(264)));
}

TEST(FailureHistory, CountsTheAttemptsSinceTheOldestRecord) {
  const WallTime first{std::chrono::seconds(1'000'000)};
  const FailureHistory history = history_of(4, first, first + hours(240));
  EXPECT_EQ(history.failures, 3u);
  EXPECT_EQ(history.observed, Duration(hours(240)));
  EXPECT_EQ(history_of(1, {}, first).failures, 0u);
  EXPECT_EQ(history_of(2, first, first - hours(1)).observed, Duration{0});
}

}  // namespace
}  // namespace rekindle
