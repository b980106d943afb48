// A process without a sidecar, and what its saver does, in virtual time.
#include "worker-sidecar/runtime/src/saver_agenda.h"

#include <gtest/gtest.h>

namespace rekindle::runtime {
namespace {

using namespace std::chrono_literals;
using Work = SaverAgenda::Next::Work;

const Instant kStart{1h};

// Every minute, and there is memory for the copy.
SaverAgenda each_minute() {
  SaverAgenda agenda({.rhythm = SnapshotRhythm::time, .every = 1min}, 0, {}, kStart);
  agenda.planned(true);
  return agenda;
}

// Step 100 is reached, and the next one is to be copied.
std::uint64_t announced_after_100(SaverAgenda& agenda) {
  const std::optional<std::uint64_t> target = agenda.next(100, kStart + 60s).announce;
  EXPECT_TRUE(target);
  return target.value_or(0);
}

TEST(SaverAgenda, AnnouncesAStepWhenItIsTimeAndOnce) {
  SaverAgenda agenda = each_minute();
  EXPECT_EQ(agenda.next(99, kStart + 59s).announce, std::nullopt);
  EXPECT_GT(announced_after_100(agenda), 100u);
  EXPECT_EQ(agenda.next(100, kStart + 61s).announce, std::nullopt);
}

TEST(SaverAgenda, AnnouncesNothingWithoutMemoryForACopy) {
  SaverAgenda agenda = each_minute();
  agenda.planned(false);
  EXPECT_EQ(agenda.next(100, kStart + 60s).announce, std::nullopt);
}

TEST(SaverAgenda, WhatWasTakenIsWrittenOnce) {
  SaverAgenda agenda = each_minute();
  const std::uint64_t target = announced_after_100(agenda);
  agenda.taken(1ms);
  EXPECT_EQ(agenda.next(target, kStart + 61s).work, Work::write);
  agenda.saved(2s, kStart + 63s);
  EXPECT_EQ(agenda.next(target, kStart + 63s).work, Work::wait);
}

TEST(SaverAgenda, TheNextOneComesAMinuteAfterItIsDurable) {
  SaverAgenda agenda = each_minute();
  const std::uint64_t target = announced_after_100(agenda);
  agenda.taken(1ms);
  agenda.next(target, kStart + 61s);
  agenda.saved(9s, kStart + 70s);
  EXPECT_EQ(agenda.next(200, kStart + 129s).announce, std::nullopt);
  EXPECT_TRUE(agenda.next(200, kStart + 130s).announce);
}

// As while it evaluates: the copy is taken before the step behind.
TEST(SaverAgenda, AProcessThatStandsAtTheStepHasNotMissedIt) {
  SaverAgenda agenda = each_minute();
  const std::uint64_t target = announced_after_100(agenda);
  EXPECT_EQ(agenda.next(target, kStart + 1h).announce, std::nullopt);
}

TEST(SaverAgenda, AStepThatWasPassedIsAnnouncedAnewAndFurtherAhead) {
  SaverAgenda agenda = each_minute();
  const std::uint64_t first = announced_after_100(agenda) - 100;
  const std::uint64_t passed = 100 + first + 1;
  const std::optional<std::uint64_t> second = agenda.next(passed, kStart + 61s).announce;
  ASSERT_TRUE(second);
  EXPECT_GE(*second - passed, 2 * first);
}

// Storage that is full stays full for a while, and every try stops training for a copy.
TEST(SaverAgenda, AfterAFailureItWaitsAsLongAsAfterASuccess) {
  SaverAgenda agenda = each_minute();
  const std::uint64_t target = announced_after_100(agenda);
  agenda.taken(1ms);
  agenda.next(target, kStart + 61s);
  agenda.failed(kStart + 70s);
  EXPECT_EQ(agenda.next(200, kStart + 129s).announce, std::nullopt);
  EXPECT_TRUE(agenda.next(200, kStart + 130s).announce);
}

TEST(SaverAgenda, ACopyThatFailedIsNotWritten) {
  SaverAgenda agenda = each_minute();
  const std::uint64_t target = announced_after_100(agenda);
  agenda.failed(kStart + 61s);
  const SaverAgenda::Next next = agenda.next(target, kStart + 61s);
  EXPECT_EQ(next.work, Work::wait);
  EXPECT_EQ(next.announce, std::nullopt);
}

TEST(SaverAgenda, WhatWasTakenRightBeforeTheProcessClosesIsWritten) {
  SaverAgenda agenda = each_minute();
  const std::uint64_t target = announced_after_100(agenda);
  agenda.taken(1ms);
  agenda.close();
  EXPECT_EQ(agenda.next(target, kStart + 61s).work, Work::write);
  agenda.saved(2s, kStart + 63s);
  EXPECT_EQ(agenda.next(target, kStart + 63s).work, Work::end);
}

}  // namespace
}  // namespace rekindle::runtime
