#include "worker-sidecar/runtime/src/gates.h"

#include <gtest/gtest.h>

#include <array>
#include <future>
#include <thread>

#include "common/base/prng.h"
#include "tests/support/random_seed.h"
#include "tests/support/scripted_sidecar.h"

namespace rekindle::runtime {
namespace {

using testing::ControlMemory;

// A rank that stands at `step` with open gates.
class GatesAtStep : public ::testing::Test {
 protected:
  GatesAtStep() { gates.attach(*control); }
  void stand_at(std::uint64_t step) { gates.publish({.step = step, .phase = RankPhase::between, .slot = 0}); }
  void commit() { gates.publish({.step = gates.word().step + 1, .phase = RankPhase::between, .slot = 0}); }

  ControlMemory control;
  Gates gates;
};

TEST_F(GatesAtStep, OpenGatesArePassedAndSayWhatTheRankDoes) {
  stand_at(4);
  EXPECT_EQ(gates.pass_step_gate(RankPhase::computing), GateAnswer::passed);
  EXPECT_EQ(control.word(), (RankStatus{4, RankPhase::computing, 0}));
  EXPECT_EQ(gates.pass_update_gate(), GateAnswer::passed);
  EXPECT_EQ(control.word(), (RankStatus{4, RankPhase::updating, 0}));
}

TEST_F(GatesAtStep, HeldAtTheUpdateGateTheStateStaysCleanAtTheCommittedStep) {
  stand_at(4);
  control.hold();
  auto rank = std::async(std::launch::async, [&] { return gates.pass_update_gate(); });
  control.wait_for_phase(RankPhase::waiting_at_update);
  EXPECT_TRUE(is_clean(control.word()));
  EXPECT_EQ(control.word().step, 4u);
  control.release(GateOrder::go_on);
  EXPECT_EQ(rank.get(), GateAnswer::passed);
  EXPECT_EQ(control.word().phase, RankPhase::updating);
}

TEST_F(GatesAtStep, APermitLetsExactlyThatUpdateThrough) {
  stand_at(4);
  control.hold();
  auto rank = std::async(std::launch::async, [&] {
    const GateAnswer first = gates.pass_update_gate();
    commit();
    const GateAnswer second = gates.pass_update_gate();
    return std::pair(first, second);
  });
  control.wait_for_phase(RankPhase::waiting_at_update);
  control.permit(6);  // of another step: nothing happens
  EXPECT_EQ(control.word(), (RankStatus{4, RankPhase::waiting_at_update, 0}));
  control.permit(5);
  testing::wait_until([&] { return control.word() == RankStatus{5, RankPhase::waiting_at_update, 0}; },
                      "the rank waits with step 5 committed");
  control.release(GateOrder::stop);
  EXPECT_EQ(rank.get(), std::pair(GateAnswer::passed, GateAnswer::stop));
  EXPECT_EQ(control.word().step, 5u);
}

TEST_F(GatesAtStep, APermitOpensNoStepGate) {
  stand_at(4);
  control.hold();
  control.permit(5);
  auto rank = std::async(std::launch::async, [&] { return gates.pass_step_gate(RankPhase::computing); });
  control.wait_for_phase(RankPhase::waiting_at_step);
  control.release(GateOrder::go_on);
  EXPECT_EQ(rank.get(), GateAnswer::passed);
}

TEST_F(GatesAtStep, ARankThatUpdatesWhenTheHoldArrivesCommitsAndStopsAtTheNextGate) {
  stand_at(4);
  ASSERT_EQ(gates.pass_update_gate(), GateAnswer::passed);
  control.hold();
  EXPECT_FALSE(is_clean(control.word()));
  commit();
  auto rank = std::async(std::launch::async, [&] { return gates.pass_step_gate(RankPhase::between); });
  control.wait_for_phase(RankPhase::waiting_at_step);
  EXPECT_EQ(control.word().step, 5u);
  control.release(GateOrder::stop);
  EXPECT_EQ(rank.get(), GateAnswer::stop);
}

TEST_F(GatesAtStep, TheOrderToStopComesOutOfEveryGate) {
  stand_at(4);
  for (const bool at_update : {false, true}) {
    control.hold();
    auto rank = std::async(std::launch::async, [&] {
      return at_update ? gates.pass_update_gate() : gates.pass_step_gate(RankPhase::computing);
    });
    control.wait_for_phase(at_update ? RankPhase::waiting_at_update : RankPhase::waiting_at_step);
    control.release(GateOrder::stop);
    EXPECT_EQ(rank.get(), GateAnswer::stop);
    EXPECT_TRUE(is_clean(control.word()));
  }
}

TEST_F(GatesAtStep, AStopThatCameAndWentBetweenTwoGatesIsSeenAtTheNext) {
  stand_at(4);
  control.hold();
  control.release(GateOrder::stop);
  EXPECT_EQ(gates.pass_step_gate(RankPhase::computing), GateAnswer::stop);
  EXPECT_EQ(gates.pass_update_gate(), GateAnswer::stop);
}

TEST_F(GatesAtStep, ASidecarThatDiedBeforeItsWakeIsNoticed) {
  stand_at(4);
  control.hold();
  auto rank = std::async(std::launch::async, [&] { return gates.pass_step_gate(RankPhase::computing); });
  control.wait_for_phase(RankPhase::waiting_at_step);
  control.store_release(GateOrder::go_on);
  EXPECT_EQ(rank.get(), GateAnswer::passed);
}

TEST_F(GatesAtStep, AGivenUpHoldOpensTheGatesAndALaterOneClosesThemAgain) {
  stand_at(4);
  const std::uint32_t first = control.hold();
  auto rank = std::async(std::launch::async, [&] { return gates.pass_step_gate(RankPhase::computing); });
  control.wait_for_phase(RankPhase::waiting_at_step);
  gates.give_up_hold();
  EXPECT_EQ(rank.get(), GateAnswer::passed);
  EXPECT_TRUE(gates.given_up(first));

  const std::uint32_t second = control.hold();
  EXPECT_FALSE(gates.given_up(second));
  auto again = std::async(std::launch::async, [&] { return gates.pass_step_gate(RankPhase::computing); });
  control.wait_for_phase(RankPhase::waiting_at_step);
  control.release(GateOrder::go_on);
  EXPECT_EQ(again.get(), GateAnswer::passed);
}

TEST_F(GatesAtStep, EndTakesTheRankOutOfAHeldGate) {
  stand_at(4);
  control.hold();
  auto rank = std::async(std::launch::async, [&] { return gates.pass_update_gate(); });
  control.wait_for_phase(RankPhase::waiting_at_update);
  gates.end();
  EXPECT_EQ(rank.get(), GateAnswer::stop);
  EXPECT_EQ(gates.pass_step_gate(RankPhase::computing), GateAnswer::stop);
}

TEST_F(GatesAtStep, AfterAFailedCollectiveOnlyAHoldThatCameLaterCanEndTheWait) {
  stand_at(4);
  control.hold();  // of a periodic checkpoint that is under way
  std::promise<void> reported;
  auto rank =
      std::async(std::launch::async, [&] { return gates.wait_for_order(false, [&] { reported.set_value(); }); });
  reported.get_future().wait();
  control.release(GateOrder::go_on);
  EXPECT_EQ(rank.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  control.hold();
  control.release(GateOrder::stop);
  EXPECT_EQ(rank.get(), GateAnswer::stop);
}

const RebuildOrder kRebuild{.term = 65536, .step = 4, .path = "a1-s4-x", .manifest_hash = "hash"};

TEST_F(GatesAtStep, TheOrderToRebuildComesOutOfEveryGateUntilItIsCarriedOut) {
  for (const bool at_update : {false, true}) {
    stand_at(4);
    control.hold();
    auto rank = std::async(std::launch::async, [&] {
      return at_update ? gates.pass_update_gate() : gates.pass_step_gate(RankPhase::computing);
    });
    control.wait_for_phase(at_update ? RankPhase::waiting_at_update : RankPhase::waiting_at_step);
    control.release_to_rebuild(kRebuild);
    EXPECT_EQ(rank.get(), GateAnswer::rebuild);
    EXPECT_EQ(control.word(), (RankStatus{4, RankPhase::collective_failed, 0}))
        << "clean, and nobody waits for its update";
    EXPECT_EQ(gates.pass_step_gate(RankPhase::computing), GateAnswer::rebuild);
    EXPECT_EQ(gates.pass_step_gate(RankPhase::restoring, HonoredOrders::stop), GateAnswer::passed)
        << "on its way to carry it out";
  }
  EXPECT_EQ(gates.rebuild_order(), kRebuild);
  gates.publish_rebuilt({4, RankPhase::between, 0}, kRebuild.term);
  EXPECT_EQ(gates.pass_step_gate(RankPhase::computing), GateAnswer::passed)
      << "also before the sidecar has heard of it";
  control.settle_rebuild();
  EXPECT_EQ(gates.pass_update_gate(), GateAnswer::passed);
}

TEST_F(GatesAtStep, AnOrderToRebuildOutlivesAHoldThatEndsOtherwise) {
  stand_at(4);
  control.hold();
  control.release_to_rebuild(kRebuild);
  control.hold();
  auto rank = std::async(std::launch::async, [&] { return gates.pass_step_gate(RankPhase::computing); });
  control.wait_for_phase(RankPhase::waiting_at_step);
  control.release(GateOrder::go_on);
  EXPECT_EQ(rank.get(), GateAnswer::rebuild);
  control.hold();
  control.release(GateOrder::stop);
  EXPECT_EQ(gates.pass_step_gate(RankPhase::computing), GateAnswer::stop) << "which is stronger";
  EXPECT_TRUE(gates.stop_is_ordered());
}

TEST_F(GatesAtStep, WhoeverReportsAFailedCollectiveLateIsAnsweredByTheOrderThatIsThere) {
  stand_at(4);
  control.hold();
  control.release_to_rebuild(kRebuild);
  EXPECT_EQ(gates.wait_for_order(true, [] { ADD_FAILURE() << "nobody needs to be told"; }), GateAnswer::rebuild);
}

TEST_F(GatesAtStep, ARankThatCanRebuildWaitsThroughHoldsThatAreNotAboutIt) {
  stand_at(4);
  std::promise<void> reported;
  auto rank = std::async(std::launch::async, [&] { return gates.wait_for_order(true, [&] { reported.set_value(); }); });
  reported.get_future().wait();
  control.hold();
  control.release(GateOrder::go_on);
  EXPECT_EQ(rank.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  control.hold();
  control.release_to_rebuild(kRebuild);
  EXPECT_EQ(rank.get(), GateAnswer::rebuild);
}

TEST_F(GatesAtStep, WithoutASidecarAnOrderToRebuildStillStands) {
  stand_at(4);
  control.hold();
  control.release_to_rebuild(kRebuild);
  control.hold();
  gates.give_up_hold();
  EXPECT_EQ(gates.pass_step_gate(RankPhase::computing), GateAnswer::rebuild) << "the others have it too";
}

// Gates whose test is the sidecar between the word of the rank and its look at the hold.
class GatesSeenInBetween : public Gates {
 public:
  template <typename Said>
  GateAnswer pass_update_gate_and(Said&& said) noexcept {
    return pass(RankPhase::updating, RankPhase::waiting_at_update, word().step + 1, HonoredOrders::rebuild_and_stop,
                said);
  }
};

TEST(GatesInBetween, ARankThatLeavesAClosedGateIsHeldByAHoldThatComesBeforeItsSecondLook) {
  ControlMemory control;
  GatesSeenInBetween gates;
  gates.attach(*control);
  gates.publish({.step = 4, .phase = RankPhase::between, .slot = 0});
  control.hold();
  std::atomic<int> looks = 0;
  auto rank = std::async(std::launch::async, [&] {
    return gates.pass_update_gate_and([&] {
      if (looks == 1) control.hold();
      ++looks;
    });
  });
  control.wait_for_phase(RankPhase::waiting_at_update);
  control.release(GateOrder::go_on);
  testing::wait_until(
      [&] {
        return (looks == 2 && control.word().phase == RankPhase::waiting_at_update) ||
               rank.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
      },
      "the rank waits again or has passed");
  EXPECT_EQ(control.word(), (RankStatus{4, RankPhase::waiting_at_update, 0})) << "it updates under the second hold";
  control.release(GateOrder::go_on);
  EXPECT_EQ(rank.get(), GateAnswer::passed);
  EXPECT_EQ(looks, 3);
}

// The law of P3: once a hold is stored and the word reads clean, the memory is the result of
// exactly that many updates and stays so until the release, however the two sides are timed.
TEST_F(GatesAtStep, WhatIsReadUnderAHoldIsNeverTorn) {
  // A fixed seed would fix the pauses and not the threads, and these gates say stop only once.
  test::for_each_seed({.fixed = {}}, [&](std::uint64_t seed) {
    constexpr int kHolds = 4000;
    Prng prng(seed);
    std::array<std::atomic<std::uint64_t>, 64> memory{};
    stand_at(0);
    auto rank = std::async(std::launch::async, [&] {
      for (;;) {
        if (gates.pass_step_gate(RankPhase::computing) == GateAnswer::stop) return;
        if (gates.pass_update_gate() == GateAnswer::stop) return;
        for (auto& cell : memory) cell.fetch_add(1, std::memory_order_relaxed);
        commit();
      }
    });
    // its thread has begun: all holds could be over before
    while (control.word().step == 0) std::this_thread::yield();
    int torn = 0;
    for (int i = 0; i < kHolds; ++i) {
      for (std::uint64_t pause = prng.below(300); pause > 0; --pause)
        std::atomic_signal_fence(std::memory_order_seq_cst);
      control.hold();
      RankStatus word = control.word();
      while (!is_clean(word)) {
        std::this_thread::yield();
        word = control.word();
      }
      // The hold has no permit, so the memory is the one of word.step until the release.
      for (auto& cell : memory) torn += cell.load(std::memory_order_relaxed) != word.step;
      torn += control.word().step != word.step;
      control.release(i + 1 == kHolds ? GateOrder::stop : GateOrder::go_on);
    }
    rank.get();
    EXPECT_EQ(torn, 0);
  });
}

}  // namespace
}  // namespace rekindle::runtime
