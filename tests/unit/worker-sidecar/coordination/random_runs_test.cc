// Thousands of seeds, each a job with its own faults: evictions, kills, lost pods, restarted
// sidecars, orders, broken links, and a network that drops, doubles and delays.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iostream>

#include "tests/support/coordination_harness.h"
#include "tests/support/thoroughness.h"
#include "tests/unit/worker-sidecar/coordination/random_seeds.h"

namespace rekindle::sidecar {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

struct Story {
  explicit Story(std::uint64_t seed, bool delivered, bool parts = false, bool flaps = false)
      : luck(seed * 7919 + 13), all_delivered(delivered), flaps_(flaps) {
    HarnessOptions options{.seed = seed, .trains = true};
    options.pods = 1 + static_cast<std::uint32_t>(luck.below(4));
    options.ranks_per_pod = 1 + static_cast<std::uint32_t>(luck.below(2));
    options.states = luck.below(2) == 0;
    if (luck.below(3) == 0) options.after_fault = AfterBreakpoint::stop;
    if (!delivered) {
      options.drop = luck.below(2) == 0 ? 0 : 0.05;
      options.duplicate = luck.below(2) == 0 ? 0 : 0.1;
      options.delay_most = milliseconds(1 + static_cast<std::int64_t>(luck.below(20)));
    }
    parts_ = parts;
    options.rebuilds = flaps;
    if (parts) hold_parts(seed, options);
    else job = std::make_unique<CoordinationHarness>(options);
  }

  // The same faults on a job whose ranks hold different parts, half of them with shadows.
  void hold_parts(std::uint64_t seed, HarnessOptions options) {
    Prng choice(seed * 104729 + 7);
    constexpr std::array<std::string_view, 3> kWays = {"tensor", "pipeline", "zero"};
    const std::string_view way = kWays[choice.below(kWays.size())];
    if (choice.below(2) == 0) options.shadow_every = 1 + static_cast<std::uint32_t>(choice.below(3));
    // One rank cannot hold a half.
    if (way == "tensor" && options.pods * options.ranks_per_pod % 2 == 1) ++options.pods;
    job = std::make_unique<CoordinationHarness>(options);
    const std::uint32_t world = job->config().world_size();
    for (std::uint32_t rank = 0; rank < world; ++rank) job->set_layout_of(rank, *layout_for(way, rank, world));
  }

  std::uint32_t some_rank() { return static_cast<std::uint32_t>(luck.below(job->config().world_size())); }
  std::uint32_t some_pod() { return static_cast<std::uint32_t>(luck.below(job->config().pods)); }

  void fault() {
    if (flaps_ && luck.below(2) == 0) return job->break_communicators();
    const std::uint64_t kinds = all_delivered ? 7 : 11;
    switch (luck.below(kinds)) {
      case 0: job->hook(some_pod(), 20); break;
      case 1: job->kill_rank(some_rank()); break;
      case 2: job->want_checkpoint(some_rank()); break;
      case 3:
        job->order("order-" + std::to_string(++orders),
                   luck.below(2) == 0 ? AfterBreakpoint::go_on : AfterBreakpoint::park, 20);
        break;
      case 4:
        job->hook(some_pod(), 20);
        job->hook(some_pod(), 15);
        break;
      case 5: job->terminate(some_pod(), 20); break;
      case 6: job->freeze(milliseconds(static_cast<std::int64_t>(luck.below(3000)))); break;
      case 7: job->kill_pod(some_pod()); break;
      case 8: job->restart_sidecar(some_pod()); break;
      case 9: {
        const std::uint32_t a = some_pod(), b = some_pod();
        if (a != b) job->set_link(a, b, false);
        break;
      }
      default: job->fail_writes_of(some_rank(), {ErrorCode::exhausted, "the volume is full"}); break;
    }
  }

  void mend() {
    for (std::uint32_t a = 0; a < job->config().pods; ++a) {
      for (std::uint32_t b = a + 1; b < job->config().pods; ++b) job->set_link(a, b, true);
    }
    job->set_network(0, 0, milliseconds(1));
  }

  // P10, P13: what was saved is the largest step that a live rank has or could reach with one
  // update it is ready for.
  void check_step() {
    if (!all_delivered || parts_ || job->published().empty()) return;
    const auto last = std::max_element(job->published().begin(), job->published().end(),
                                       [](const auto& a, const auto& b) { return a.step < b.step; });
    std::uint64_t live_most = 0, most = 0;
    bool ready = false;
    for (std::uint32_t number = 0; number < job->config().world_size(); ++number) {
      const auto& rank = job->rank(number);
      if (rank.held && (rank.alive || rank.ended)) live_most = std::max(live_most, rank.word.step);
      most = std::max(most, rank.word.step);
    }
    for (std::uint32_t number = 0; number < job->config().world_size(); ++number) {
      const auto& rank = job->rank(number);
      ready = ready || ((rank.alive || rank.ended) && rank.held && rank.word.phase == RankPhase::waiting_at_update &&
                        rank.word.step + 1 == most);
    }
    if (live_most == 0) return;
    steps_checked = true;
    EXPECT_GE(last->step, live_most) << "a live rank had a newer step";
    if (ready) {
      EXPECT_GE(last->step, most) << "a live rank was one update away from a step that a dead one had committed";
    }
  }

  // Of some jobs a pod is told to end before its ranks have come, or while they start.
  void start() {
    if (luck.below(8) != 0) return job->start();
    const std::uint32_t pod = some_pod();
    if (luck.below(2) == 0) job->terminate(pod, 20);
    job->connect_everything();
    job->run_for(microseconds(luck.below(10'000)));
    job->terminate(pod, 20);
  }

  void execute() {
    start();
    job->run_for(milliseconds(static_cast<std::int64_t>(luck.below(200))));
    const std::uint64_t faults = 1 + luck.below(4);
    for (std::uint64_t i = 0; i < faults; ++i) {
      fault();
      job->run_for(luck.below(3) == 0 ? Duration{0} : Duration(microseconds(luck.below(30'000))));
    }
    job->run_for(milliseconds(static_cast<std::int64_t>(luck.below(3000))));
    mend();
    const bool ended = job->run_until([&] { return job->quiet(); }, seconds(120));
    EXPECT_TRUE(ended) << "something is still waited for:\n" << job->describe();
    job->run_for(seconds(1));
    for (const std::string& violation : job->violations()) ADD_FAILURE() << violation;
    for (const auto& [id, hook] : job->hooks())
      EXPECT_TRUE(hook.answer || hook.pod_died) << "hook " << id << " was not answered";
    check_step();
  }

  Prng luck;
  bool all_delivered;
  bool parts_ = false;
  bool flaps_ = false;  // communicators break, and ranks can make them anew
  int orders = 0;
  bool steps_checked = false;
  std::unique_ptr<CoordinationHarness> job;
};

void print(CoordinationHarness& job) {
  for (const std::string& line : job.take_log()) std::cout << line << "\n";
  std::cout << job.describe();
}

// `count` of what a run did, over all seeds of `part`: enough, or the check had nothing to check.
void run_seeds(std::uint64_t part, const std::function<Story(std::uint64_t)>& story,
               const std::function<std::uint64_t(const Story&)>& count = {}) {
  std::uint64_t counted = 0;
  test::for_each_seed(coordination_seeds(part), [&](std::uint64_t seed) {
    Story run = story(seed);
    run.execute();
    if (count) counted += count(run);
    if (is_replay()) print(*run.job);
  });
  if (count && !is_replay()) {
    EXPECT_GT(counted, exhaustive() ? seed_count() / 4 : 0) << "the check must have had something to check";
  }
}

TEST(RandomRuns, EveryRunEndsAndNoNameIsPublishedTwiceWhateverTheNetworkDoes) {
  run_seeds(1, [](std::uint64_t seed) { return Story(seed, false); });
}

TEST(RandomRuns, NoStepIsLostThatALiveRankCouldSaveWhenMessagesArrive) {
  run_seeds(
      1, [](std::uint64_t seed) { return Story(seed, true); },
      [](const Story& run) { return run.steps_checked ? 1u : 0u; });
}

// The harness refuses checkpoints that lack a tensor or an element of any rank, whoever is gone.
TEST(RandomRuns, WhatIsPublishedOfRanksThatHoldDifferentPartsIsComplete) {
  run_seeds(
      2, [](std::uint64_t seed) { return Story(seed, false, true); },
      [](const Story& run) { return run.job->published().size(); });
}

TEST(RandomRuns, AlsoWhileRanksMakeTheirCommunicatorsAnewEveryRunEnds) {
  run_seeds(
      2, [](std::uint64_t seed) { return Story(seed, false, seed % 3 == 0, true); },
      [](const Story& run) {
        std::uint64_t rebuilt = 0;
        for (std::uint32_t rank = 0; rank < run.job->config().world_size(); ++rank)
          rebuilt += run.job->rank(rank).rebuilds_made;
        return rebuilt;
      });
}

// Nothing but the ranks' network is broken, and sidecars lose no message: nobody is to be started
// again, no rank is left behind, and training goes on.
void expect_that_nobody_stops(std::uint64_t seed) {
  Prng luck(seed * 6271 + 5);
  HarnessOptions options{.seed = seed, .trains = true, .rebuilds = true};
  options.pods = 1 + static_cast<std::uint32_t>(luck.below(4));
  options.ranks_per_pod = 1 + static_cast<std::uint32_t>(luck.below(3));
  options.states = luck.below(2) == 0;
  options.duplicate = luck.below(2) == 0 ? 0 : 0.2;
  options.delay_most = milliseconds(1 + static_cast<std::int64_t>(luck.below(5)));
  if (luck.below(2) == 0) options.after_fault = AfterBreakpoint::stop;
  CoordinationHarness job(options);
  job.set_load_time(milliseconds(1 + static_cast<std::int64_t>(luck.below(200))));
  job.start();
  job.run_for(milliseconds(static_cast<std::int64_t>(luck.below(100))));
  const std::uint64_t flaps = 1 + luck.below(2);
  for (std::uint64_t flap = 0; flap < flaps; ++flap) {
    job.break_communicators();
    job.run_for(microseconds(luck.below(300'000)));
    if (luck.below(3) == 0) job.want_checkpoint(static_cast<std::uint32_t>(luck.below(job.config().world_size())));
    if (luck.below(3) == 0) job.order("by-hand-" + std::to_string(flap), AfterBreakpoint::go_on, 20);
  }
  job.run_for(seconds(8));
  std::uint64_t most = 0;
  for (std::uint32_t rank = 0; rank < job.config().world_size(); ++rank)
    most = std::max(most, job.rank(rank).word.step);
  job.run_for(milliseconds(200));
  for (std::uint32_t rank = 0; rank < job.config().world_size(); ++rank) {
    EXPECT_TRUE(job.rank(rank).alive) << "rank " << rank;
    EXPECT_FALSE(job.rank(rank).must_rebuild()) << "rank " << rank;
    EXPECT_GT(job.rank(rank).word.step, most) << "rank " << rank;
  }
  for (const std::string& violation : job.violations()) ADD_FAILURE() << violation;
  if (is_replay()) print(job);
}

TEST(RandomRuns, ABrokenNetworkEndsNoProcessThatCanMakeItsCommunicatorsAnew) {
  test::for_each_seed(coordination_seeds(16), expect_that_nobody_stops);
}

// A pod is told to end before its ranks have come, while the job starts, while a sidecar that came
// back finds its ranks again, or while they train. What was committed is saved: nothing else fails,
// and every message arrives. The harness refuses a rank that trains once its sidecar may exit.
std::uint64_t expect_that_no_step_is_lost_by_an_end(std::uint64_t seed) {
  Prng luck(seed * 4703 + 11);
  HarnessOptions options{.seed = seed, .trains = true};
  options.pods = 1 + static_cast<std::uint32_t>(luck.below(3));
  options.ranks_per_pod = 1 + static_cast<std::uint32_t>(luck.below(2));
  options.states = luck.below(2) == 0;
  if (luck.below(2) == 0) options.after_fault = AfterBreakpoint::stop;
  CoordinationHarness job(options);
  const auto pod = static_cast<std::uint32_t>(luck.below(options.pods));
  const std::uint64_t moment = luck.below(4);
  if (moment == 0) job.terminate(pod, 20);
  if (moment < 2) {
    job.connect_everything();
    job.run_for(microseconds(luck.below(10'000)));
  } else {
    job.start();
    job.run_for(microseconds(luck.below(200'000)));
  }
  if (moment == 2) {
    job.restart_sidecar(pod);
    job.run_for(microseconds(luck.below(40'000)));
  }
  job.terminate(pod, 20);
  job.run_for(seconds(30));
  EXPECT_TRUE(job.quiet()) << job.describe();
  EXPECT_FALSE(job.pod_up(pod)) << "the sidecar of pod " << pod << " was never allowed to exit";
  std::uint64_t committed = 0, durable = 0;
  for (std::uint32_t rank = 0; rank < job.config().world_size(); ++rank)
    committed = std::max(committed, job.rank(rank).word.step);
  for (const auto& each : job.published()) durable = std::max(durable, each.step);
  EXPECT_EQ(durable, committed);
  for (const std::string& violation : job.violations()) ADD_FAILURE() << violation;
  if (is_replay()) print(job);
  return committed;
}

TEST(RandomRuns, APodThatIsToldToEndAtAnyMomentLosesNoStep) {
  test::for_each_seed(coordination_seeds(4), expect_that_no_step_is_lost_by_an_end);
}

TEST(RandomRuns, TheSameSeedGivesTheSameRun) {
  Story first(77, false), second(77, false);
  first.execute();
  second.execute();
  EXPECT_EQ(first.job->trace_hash(), second.job->trace_hash());
}

}  // namespace
}  // namespace rekindle::sidecar
