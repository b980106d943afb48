// Jobs with one to three faults while a breakpoint is made, on connections that lose nothing but
// what breaks them: whatever a live rank holds at the end is in a checkpoint.
#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>

#include "tests/support/coordination_harness.h"
#include "tests/unit/worker-sidecar/coordination/random_seeds.h"

namespace rekindle::sidecar {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

class FaultsWhileSaving {
 public:
  explicit FaultsWhileSaving(std::uint64_t seed) : rng_(seed * 7919 + 13), job_(options(seed)) {
    job_.set_write_time(milliseconds(4 + below(400)));
  }

  void execute() {
    job_.start();
    job_.run_for(milliseconds(20 + below(100)));
    job_.order("order", AfterBreakpoint::park, 30);
    const std::uint32_t faults = 1 + below(3);
    for (std::uint32_t i = 0; i < faults; ++i) {
      job_.run_for(microseconds(below(below(2) == 0 ? 3'000 : 1'500'000)));
      fault();
    }
    job_.run_for(seconds(3));
    // Sidecars that were restarted have not heard of it.
    job_.order("order", AfterBreakpoint::park, 27);
    job_.run_for(seconds(8));
    EXPECT_TRUE(job_.run_until([this] { return job_.quiet(); }, seconds(120))) << job_.describe();
    job_.run_for(seconds(1));
  }

  void expect_that_what_lives_is_saved() const {
    const std::optional<std::uint64_t> live = newest_live_step();
    if (!live) return;
    std::uint64_t saved = 0;
    for (const auto& each : job_.published()) saved = std::max(saved, each.step);
    EXPECT_GE(saved, *live) << "a rank that lives holds a newer step";
    for (const std::string& violation : job_.violations()) ADD_FAILURE() << violation;
  }

  void print() {
    for (const std::string& line : job_.take_log()) std::cout << line << "\n";
    std::cout << job_.describe();
  }

 private:
  std::uint32_t below(std::uint64_t bound) { return static_cast<std::uint32_t>(rng_.below(bound)); }

  HarnessOptions options(std::uint64_t seed) {
    HarnessOptions options{.seed = seed, .trains = true};
    options.pods = 3 + below(3);
    options.ranks_per_pod = 1 + below(2);
    options.states = below(2) == 0;
    options.delay_most = microseconds(200 + below(3000));
    return options;
  }

  void fault() {
    const std::uint32_t pods = job_.config().pods;
    const std::uint32_t pod = below(pods), rank = below(job_.config().world_size());
    // Two pods at least keep what they have.
    const bool may_lose = lost_ + 2 < pods;
    switch (below(4)) {
      case 0:
        if (!may_lose || !job_.pod_up(pod)) return;
        job_.kill_pod(pod);
        ++lost_;
        return;
      case 1:
        if (may_lose) job_.kill_rank(rank);
        return;
      case 2: job_.restart_sidecar(pod); return;
      default: {
        const std::uint32_t other = below(pods);
        if (other == pod) return;
        job_.set_link(pod, other, false);
        job_.run_for(milliseconds(below(300)));
        job_.set_link(pod, other, true);
      }
    }
  }

  std::optional<std::uint64_t> newest_live_step() const {
    std::optional<std::uint64_t> newest;
    for (std::uint32_t number = 0; number < job_.config().world_size(); ++number) {
      const auto& rank = job_.rank(number);
      const bool lives = rank.alive || rank.ended;
      if (lives && job_.pod_up(job_.config().pod_of(number)) && is_clean(rank.word))
        newest = std::max(newest.value_or(0), rank.word.step);
    }
    return newest;
  }

  Prng rng_;
  CoordinationHarness job_;
  std::uint32_t lost_ = 0;
};

TEST(LiveCopies, AreSavedWhateverIsLostWhileTheBreakpointIsMade) {
  test::for_each_seed(coordination_seeds(4), [](std::uint64_t seed) {
    FaultsWhileSaving run(seed);
    run.execute();
    run.expect_that_what_lives_is_saved();
    if (is_replay()) run.print();
  });
}

}  // namespace
}  // namespace rekindle::sidecar
