#include "operator/controller/work_queue.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "tests/support/random_seed.h"
#include "tests/unit/operator/controller/start.h"

namespace rekindle::op {
namespace {

using namespace std::chrono_literals;

using Queue = WorkQueue<std::string>;

WorkQueueSettings without_jitter() { return {.retry = {.first = 200ms, .max = 60s, .reset_after = 24h, .jitter = 0}}; }

TEST(WorkQueue, GivesNothingBeforeItsTime) {
  Queue queue;
  queue.add("a", kStart + 5s);
  EXPECT_EQ(queue.take(kStart + 4999ms), std::nullopt);
  EXPECT_EQ(queue.next_wake(), kStart + 5s);
  EXPECT_EQ(queue.take(kStart + 5s), "a");
  EXPECT_EQ(queue.next_wake(), std::nullopt);
}

TEST(WorkQueue, AddingAgainKeepsTheEarlierTime) {
  Queue queue;
  queue.add("a", kStart + 5s);
  queue.add("a", kStart + 9s);
  EXPECT_EQ(queue.next_wake(), kStart + 5s);
  queue.add("a", kStart + 1s);
  EXPECT_EQ(queue.next_wake(), kStart + 1s);
  EXPECT_EQ(queue.queued(), 1u);
}

TEST(WorkQueue, AddingAgainKeepsTheHigherPriority) {
  Queue queue;
  queue.add("a", kStart, 0);
  queue.add("b", kStart, 5);
  queue.add("a", kStart + 1h, 9);
  queue.add("a", kStart, 1);
  EXPECT_EQ(queue.take(kStart), "a");
  EXPECT_EQ(queue.take(kStart), "b");
}

TEST(WorkQueue, DueKeysGoByPriorityThenTimeThenOrder) {
  Queue queue;
  queue.add("late", kStart + 2s);
  queue.add("second", kStart + 1s);
  queue.add("third", kStart + 1s);
  queue.add("first", kStart + 3s, 1);
  for (const char* expected : {"first", "second", "third", "late"}) EXPECT_EQ(queue.take(kStart + 1min), expected);
}

TEST(WorkQueue, PriorityDoesNotBeatTheClock) {
  Queue queue;
  queue.add("urgent", kStart + 10s, 100);
  queue.add("plain", kStart);
  EXPECT_EQ(queue.take(kStart), "plain");
  EXPECT_EQ(queue.take(kStart), std::nullopt);
}

TEST(WorkQueue, ADueKeyCanStillBecomeMoreUrgent) {
  Queue queue;
  queue.add("a", kStart);
  queue.add("b", kStart + 1s);
  queue.add("c", kStart + 2s);
  ASSERT_EQ(queue.take(kStart + 1min), "a");  // b and c are due as well now
  queue.add("c", kStart + 2s, 7);
  EXPECT_EQ(queue.take(kStart + 1min), "c");
}

TEST(WorkQueue, ARunningKeyIsParkedAndComesBackWhenDone) {
  Queue queue;
  queue.add("a", kStart);
  ASSERT_EQ(queue.take(kStart), "a");
  queue.add("a", kStart + 1s);
  EXPECT_EQ(queue.take(kStart + 1h), std::nullopt);
  EXPECT_EQ(queue.next_wake(), std::nullopt);
  queue.done("a", WorkOutcome::forget(), kStart + 2s);
  EXPECT_EQ(queue.take(kStart + 2s), "a");
}

TEST(WorkQueue, ForgetLeavesNothingBehind) {
  Queue queue;
  queue.add("a", kStart);
  ASSERT_EQ(queue.take(kStart), "a");
  queue.done("a", WorkOutcome::forget(), kStart);
  EXPECT_EQ(queue.next_wake(), std::nullopt);
  EXPECT_EQ(queue.queued() + queue.running(), 0u);
}

TEST(WorkQueue, RequeueAfterLooksAgain) {
  Queue queue;
  queue.add("a", kStart);
  ASSERT_EQ(queue.take(kStart), "a");
  queue.done("a", WorkOutcome::requeue_after(30s), kStart + 1s);
  EXPECT_EQ(queue.next_wake(), kStart + 31s);
}

TEST(WorkQueue, AnEarlierParkedAddBeatsTheOutcome) {
  Queue queue;
  queue.add("a", kStart);
  ASSERT_EQ(queue.take(kStart), "a");
  queue.add("a", kStart + 1s);
  queue.done("a", WorkOutcome::requeue_after(30s), kStart);
  EXPECT_EQ(queue.next_wake(), kStart + 1s);
}

TEST(WorkQueue, FailuresInARowWaitLonger) {
  Queue queue(without_jitter());
  Instant now = kStart;
  queue.add("a", now);
  for (const Duration pause : {200ms, 400ms, 800ms}) {
    ASSERT_EQ(queue.take(now), "a");
    queue.done("a", WorkOutcome::retry_with_backoff(), now);
    EXPECT_EQ(queue.next_wake(), now + pause);
    now += pause;
  }
  EXPECT_EQ(queue.failures("a"), 3u);
}

TEST(WorkQueue, SuccessForgetsTheFailures) {
  Queue queue(without_jitter());
  queue.add("a", kStart);
  ASSERT_EQ(queue.take(kStart), "a");
  queue.done("a", WorkOutcome::retry_with_backoff(), kStart);
  ASSERT_EQ(queue.take(kStart + 1s), "a");
  queue.done("a", WorkOutcome::requeue_after(1s), kStart + 1s);
  EXPECT_EQ(queue.failures("a"), 0u);
}

TEST(WorkQueue, TerminalWaitsForTheNextAdd) {
  Queue queue;
  queue.add("a", kStart);
  ASSERT_EQ(queue.take(kStart), "a");
  queue.done("a", WorkOutcome::terminal(), kStart);
  EXPECT_EQ(queue.next_wake(), std::nullopt);
  queue.add("a", kStart + 1s);
  EXPECT_EQ(queue.take(kStart + 1s), "a");
}

TEST(WorkQueueDeathTest, DoneWithoutTakeIsABug) {
  Queue queue;
  queue.add("a", kStart);
  EXPECT_DEATH(queue.done("a", WorkOutcome::forget(), kStart), "running");
}

// The law against a simple model, over random histories.
void keep_the_law(std::uint64_t seed) {
  Prng luck(seed);
  Queue queue(without_jitter());
  struct Model {
    std::optional<Instant> when;    // queued
    std::optional<Instant> parked;  // asked for while running
    bool running = false;
  };
  std::map<std::string, Model> models;
  Instant now = kStart;
  const auto earlier = [](std::optional<Instant> a, Instant b) { return a ? std::min(*a, b) : b; };
  for (int step = 0; step < 20000; ++step) {
    now += Duration(luck.below(1'000'000'000));
    const std::string key(1, static_cast<char>('a' + luck.below(6)));
    Model& model = models[key];
    switch (luck.below(3)) {
      case 0: {
        const Instant when = now + Duration(luck.below(3'000'000'000));
        queue.add(key, when, static_cast<int>(luck.below(3)));
        (model.running ? model.parked : model.when) = earlier(model.running ? model.parked : model.when, when);
        break;
      }
      case 1: {
        const std::optional<std::string> taken = queue.take(now);
        if (taken) {
          Model& of_taken = models[*taken];
          ASSERT_FALSE(of_taken.running);
          ASSERT_TRUE(of_taken.when && *of_taken.when <= now);
          of_taken = {.running = true};
        } else {
          for (const auto& [name, other] : models) ASSERT_FALSE(other.when && *other.when <= now) << name;
        }
        break;
      }
      case 2: {
        if (!model.running) break;
        const Duration after(luck.below(2'000'000'000));
        const bool again = luck.below(2) == 0;
        queue.done(key, again ? WorkOutcome::requeue_after(after) : WorkOutcome::forget(), now);
        std::optional<Instant> when = model.parked;
        if (again) when = earlier(when, now + after);
        model = {.when = when};
        break;
      }
    }
    std::size_t queued = 0;
    std::size_t running = 0;
    std::optional<Instant> first;
    for (const auto& [name, other] : models) {
      ASSERT_FALSE(other.running && other.when);
      if (other.when) first = earlier(first, *other.when);
      queued += other.when ? 1 : 0;
      running += other.running ? 1 : 0;
    }
    ASSERT_EQ(queue.queued(), queued);
    ASSERT_EQ(queue.running(), running);
    ASSERT_EQ(queue.next_wake().has_value(), first.has_value());
    if (first && *first > now) {
      ASSERT_EQ(queue.next_wake(), first);
    }
  }
}

TEST(WorkQueue, KeepsItsLawInAnyHistory) { test::for_each_seed({.fixed = {20261121}}, keep_the_law); }

}  // namespace
}  // namespace rekindle::op
