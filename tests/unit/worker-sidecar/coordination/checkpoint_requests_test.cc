// rk_checkpoint: every request is answered, with what is durable or why it is not.
#include "worker-sidecar/coordination/checkpoint_requests.h"

#include <gtest/gtest.h>

#include "tests/support/coordination_harness.h"

namespace rekindle::sidecar {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

// A new job whose ranks have made 190 steps.
CoordinationHarness asking_job(HarnessOptions options) {
  CoordinationHarness job(options);
  job.start();
  for (std::uint32_t rank = 0; rank < job.config().world_size(); ++rank) job.place(rank, 190, RankPhase::between);
  job.run_for(milliseconds(5));
  return job;
}

bool all_answered(CoordinationHarness& job) {
  const bool quiet = job.run_until([&] { return job.quiet(); }, minutes(3));
  EXPECT_TRUE(job.violations().empty()) << job.violations().front();
  return quiet;
}

TEST(CheckpointRequest, IsAnsweredWhenTheStepIsDurable) {
  CoordinationHarness job = asking_job({.pods = 2});
  job.want_checkpoint(0);
  ASSERT_TRUE(job.checkpoint_answers().empty()) << "nothing is durable yet";
  ASSERT_TRUE(all_answered(job));
  ASSERT_EQ(job.checkpoint_answers().size(), 1u);
  EXPECT_EQ(job.checkpoint_answers()[0].done.outcome, HookOutcome::durable);
  EXPECT_EQ(job.checkpoint_answers()[0].done.step, job.published()[0].step);
}

TEST(CheckpointRequest, OfEveryRankAtOneStepIsOneCheckpoint) {
  CoordinationHarness job = asking_job({.pods = 2});
  job.want_checkpoint(0);
  ASSERT_TRUE(all_answered(job));
  job.want_checkpoint(1);
  ASSERT_TRUE(all_answered(job));
  EXPECT_EQ(job.published().size(), 1u);
  ASSERT_EQ(job.checkpoint_answers().size(), 2u);
  EXPECT_EQ(job.checkpoint_answers()[1].done.outcome, HookOutcome::durable);
}

TEST(CheckpointRequest, OfANewerStepThanTheOneUnderWayGetsACheckpointOfItsOwn) {
  CoordinationHarness job = asking_job({.pods = 2});
  job.want_checkpoint(0);
  ASSERT_TRUE(all_answered(job));
  const std::uint64_t first = job.published()[0].step;
  for (std::uint32_t rank = 0; rank < 2; ++rank) job.place(rank, first + 1, RankPhase::between);
  job.want_checkpoint(0);
  ASSERT_TRUE(all_answered(job));
  ASSERT_EQ(job.published().size(), 2u);
  ASSERT_EQ(job.checkpoint_answers().size(), 2u);
  EXPECT_EQ(job.checkpoint_answers()[1].done.step, first + 1);
}

TEST(CheckpointRequest, OfAStepThatNotAllRanksMakeIsTriedOnceMore) {
  CheckpointRequests requests;
  CoordinationOutputs out;
  requests.add(0, 191, Instant(minutes(1)));
  const CommittedMessage older{.term = 1, .step = 190, .path = "a1-s190-x", .after = AfterBreakpoint::go_on};
  requests.settle(older, out);
  EXPECT_TRUE(out.empty());
  requests.settle(older, out);
  ASSERT_EQ(out.size(), 1u);
  const CheckpointDoneMessage& done = std::get<AnswerCheckpoint>(out[0]).done;
  EXPECT_EQ(done.outcome, HookOutcome::failed);
  EXPECT_EQ(done.message, "step 190 is durable; not all ranks have made step 191");
  EXPECT_TRUE(requests.empty());
}

TEST(CheckpointRequest, ThatNobodyAnswersIsOverWithItsTime) {
  CheckpointRequests requests;
  CoordinationOutputs out;
  requests.add(0, 191, Instant(minutes(1)));
  EXPECT_EQ(requests.next_wake(), Instant(minutes(1)));
  requests.give_up_overdue(Instant(seconds(59)), out);
  EXPECT_TRUE(out.empty());
  requests.give_up_overdue(Instant(minutes(1)), out);
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(std::get<AnswerCheckpoint>(out[0]).done.outcome, HookOutcome::failed);
}

TEST(CheckpointRequest, IsToldWhyItCouldNotBeMade) {
  CoordinationHarness job = asking_job({.pods = 2});
  job.fail_publishing({ErrorCode::exhausted, "the volume is full", Retry::no});
  job.want_checkpoint(0);
  ASSERT_TRUE(all_answered(job));
  ASSERT_EQ(job.checkpoint_answers().size(), 1u);
  EXPECT_EQ(job.checkpoint_answers()[0].done.outcome, HookOutcome::failed);
  EXPECT_NE(job.checkpoint_answers()[0].done.message.find("the volume is full"), std::string::npos);
}

TEST(CheckpointRequest, IsNotLostWithTheSidecarThatHeardIt) {
  CoordinationHarness job = asking_job({.pods = 2});
  job.want_checkpoint(1);
  job.restart_sidecar(1);
  ASSERT_TRUE(all_answered(job));
  ASSERT_FALSE(job.checkpoint_answers().empty());
  EXPECT_EQ(job.checkpoint_answers().back().done.outcome, HookOutcome::durable);
}

}  // namespace
}  // namespace rekindle::sidecar
