// RK_SWAPPED: registered memory that holds averaged weights for an evaluation is nobody's source.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/worker-sidecar/runtime/rank.h"

namespace rekindle::runtime {
namespace {

using ::testing::HasSubstr;
using testing::Rank;
using testing::ScriptedSidecar;

class SwappedWeights : public ::testing::Test {
 protected:
  SwappedWeights() : rank(sidecar.socket_path()) {}
  ~SwappedWeights() override {
    sidecar.control.release(GateOrder::stop);
    if (waiting.valid()) waiting.wait();
  }
  void start() {
    auto started = std::async(std::launch::async, [&] { rank.start(); });
    sidecar.welcome();
    sidecar.begin();
    started.get();
    ASSERT_EQ(rank.one_step(), RK_OK);
  }
  RankStatus word() const { return sidecar.control.word(); }
  void set_phase_elsewhere(rk_phase phase) {
    waiting = std::async(std::launch::async, [this, phase] { return rank.session->set_phase(phase); });
  }

  std::future<rk_status> waiting;
  ScriptedSidecar sidecar;
  Rank rank;
};

TEST_F(SwappedWeights, AreDirtyUntilThePhaseIsSetBack) {
  start();
  ASSERT_EQ(rank.session->set_phase(RK_SWAPPED), RK_OK);
  EXPECT_EQ(word().phase, RankPhase::swapped);
  EXPECT_FALSE(is_clean(word()));
  ASSERT_EQ(rank.session->set_phase(RK_SWAPPED), RK_OK) << "said twice";
  ASSERT_EQ(rank.session->set_phase(RK_EVALUATING), RK_OK);
  EXPECT_EQ(word().phase, RankPhase::evaluating);
  EXPECT_TRUE(is_clean(word()));
  EXPECT_EQ(rank.one_step(), RK_OK);
}

TEST_F(SwappedWeights, AreNotTrainedOn) {
  start();
  ASSERT_EQ(rank.session->set_phase(RK_SWAPPED), RK_OK);
  EXPECT_EQ(rank.session->step_begin(2), RK_ERROR_STATE);
  EXPECT_THAT(last_error(), HasSubstr("rk_step_begin while registered memory is swapped: put it back"));
  EXPECT_EQ(rank.session->checkpoint(), RK_ERROR_STATE);
  EXPECT_EQ(rank.session->remove_tensor("weights"), RK_ERROR_STATE);
  ASSERT_EQ(rank.session->set_phase(RK_TRAINING), RK_OK);
  ASSERT_EQ(rank.session->step_begin(2), RK_OK);
  ASSERT_EQ(rank.session->set_phase(RK_SWAPPED), RK_OK) << "also inside a step, before its update";
  EXPECT_EQ(rank.session->update_begin(), RK_ERROR_STATE);
  ASSERT_EQ(rank.session->set_phase(RK_TRAINING), RK_OK);
  EXPECT_EQ(word().phase, RankPhase::computing);
  EXPECT_EQ(rank.session->update_begin(), RK_OK);
}

TEST_F(SwappedWeights, AreNotPutThereWhileABreakpointIsWritten) {
  start();
  sidecar.control.hold();
  set_phase_elsewhere(RK_SWAPPED);
  sidecar.control.wait_for_phase(RankPhase::waiting_at_step);
  EXPECT_TRUE(is_clean(word())) << "the weights are still those of the step";
  sidecar.control.release(GateOrder::go_on);
  EXPECT_EQ(waiting.get(), RK_OK);
  EXPECT_EQ(word().phase, RankPhase::swapped);
}

TEST_F(SwappedWeights, ARankThatIsToStopDoesNotSwap) {
  start();
  sidecar.control.hold();
  set_phase_elsewhere(RK_SWAPPED);
  sidecar.control.wait_for_phase(RankPhase::waiting_at_step);
  sidecar.control.release(GateOrder::stop);
  EXPECT_EQ(waiting.get(), RK_STOP);
  EXPECT_EQ(rank.session->step_begin(2), RK_STOP);
}

TEST_F(SwappedWeights, ThatComeBackDuringAHoldMakeTheRankASourceThatWaits) {
  start();
  ASSERT_EQ(rank.session->set_phase(RK_SWAPPED), RK_OK);
  sidecar.control.hold();
  set_phase_elsewhere(RK_TRAINING);
  sidecar.control.wait_for_phase(RankPhase::waiting_at_step);
  EXPECT_EQ(word().step, 1u);
  EXPECT_TRUE(is_clean(word()));
  sidecar.control.release(GateOrder::go_on);
  EXPECT_EQ(waiting.get(), RK_OK);
  EXPECT_EQ(rank.one_step(), RK_OK);
}

TEST_F(SwappedWeights, AFailedCollectiveInTheEvaluationIsReportedAndTheRankStaysDirty) {
  start();
  ASSERT_EQ(rank.session->set_phase(RK_SWAPPED), RK_OK);
  waiting = std::async(std::launch::async, [this] { return rank.session->collective_failed("metrics all-reduce"); });
  EXPECT_EQ(sidecar.expect<CollectiveFailedMessage>("collective_failed").why, "metrics all-reduce");
  EXPECT_FALSE(is_clean(word()));
  sidecar.control.hold();
  sidecar.control.release(GateOrder::stop);
  EXPECT_EQ(waiting.get(), RK_STOP);
}

TEST_F(SwappedWeights, AProgramMayEndWithThem) {
  start();
  ASSERT_EQ(rank.session->set_phase(RK_SWAPPED), RK_OK);
  EXPECT_EQ(rank.session->close(), 0);
  EXPECT_EQ(word().phase, RankPhase::finished);
}

}  // namespace
}  // namespace rekindle::runtime
