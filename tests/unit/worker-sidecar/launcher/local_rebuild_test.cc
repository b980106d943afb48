// `rekindle run` with real processes whose collective breaks while all of them live.
#include <gmock/gmock.h>

#include "common/base/format.h"
#include "tests/unit/worker-sidecar/launcher/local_run.h"

namespace rekindle::launcher {
namespace {

using ::testing::HasSubstr;

constexpr int kFour = 4;

class LocalRebuild : public LocalRun {
 protected:
  void SetUp() override {
    LocalRun::SetUp();
    environment_["TEST_REBUILDS"] = "1";
  }

  // Every rank made its communicators anew that often, in the process that it began in.
  void expect_rebuilt(std::uint64_t times) {
    for (int rank = 0; rank < kFour; ++rank) {
      const std::string number = std::to_string(rank);
      EXPECT_EQ(number_in("rebuilt-" + number), times) << "rank " << rank;
      const std::string pids = read_bytes(folder_.at("out/pid-" + number));
      EXPECT_EQ(std::ranges::count(pids, '\n'), 1) << "rank " << rank << " was started again: " << pids;
    }
    EXPECT_TRUE(events("restart").empty());
    EXPECT_TRUE(events("rank_died").empty());
  }
};

TEST_F(LocalRebuild, ABrokenCollectiveCostsNoProcessAndNoStep) {
  environment_["TEST_FLAP"] = "1:20:before";
  const auto run = start({}, kFour);
  EXPECT_EQ(run->wait(), 0) << run->output();
  expect_rebuilt(1);
  expect_undisturbed_end(kFour);
  ASSERT_EQ(events("durable").size(), 1u) << run->output();
  EXPECT_EQ(events("durable")[0]["step"], 19);
  EXPECT_THAT(run->output(), HasSubstr("go on with step 20"));
}

TEST_F(LocalRebuild, ARankThatMissedAStepOfAllOthersLoadsIt) {
  environment_["TEST_FLAP"] = "2:20:after";
  const auto run = start({}, kFour);
  EXPECT_EQ(run->wait(), 0) << run->output();
  expect_rebuilt(1);
  expect_undisturbed_end(kFour);
  ASSERT_EQ(events("durable").size(), 1u) << run->output();
  EXPECT_EQ(events("durable")[0]["step"], 20);
}

TEST_F(LocalRebuild, ARankThatNoticesLateIsWaitedForWhereCommunicatorsAreMade) {
  environment_["TEST_FLAP"] = "1:20:before";
  environment_["TEST_SLOW_TO_NOTICE"] = "3";
  const auto run = start({}, kFour);
  EXPECT_EQ(run->wait(), 0) << run->output();
  expect_rebuilt(1);
  expect_undisturbed_end(kFour);
  EXPECT_EQ(events("durable").size(), 1u) << "its late report is no other failure";
}

TEST_F(LocalRebuild, WithShadowsAndPeriodicCheckpointsBothGoOn) {
  environment_["TEST_FLAP"] = "2:20:after";
  environment_["TEST_STEPS"] = "40";
  environment_["TEST_STEP_MICROSECONDS"] = "5000";
  const auto run = start({"--checkpoint-every", "5 steps", "--shadow-every", "1 step"}, kFour);
  EXPECT_EQ(run->wait(), 0) << run->output();
  expect_rebuilt(1);
  expect_undisturbed_end(kFour);
  EXPECT_GT(last_step_of("periodic"), 20u) << run->output();
}

TEST_F(LocalRebuild, AStepThatFailsAgainAndAgainRestartsTheJob) {
  environment_["TEST_FLAP"] = "0:20:before:4";
  const auto run = start({"--max-restarts", "0"}, kFour);
  EXPECT_EQ(run->wait(), 143) << run->output();
  for (int rank = 0; rank < kFour; ++rank) EXPECT_EQ(number_in(format("rebuilt-{}", rank)), 3u);
  EXPECT_THAT(run->output(), HasSubstr("3 times at this step"));
}

TEST_F(LocalRebuild, WhereOneRankCannotAllAreStartedAgain) {
  environment_["TEST_REBUILDS"] = "0,1,2";
  environment_["TEST_FLAP"] = "1:20:before";
  const auto run = start({}, kFour);
  EXPECT_EQ(run->wait(), 0) << run->output();
  EXPECT_EQ(number_in("first-3-2"), 20u);
  EXPECT_EQ(number_in("rebuilt-0"), 0u);
  EXPECT_THAT(run->output(), HasSubstr("rank 3 cannot make its communicators anew"));
  expect_undisturbed_end(kFour);
}

}  // namespace
}  // namespace rekindle::launcher
