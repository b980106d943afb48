// Breakpoints of jobs whose ranks hold different parts, on the harness, which refuses a checkpoint
// that lacks anything that a rank registered.
#include <gtest/gtest.h>

#include "tests/support/coordination_harness.h"

namespace rekindle::sidecar::sharded {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const RestoreCandidate kRestored{"a1-s184-x", 1, 184, "hash-184", {.bytes = 1212000, .world_size = 4, .live_ranks = 4}};

CoordinationHarness training(std::string_view parallel, HarnessOptions options) {
  CoordinationHarness job(options);
  const std::uint32_t world = job.config().world_size();
  for (std::uint32_t rank = 0; rank < world; ++rank) job.set_layout_of(rank, *layout_for(parallel, rank, world));
  job.start(kRestored);
  for (std::uint32_t rank = 0; rank < world; ++rank) job.place(rank, 190, RankPhase::computing);
  job.run_for(milliseconds(5));
  job.take_log();
  return job;
}

bool settles(CoordinationHarness& job) {
  job.run_for(milliseconds(1));
  const bool quiet = job.run_until([&] { return job.quiet(); }, seconds(60));
  EXPECT_TRUE(job.violations().empty()) << job.violations().front();
  return quiet;
}

// 0: nothing was published.
std::uint64_t saved_step(const CoordinationHarness& job) {
  return job.published().empty() ? 0 : job.published().back().step;
}

TEST(ShardedBreakpoint, EachWayOfTrainingIsSavedWhenAPodIsEvicted) {
  for (const char* parallel : {"tensor", "pipeline", "zero"}) {
    CoordinationHarness job = training(parallel, {.pods = 2, .ranks_per_pod = 2, .states = true});
    job.hook(1, 30);
    ASSERT_TRUE(settles(job)) << parallel << job.describe();
    EXPECT_EQ(saved_step(job), 190u) << parallel;
  }
}

TEST(ShardedBreakpoint, AnyPodCanLeadAndStillKnowsWhatTheLostOnesHeld) {
  // Ranks 0 and 2 hold one stage, 1 and 3 the other.
  CoordinationHarness job = training("pipeline", {.pods = 4});
  job.kill_pod(0);
  job.run_for(seconds(6));
  ASSERT_TRUE(settles(job)) << job.describe();
  EXPECT_EQ(saved_step(job), 190u) << "rank 2 has the stage of rank 0";
}

TEST(ShardedBreakpoint, AStageThatIsGoneWithItsPodsIsMissedByThePodsOfTheOther) {
  CoordinationHarness job = training("pipeline", {.pods = 2});
  job.kill_pod(0);
  job.run_for(seconds(6));
  ASSERT_TRUE(settles(job)) << job.describe();
  EXPECT_EQ(saved_step(job), 0u);
  EXPECT_EQ(job.records().back().state, SaveState::failed);
  EXPECT_NE(job.records().back().message.find("tensor \"stage0.w\", held by rank 0"), std::string::npos)
      << job.records().back().message;
}

TEST(ShardedBreakpoint, ASidecarThatCameBackHasAskedTheOthersBeforeTheyAreGone) {
  CoordinationHarness job = training("pipeline", {.pods = 3});
  job.restart_sidecar(0);
  job.run_for(milliseconds(500));
  job.kill_pod(1);
  job.run_for(seconds(6));
  ASSERT_TRUE(settles(job)) << job.describe();
  EXPECT_EQ(saved_step(job), 0u);
  EXPECT_NE(job.records().back().message.find("tensor \"stage1.w\", held by rank 1"), std::string::npos)
      << job.records().back().message;
}

TEST(ShardedBreakpoint, WhereNobodyKnowsWhatALostRankHeldNothingIsPublished) {
  CoordinationHarness job = training("pipeline", {.pods = 2});
  job.set_link(0, 1, false);
  job.restart_sidecar(0);
  job.run_for(milliseconds(50));
  job.kill_pod(1);
  job.table({{0, false}}, true);
  job.hook(0, 10);
  ASSERT_TRUE(settles(job)) << job.describe();
  EXPECT_EQ(saved_step(job), 0u);
  EXPECT_NE(job.records().back().message.find("knows what rank 1 had registered"), std::string::npos)
      << job.records().back().message;
}

TEST(ShardedBreakpoint, WhatIsRegisteredLateIsSavedToo) {
  CoordinationHarness job = training("data", {.pods = 2, .ranks_per_pod = 2});
  for (std::uint32_t rank = 0; rank < 4; ++rank) {
    Layout layout = harness_layout();
    layout.tensors.push_back(whole_tensor("adam" + std::to_string(rank % 2), Dtype::f32, {8}));
    job.register_late(rank, layout);
  }
  job.hook(1, 30);
  ASSERT_TRUE(settles(job)) << job.describe();
  EXPECT_EQ(saved_step(job), 190u);
}

TEST(ShardedBreakpoint, ReportsThatDoNotFitAFrameComeInParts) {
  CoordinationHarness job({.pods = 2, .ranks_per_pod = 3, .duplicate = 0.3});
  for (std::uint32_t rank = 0; rank < 6; ++rank) {
    Layout layout;
    for (int i = 0; i < 1500; ++i)
      layout.tensors.push_back(whole_tensor(
          "layers." + std::to_string(rank) + "." + std::to_string(i) + ".attention.weight", Dtype::f32, {4, 4}));
    job.set_layout_of(rank, std::move(layout));
  }
  job.start(kRestored);
  for (std::uint32_t rank = 0; rank < 6; ++rank) job.place(rank, 190, RankPhase::computing);
  job.hook(1, 30);
  ASSERT_TRUE(settles(job)) << job.describe();
  EXPECT_EQ(saved_step(job), 190u);
}

TEST(ShardedBreakpoint, P11_ARankThatDiesWhileItsShadowIsWrittenChangesNothing) {
  CoordinationHarness job = training("pipeline", {.pods = 2});
  for (std::uint32_t rank = 0; rank < 2; ++rank) job.set_shadows(rank, {189, 190});
  job.place(0, 191, RankPhase::between);
  job.set_shadows(0, {190, 191});
  job.kill_rank(1);
  job.run_until([&] { return joined(job.take_log()).find("from the shadow of rank 0") != std::string::npos; },
                seconds(5));
  job.kill_rank(0);
  ASSERT_TRUE(settles(job)) << job.describe();
  EXPECT_EQ(saved_step(job), 190u);
  EXPECT_EQ(job.published().size(), 1u);
}

TEST(ShardedBreakpoint, P11_AShadowThatCannotBeReadIsReplacedByAnOlderStep) {
  // Rank 0's shadow of 190 is needed because it has gone on; that of 180 is needed of both.
  CoordinationHarness job = training("pipeline", {.pods = 4});
  for (std::uint32_t rank = 0; rank < 4; ++rank) job.set_shadows(rank, {180, 190});
  job.fail_shadows_of(1, {ErrorCode::io, "input/output error", Retry::no});
  job.kill_rank(1);
  ASSERT_TRUE(settles(job)) << job.describe();
  EXPECT_EQ(saved_step(job), 190u) << "rank 3 lives and has all of it";
}

TEST(ShardedBreakpoint, APodWhoseRanksAreAllDeadStaysUntilItsShadowsAreWritten) {
  CoordinationHarness job = training("zero", {.pods = 2, .ranks_per_pod = 2});
  for (std::uint32_t rank = 0; rank < 4; ++rank) job.set_shadows(rank, {189, 190});
  job.kill_rank(2);
  job.kill_rank(3);
  job.terminate(1, 20);
  ASSERT_TRUE(settles(job)) << job.describe();
  EXPECT_EQ(saved_step(job), 190u);
  const std::string log = joined(job.take_log());
  EXPECT_LT(log.find("published"), log.find("pod 1 may exit")) << log;
}

}  // namespace
}  // namespace rekindle::sidecar::sharded
