#include "worker-sidecar/checkpoint/snapshot_schedule.h"

#include <gtest/gtest.h>

namespace rekindle {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

const Instant kStart{hours(1)};

SnapshotSettings every_steps(std::uint64_t steps) { return {.rhythm = SnapshotRhythm::steps, .every_steps = steps}; }
SnapshotSettings every_seconds(int count) { return {.rhythm = SnapshotRhythm::time, .every = seconds(count)}; }

TEST(SnapshotSchedule, AnnouncesTheNextMultiple) {
  SnapshotSchedule schedule(every_steps(500));
  schedule.begin(0, {}, kStart);
  EXPECT_EQ(schedule.next_target(3, kStart + seconds(1)), 500u);
}

TEST(SnapshotSchedule, GoesOnWithTheMultipleAfterTheLastOne) {
  SnapshotSchedule schedule(every_steps(500));
  schedule.begin(1234, {}, kStart);
  EXPECT_EQ(schedule.next_target(1240, kStart + seconds(1)), 1500u);
  schedule.done({}, kStart + seconds(30));
  EXPECT_EQ(schedule.next_target(1501, kStart + seconds(31)), 2000u);
}

TEST(SnapshotSchedule, SkipsMultiplesThatPassedWhileTheLastOneWasWritten) {
  SnapshotSchedule schedule(every_steps(10));
  schedule.begin(0, {}, kStart);
  ASSERT_EQ(schedule.next_target(1, kStart + milliseconds(100)), 10u);
  schedule.done({}, kStart + seconds(10));
  EXPECT_EQ(schedule.next_target(995, kStart + seconds(10) + milliseconds(1)), 1000u);
}

TEST(SnapshotSchedule, LooksFurtherAheadWhenStepsAreFast) {
  SnapshotSchedule schedule(every_seconds(10));
  schedule.begin(0, {}, kStart);
  EXPECT_EQ(schedule.next_target(50'000, kStart + seconds(5)), std::nullopt);
  // 10,000 steps a second: 200 of them while the word travels.
  EXPECT_EQ(schedule.next_target(100'000, kStart + seconds(10)), 100'200u);
}

TEST(SnapshotSchedule, DoublesItsMarginWhenTheWordCameTooLate) {
  SnapshotSchedule schedule(every_seconds(10));
  schedule.begin(0, {}, kStart);
  ASSERT_EQ(schedule.next_target(20, kStart + seconds(10)), 21u);
  schedule.missed();
  EXPECT_EQ(schedule.next_target(22, kStart + seconds(11)), 24u);
}

TEST(SnapshotSchedule, NeverAnnouncesAStepTwice) {
  SnapshotSchedule schedule(every_seconds(1));
  schedule.begin(7, {}, kStart);
  ASSERT_EQ(schedule.next_target(7, kStart + seconds(1)), 8u);
  schedule.abandoned(kStart + seconds(1));
  EXPECT_EQ(schedule.next_target(7, kStart + seconds(2)), 9u);
}

TEST(SnapshotSchedule, WaitsForItsTime) {
  SnapshotSchedule schedule(every_seconds(60));
  schedule.begin(0, {}, kStart);
  EXPECT_EQ(schedule.next_target(10, kStart + seconds(59)), std::nullopt);
  ASSERT_TRUE(schedule.next_target(10, kStart + seconds(60)));
  schedule.done({}, kStart + seconds(65));
  EXPECT_EQ(schedule.next_target(99, kStart + seconds(124)), std::nullopt);
  EXPECT_TRUE(schedule.next_target(99, kStart + seconds(125)));
}

// The pace is that of the steps that were seen, not of those before a sidecar was restarted.
TEST(SnapshotSchedule, ThatBeginsInTheMiddleOfAnAttemptKeepsItsRhythm) {
  SnapshotSchedule schedule(every_steps(20));
  schedule.begin(std::nullopt, {}, kStart);
  EXPECT_EQ(schedule.next_target(6000, kStart + milliseconds(50)), std::nullopt);
  EXPECT_EQ(schedule.next_target(6001, kStart + milliseconds(1050)), 6020u);
}

TEST(SnapshotSchedule, WhatPaysFollowsTheMeasuredCost) {
  SnapshotSchedule schedule({.rhythm = SnapshotRhythm::automatic, .failure_prior = hours(24)});
  schedule.begin(0, {}, kStart);
  const Duration before = schedule.interval();
  schedule.done({.stopped = milliseconds(10), .written = seconds(2)}, kStart + seconds(600));
  EXPECT_LT(schedule.interval(), before);
  EXPECT_EQ(schedule.interval(),
            best_interval(milliseconds(10), mean_time_between_failures({.observed = seconds(600)}, hours(24))));
}

TEST(SnapshotSchedule, WhatPaysLeavesTheStorageHalfTheTime) {
  SnapshotSchedule schedule({.rhythm = SnapshotRhythm::automatic});
  schedule.begin(0, {}, kStart);
  schedule.done({.stopped = milliseconds(1), .written = hours(1)}, kStart + hours(2));
  EXPECT_EQ(schedule.interval(), Duration(hours(2)));
}

TEST(SnapshotSchedule, FailuresMakeItMoreFrequent) {
  SnapshotSchedule quiet({.rhythm = SnapshotRhythm::automatic});
  SnapshotSchedule unlucky({.rhythm = SnapshotRhythm::automatic});
  quiet.begin(0, {}, kStart);
  unlucky.begin(0, {.failures = 8, .observed = hours(24)}, kStart);
  EXPECT_LT(unlucky.interval(), quiet.interval());
}

TEST(SnapshotSchedule, SaysWhyItIsAsOftenAsItIs) {
  SnapshotSchedule schedule({.rhythm = SnapshotRhythm::automatic});
  schedule.begin(0, {.failures = 2}, kStart);
  schedule.done({.stopped = milliseconds(310), .written = seconds(2)}, kStart + seconds(1));
  EXPECT_NE(schedule.explain().find(
                "the last copy took 310.00 ms, writing it 2.00 s, a failure is expected every 8.00 h (2 seen)"),
            std::string::npos)
      << schedule.explain();
}

TEST(SnapshotSchedule, WithoutARhythmNothingIsEverDue) {
  SnapshotSchedule schedule(SnapshotSettings{.shadow_every_steps = 1});
  schedule.begin(0, {}, kStart);
  EXPECT_EQ(schedule.next_target(1000, kStart + hours(100)), std::nullopt);
  EXPECT_EQ(schedule.next_check(), std::nullopt);
}

}  // namespace
}  // namespace rekindle
