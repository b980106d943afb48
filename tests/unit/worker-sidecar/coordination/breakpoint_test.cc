// The rules of a breakpoint, each as a story on the harness.
#include <gtest/gtest.h>

#include "common/base/format.h"
#include "tests/support/coordination_harness.h"

namespace rekindle::sidecar {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const RestoreCandidate kRestored{"a1-s184-x", 1, 184, "hash-184", {.bytes = 1212000, .world_size = 2, .live_ranks = 2}};

// A job restored at 184 whose ranks all compute step 191.
CoordinationHarness training(HarnessOptions options) {
  CoordinationHarness job(options);
  job.start(kRestored);
  for (std::uint32_t rank = 0; rank < job.config().world_size(); ++rank) job.place(rank, 190, RankPhase::computing);
  job.run_for(milliseconds(5));
  job.take_log();
  return job;
}

bool settles(CoordinationHarness& job, Duration most = seconds(60)) {
  job.run_for(milliseconds(1));  // a death is noticed
  const bool quiet = job.run_until([&] { return job.quiet(); }, most);
  // nobody stops the containers: parked ranks are told to end after stop_wait
  job.run_for(milliseconds(2500));
  EXPECT_TRUE(job.violations().empty()) << job.violations().front();
  return quiet;
}

HookDoneMessage answer_of(const CoordinationHarness& job, std::uint64_t hook) {
  const auto& known = job.hooks().at(hook);
  EXPECT_TRUE(known.answer.has_value());
  return known.answer.value_or(HookDoneMessage{});
}

TEST(Breakpoint, AnEvictedPodsHookReturnsWhenTheStepIsDurable) {
  CoordinationHarness job = training({.pods = 2});
  job.hook(1, 30);
  ASSERT_TRUE(settles(job)) << job.describe();
  EXPECT_EQ(answer_of(job, 1).outcome, HookOutcome::durable);
  EXPECT_EQ(answer_of(job, 1).step, 190u);
  ASSERT_EQ(job.published().size(), 1u);
  EXPECT_EQ(job.published()[0].path, answer_of(job, 1).path);
}

TEST(Breakpoint, TheManifestSaysWhatARecordOfItNeeds) {
  CoordinationHarness job = training({.pods = 3});
  job.kill_rank(2);
  ASSERT_TRUE(settles(job)) << job.describe();
  ASSERT_EQ(job.published().size(), 1u);
  const BreakpointRecord& record = job.records().back();
  const CheckpointSummary& summary = job.published()[0].summary;
  EXPECT_EQ(summary.world_size, 3u);
  EXPECT_EQ(summary.live_ranks, 2u);
  EXPECT_EQ(summary.live_ranks, record.ranks);
  EXPECT_EQ(summary.bytes, record.bytes);
  EXPECT_GT(summary.agreed_milliseconds, 0u);
  EXPECT_GE(static_cast<double>(summary.agreed_milliseconds), record.agreed_milliseconds);
}

TEST(Breakpoint, OnlyTheEndingPodsRanksAreEndedOthersStayParkedUntilTheirHookCalls) {
  CoordinationHarness job = training({.pods = 2});
  job.hook(1, 30);
  ASSERT_TRUE(settles(job));
  EXPECT_FALSE(job.rank(1).alive);
  EXPECT_TRUE(job.rank(0).alive);
  EXPECT_EQ(job.pod(0).phase(), SidecarPhase::parked);
  job.hook(0, 30);
  EXPECT_EQ(answer_of(job, 2).step, 190u) << "answered at once";
  job.run_for(milliseconds(2010));
  EXPECT_FALSE(job.rank(0).alive);
  EXPECT_EQ(job.published().size(), 1u) << "the same breakpoint";
}

TEST(Breakpoint, AContainerWhoseHookIsAnsweredIsLeftToTheSigtermThatFollows) {
  CoordinationHarness job = training({.pods = 2});
  job.hook(1, 30);
  ASSERT_TRUE(job.run_until([&] { return job.hooks().at(1).answer.has_value(); }, seconds(5)));
  job.run_for(milliseconds(1900));
  EXPECT_TRUE(job.rank(1).alive) << "it would end in the instant in which it is stopped";
  job.run_for(milliseconds(200));
  EXPECT_FALSE(job.rank(1).alive) << "it does not end on SIGTERM";
}

TEST(Breakpoint, ARankWhosePodLostAnotherOneIsEndedAtOnce) {
  CoordinationHarness job = training({.pods = 2, .ranks_per_pod = 2});
  job.kill_rank(3);
  ASSERT_TRUE(job.run_until([&] { return !job.published().empty(); }, seconds(10)));
  job.run_for(milliseconds(50));
  EXPECT_FALSE(job.rank(2).alive);
  EXPECT_TRUE(job.rank(0).alive);
}

TEST(Breakpoint, ARequestOfTheProgramLetsTrainingGoOn) {
  CoordinationHarness job = training({.pods = 2});
  job.want_checkpoint(0);
  ASSERT_TRUE(settles(job));
  EXPECT_EQ(job.published().size(), 1u);
  EXPECT_FALSE(job.rank(0).held);
  EXPECT_FALSE(job.rank(1).held);
  EXPECT_EQ(job.pod(1).phase(), SidecarPhase::training);
}

TEST(Breakpoint, P18_TheMinimumIntervalHoldsBackOnlyRequestsAfterWhichTrainingGoesOn) {
  HarnessOptions options{.pods = 2};
  options.limits.minimum_interval = seconds(60);
  CoordinationHarness job = training(options);
  job.want_checkpoint(0);
  ASSERT_TRUE(settles(job));
  for (std::uint32_t rank = 0; rank < 2; ++rank) job.place(rank, 191, RankPhase::computing);
  job.want_checkpoint(0);
  ASSERT_TRUE(settles(job));
  EXPECT_EQ(job.published().size(), 1u);
  job.hook(0, 30);
  ASSERT_TRUE(settles(job));
  EXPECT_EQ(job.published().size(), 2u);
}

TEST(Breakpoint, AStrongerAfterWinsWhenTriggersMerge) {
  CoordinationHarness job = training({.pods = 2});
  job.want_checkpoint(0);
  job.hook(1, 30);
  ASSERT_TRUE(settles(job));
  EXPECT_EQ(job.published().size(), 1u);
  EXPECT_EQ(job.pod(0).phase(), SidecarPhase::parked);
  EXPECT_EQ(answer_of(job, 1).outcome, HookOutcome::durable);
}

TEST(Breakpoint, AnOrderIsCarriedOutOnceThoughEverySidecarPassesItOn) {
  CoordinationHarness job = training({.pods = 4});
  job.order("digits-1-ab12", AfterBreakpoint::go_on, 30);
  ASSERT_TRUE(settles(job));
  job.order("digits-1-ab12", AfterBreakpoint::go_on, 30);
  ASSERT_TRUE(settles(job));
  EXPECT_EQ(job.published().size(), 1u);
  EXPECT_EQ(job.records().back().id, "digits-1-ab12");
}

TEST(Breakpoint, AnOrderAfterADurableParkedBreakpointIsAnsweredByIt) {
  CoordinationHarness job = training({.pods = 2});
  job.hook(1, 30);
  ASSERT_TRUE(settles(job));
  job.order("digits-1-cd34", AfterBreakpoint::park, 30);
  ASSERT_TRUE(settles(job));
  EXPECT_EQ(job.published().size(), 1u);
  EXPECT_EQ(job.records().back().id, "digits-1-cd34");
  EXPECT_EQ(job.records().back().state, SaveState::durable);
  EXPECT_EQ(job.records().back().step, 190u);
}

TEST(Breakpoint, AnOrderToStopReleasesParkedRanksToLeave) {
  CoordinationHarness job = training({.pods = 2});
  job.order("park", AfterBreakpoint::park, 30);
  ASSERT_TRUE(settles(job));
  EXPECT_TRUE(job.rank(0).held);
  job.order("stop", AfterBreakpoint::stop, 30);
  ASSERT_TRUE(settles(job));
  EXPECT_TRUE(job.rank(0).stop);
  EXPECT_TRUE(job.rank(1).stop);
  EXPECT_EQ(job.published().size(), 1u);
}

TEST(Breakpoint, BeforeTheFirstCommitTheRestoredCheckpointStands) {
  CoordinationHarness job({.pods = 2});
  job.start(kRestored);
  job.hook(0, 30);
  ASSERT_TRUE(settles(job));
  EXPECT_EQ(answer_of(job, 1).outcome, HookOutcome::durable);
  EXPECT_EQ(answer_of(job, 1).path, kRestored.path);
  EXPECT_EQ(job.records().back().bytes, kRestored.summary.bytes);
  EXPECT_TRUE(job.published().empty());
}

TEST(Breakpoint, BeforeTheFirstStepOfAllThereIsNothingToSave) {
  CoordinationHarness job({.pods = 2});
  job.start();
  job.hook(0, 30);
  ASSERT_TRUE(settles(job));
  EXPECT_EQ(answer_of(job, 1).outcome, HookOutcome::nothing_to_save);
  EXPECT_EQ(job.pod(1).phase(), SidecarPhase::parked) << "ranks hold";
}

TEST(Breakpoint, AlsoASidecarThatCameBackSavesNoStepZero) {
  CoordinationHarness job({.pods = 2});
  job.start();
  job.restart_sidecar(0);
  job.run_for(seconds(1));
  job.hook(0, 30);
  ASSERT_TRUE(settles(job));
  EXPECT_EQ(answer_of(job, 1).outcome, HookOutcome::nothing_to_save);
}

TEST(Breakpoint, AFinishedJobsHooksHaveNothingToSave) {
  CoordinationHarness job = training({.pods = 2});
  job.finish_rank(0);
  job.finish_rank(1);
  job.hook(0, 30);
  ASSERT_TRUE(settles(job));
  EXPECT_EQ(answer_of(job, 1).outcome, HookOutcome::nothing_to_save);
  EXPECT_TRUE(job.records().empty()) << "the end of a process after rk_close is no fault";
}

TEST(Breakpoint, P13_ARankThatDiesWhileItComputesCostsNoStep) {
  CoordinationHarness job = training({.pods = 3});
  job.kill_rank(1);
  ASSERT_TRUE(settles(job));
  ASSERT_EQ(job.published().size(), 1u);
  EXPECT_EQ(job.published()[0].step, 190u);
  EXPECT_EQ(job.records().back().cause, TriggerCause::rank_died);
}

// What broke a collective is often heard of after it: the next rank's connection ends first.
TEST(Breakpoint, ADeathThatIsToldAfterTheCollectiveThatItBrokeIsTheCauseAtOnce) {
  CoordinationHarness job = training({.pods = 2});
  job.fail_collective(0);
  ASSERT_TRUE(job.run_until([&] { return !job.records().empty(); }, seconds(1)));
  ASSERT_EQ(job.records().back().cause, TriggerCause::collective_failed);
  job.kill_rank(1);
  ASSERT_TRUE(job.run_until([&] { return job.records().back().cause == TriggerCause::rank_died; }, seconds(1)));
  EXPECT_EQ(job.records().back().state, SaveState::collecting) << "who restarts the job need not wait for the step";
  EXPECT_EQ(job.records().back().pod, 1u);
  ASSERT_TRUE(settles(job));
  EXPECT_EQ(job.records().back().state, SaveState::durable);
  EXPECT_EQ(job.records().back().cause, TriggerCause::rank_died);
}

TEST(Breakpoint, P13_AStepThatOnlyTheDeadRankHadIsReachedByALiveOne) {
  CoordinationHarness job = training({.pods = 2});
  job.place(0, 191, RankPhase::between);
  job.kill_rank(0);
  job.run_for(milliseconds(100));
  job.place(1, 190, RankPhase::waiting_at_update);
  ASSERT_TRUE(settles(job));
  ASSERT_EQ(job.published().size(), 1u);
  EXPECT_EQ(job.published()[0].step, 191u);
}

TEST(Breakpoint, P13_WhenNobodyCanReachItTheLossIsOnRecord) {
  CoordinationHarness job = training({.pods = 2});
  job.place(0, 191, RankPhase::between);
  job.kill_rank(0);
  ASSERT_TRUE(settles(job));
  ASSERT_EQ(job.published().size(), 1u);
  EXPECT_EQ(job.published()[0].step, 190u);
  EXPECT_EQ(job.records().back().steps_lost, 1u);
  EXPECT_NE(job.records().back().message.find("step 191 was committed only by rank 0"), std::string::npos);
}

TEST(Breakpoint, P6_ARankThatDoesNotLeaveItsUpdateIsNoSource) {
  CoordinationHarness job = training({.pods = 2});
  job.place(1, 190, RankPhase::updating);
  job.hook(0, 30);
  ASSERT_TRUE(settles(job));
  ASSERT_EQ(job.published().size(), 1u);
  EXPECT_EQ(job.published()[0].step, 190u);
}

TEST(Breakpoint, WithoutACleanCopyTheHookIsToldSo) {
  CoordinationHarness job = training({.pods = 1});
  job.place(0, 190, RankPhase::updating);
  job.hook(0, 30);
  ASSERT_TRUE(settles(job));
  EXPECT_EQ(answer_of(job, 1).outcome, HookOutcome::failed);
  EXPECT_NE(answer_of(job, 1).message.find("clean copy"), std::string::npos);
  EXPECT_FALSE(job.rank(0).alive) << "its container ends anyway";
}

TEST(Breakpoint, AFailureLetsTrainingGoOnWhereItCan) {
  CoordinationHarness job = training({.pods = 2});
  job.fail_publishing({ErrorCode::exhausted, "no space left on the volume", Retry::no});
  job.want_checkpoint(0);
  ASSERT_TRUE(settles(job));
  EXPECT_FALSE(job.rank(0).held);
  EXPECT_EQ(job.records().back().state, SaveState::failed);
  EXPECT_NE(job.records().back().message.find("no space left"), std::string::npos);
}

TEST(Breakpoint, AfterAFailureThatParksTheNextHookTriesAgain) {
  CoordinationHarness job = training({.pods = 2});
  job.fail_publishing({ErrorCode::exhausted, "no space left on the volume", Retry::no});
  job.order("first", AfterBreakpoint::park, 30);
  ASSERT_TRUE(settles(job));
  EXPECT_EQ(job.records().back().state, SaveState::failed);
  job.mend_publishing();
  job.hook(1, 30);
  ASSERT_TRUE(settles(job));
  EXPECT_EQ(answer_of(job, 1).outcome, HookOutcome::durable);
  EXPECT_EQ(job.published().size(), 1u);
}

TEST(Breakpoint, AWriterThatFailsIsReplacedByTheOthersInANewFolder) {
  CoordinationHarness job = training({.pods = 3});
  job.fail_writes_of(1, {ErrorCode::io, "input/output error", Retry::no});
  job.hook(0, 30);
  ASSERT_TRUE(settles(job));
  ASSERT_EQ(job.published().size(), 1u);
  EXPECT_EQ(job.published()[0].path, "a2-s190-n2");
  EXPECT_GT(round_of(job.published()[0].term), 1u);
}

TEST(Breakpoint, ADiskThatFailsOnceTakesTheOnlyCopyTheNextTime) {
  CoordinationHarness job = training({.pods = 1});
  job.fail_writes_of(0, {ErrorCode::io, "input/output error", Retry::no}, 1);
  job.hook(0, 30);
  ASSERT_TRUE(settles(job));
  ASSERT_EQ(job.published().size(), 1u);
  EXPECT_EQ(job.published()[0].step, 190u);
}

TEST(Breakpoint, ADiskThatFailsAgainAndAgainIsGivenUp) {
  CoordinationHarness job = training({.pods = 1});
  job.fail_writes_of(0, {ErrorCode::io, "input/output error", Retry::no});
  job.hook(0, 30);
  ASSERT_TRUE(settles(job));
  EXPECT_TRUE(job.published().empty());
  EXPECT_EQ(job.removed().size(), 3u) << "three rounds, and nothing of them is left";
}

TEST(Breakpoint, WhatARoundThatFailedHasWrittenIsRemovedAtOnce) {
  CoordinationHarness job = training({.pods = 3});
  job.fail_writes_of(1, {ErrorCode::exhausted, "no space left", Retry::yes});
  job.hook(0, 30);
  ASSERT_TRUE(settles(job));
  EXPECT_EQ(job.removed(), (std::set<std::string>{"a2-s190-n1"})) << "the space may be what the next round needs";
  EXPECT_EQ(job.published()[0].path, "a2-s190-n2");
}

TEST(Breakpoint, ThatFindsNoSpaceForTheManifestGivesBackWhatItHasWritten) {
  CoordinationHarness job = training({.pods = 2});
  job.fail_publishing({ErrorCode::exhausted, "no space left", Retry::no});
  job.hook(0, 30);
  ASSERT_TRUE(settles(job));
  EXPECT_EQ(job.removed(), (std::set<std::string>{"a2-s190-n1"})) << "the space may be what the next one needs";
}

TEST(Breakpoint, APublishThatMayWorkTheNextTimeIsTriedInAnotherRound) {
  CoordinationHarness job = training({.pods = 2});
  job.fail_publishing({ErrorCode::io, "the server is away", Retry::yes});
  job.hook(0, 30);
  ASSERT_TRUE(job.run_until([&] { return job.records().back().message.starts_with("another round"); }, seconds(5)));
  job.mend_publishing();
  ASSERT_TRUE(settles(job));
  EXPECT_EQ(answer_of(job, 1).outcome, HookOutcome::durable);
}

TEST(Breakpoint, AFolderThatMayBeMadeTheNextTimeIsTriedInAnotherRound) {
  CoordinationHarness job = training({.pods = 2});
  job.fail_folders(Error{ErrorCode::io, "the server is away", Retry::yes});
  job.hook(0, 30);
  ASSERT_TRUE(job.run_until([&] { return job.records().back().message.starts_with("another round"); }, seconds(5)));
  job.fail_folders({});
  ASSERT_TRUE(settles(job));
  EXPECT_EQ(answer_of(job, 1).outcome, HookOutcome::durable);
}

TEST(Breakpoint, AHookThatIsGoneIsNotAnswered) {
  CoordinationHarness job = training({.pods = 2});
  job.hook(0, 30);
  job.hook_goes(1);
  ASSERT_TRUE(settles(job));
  EXPECT_EQ(job.published().size(), 1u) << "its container may have been killed on the way: what it asked for is made";
  EXPECT_EQ(job.hooks().at(1).answer, std::nullopt);
}

TEST(Breakpoint, ThatFailsLeavesNothing) {
  CoordinationHarness job = training({.pods = 2});
  for (const std::uint32_t rank : {0u, 1u})
    job.fail_writes_of(rank, {ErrorCode::exhausted, "no space left", Retry::yes});
  job.hook(0, 30);
  ASSERT_TRUE(settles(job));
  EXPECT_TRUE(job.published().empty());
  std::set<std::string> made;
  for (int round = 1; round <= 6; ++round) made.insert(format("a2-s190-n{}", round));
  EXPECT_EQ(job.removed(), made) << "each rank was asked three times";
}

TEST(Breakpoint, ARankThatDiesWhileItWritesIsReplaced) {
  CoordinationHarness job = training({.pods = 3});
  job.set_write_time(milliseconds(100));
  job.hook(0, 30);
  job.run_for(milliseconds(20));
  job.kill_rank(2);
  ASSERT_TRUE(settles(job));
  ASSERT_EQ(job.published().size(), 1u);
  EXPECT_EQ(job.published()[0].step, 190u);
}

TEST(Breakpoint, ALostCoordinatorIsReplacedInTheMiddleOfASave) {
  for (int delay = 0; delay < 40; delay += 2) {
    CoordinationHarness job = training({.seed = static_cast<std::uint64_t>(delay) + 1, .pods = 3});
    job.set_write_time(milliseconds(10));
    job.hook(1, 30);
    job.run_for(milliseconds(delay));
    job.kill_pod(0);
    ASSERT_TRUE(settles(job)) << delay << "\n" << job.describe();
    EXPECT_EQ(answer_of(job, 1).outcome, HookOutcome::durable) << delay;
    EXPECT_EQ(answer_of(job, 1).step, 190u) << delay;
  }
}

TEST(Breakpoint, WhoeverTakesOverKnowsWhatForThoughTheReasonWasTheLostPods) {
  CoordinationHarness job = training({.pods = 3});
  job.set_write_time(milliseconds(100));
  job.hook(0, 30);
  job.run_for(milliseconds(20));
  job.kill_pod(0);
  ASSERT_TRUE(settles(job));
  EXPECT_EQ(job.published().size(), 1u);
  EXPECT_EQ(job.pod(1).phase(), SidecarPhase::parked);
  EXPECT_EQ(job.records().back().cause, TriggerCause::hook);
}

TEST(Breakpoint, ALostConnectionIsATriggerOnlyAfterAGrace) {
  CoordinationHarness job = training({.pods = 2});
  job.set_link(0, 1, false);
  job.run_for(seconds(4));
  EXPECT_TRUE(job.records().empty());
  job.set_link(0, 1, true);
  job.run_for(seconds(20));
  EXPECT_TRUE(job.records().empty()) << "it came back in time";
  job.kill_pod(1);
  job.run_for(seconds(10));
  ASSERT_FALSE(job.records().empty());
  EXPECT_EQ(job.records().back().cause, TriggerCause::pod_lost);
  EXPECT_EQ(job.records().back().state, SaveState::durable);
}

TEST(Breakpoint, APodThatTheOperatorCallsGoneIsNotWaitedFor) {
  CoordinationHarness job = training({.pods = 2});
  job.kill_pod(1);
  job.run_for(milliseconds(10));
  job.table({{0, false}}, false);
  job.run_for(milliseconds(1));
  ASSERT_TRUE(job.run_until([&] { return job.quiet() && !job.records().empty(); }, milliseconds(900)));
  EXPECT_EQ(job.records().back().cause, TriggerCause::pod_lost);
  EXPECT_EQ(job.records().back().state, SaveState::durable);
}

TEST(Breakpoint, AFailedCollectiveAloneMakesTheRanksLeave) {
  CoordinationHarness job = training({.pods = 2});
  job.fail_collective(1);
  ASSERT_TRUE(settles(job));
  EXPECT_EQ(job.published().size(), 1u);
  EXPECT_TRUE(job.rank(0).stop) << "nobody else would end a parked process";
  EXPECT_TRUE(job.rank(1).stop);
}

TEST(Breakpoint, AFailedCollectiveBesideAnEvictionParks) {
  CoordinationHarness job = training({.pods = 2});
  job.hook(0, 30);
  job.fail_collective(1);
  ASSERT_TRUE(settles(job));
  EXPECT_FALSE(job.rank(1).stop);
  EXPECT_EQ(job.pod(1).phase(), SidecarPhase::parked);
}

TEST(Breakpoint, UnderTheLauncherADeathStopsTheOthers) {
  CoordinationHarness job = training({.pods = 1, .ranks_per_pod = 4, .after_fault = AfterBreakpoint::stop});
  job.kill_rank(2);
  ASSERT_TRUE(settles(job));
  EXPECT_EQ(job.published().size(), 1u);
  EXPECT_TRUE(job.rank(0).stop && job.rank(1).stop && job.rank(3).stop);
}

TEST(Breakpoint, P18_NoHookIsKeptPastItsTime) {
  CoordinationHarness job = training({.pods = 2});
  job.set_write_time(seconds(600));
  job.hook(1, 5);
  ASSERT_TRUE(settles(job)) << job.describe();
  EXPECT_EQ(answer_of(job, 1).outcome, HookOutcome::failed);
  EXPECT_NE(answer_of(job, 1).message.find("time was over"), std::string::npos) << answer_of(job, 1).message;
}

// Nobody outside waits for it, and every copy lives on.
TEST(Breakpoint, P18_TimeInWhichEverythingWasFrozenIsNotTimeThatABreakpointHad) {
  for (const std::uint32_t pods : {1u, 3u}) {
    for (int moment = 0; moment < 24; ++moment) {
      CoordinationHarness job = training({.pods = pods, .ranks_per_pod = 3 / pods, .limits = {.deadline = seconds(3)}});
      job.kill_rank(1);
      job.run_for(std::chrono::microseconds(500) * moment);
      job.freeze(seconds(5));
      ASSERT_TRUE(settles(job)) << job.describe();
      EXPECT_EQ(job.records().back().state, SaveState::durable) << job.records().back().message;
      ASSERT_FALSE(job.published().empty()) << pods << " pods, frozen at " << moment;
      EXPECT_EQ(job.published().back().step, 190u);
    }
  }
}

TEST(Breakpoint, P18_ARankThatWasFrozenInItsUpdateIsStillWaitedFor) {
  CoordinationHarness job = training({.pods = 1, .ranks_per_pod = 2});
  job.place(0, 190, RankPhase::updating);
  job.kill_rank(1);
  job.run_for(milliseconds(100));
  job.freeze(seconds(5));
  job.run_for(milliseconds(300));
  job.place(0, 191, RankPhase::between);
  ASSERT_TRUE(settles(job)) << job.describe();
  ASSERT_EQ(job.published().size(), 1u);
  EXPECT_EQ(job.published()[0].step, 191u);
}

TEST(Breakpoint, P18_AnEndThatComesFromOutsideDoesNotWaitForWhoWasFrozen) {
  CoordinationHarness job = training({.pods = 1});
  job.set_write_time(seconds(600));
  job.order("b", AfterBreakpoint::park, 3);
  job.run_for(milliseconds(100));
  job.freeze(seconds(5));
  job.run_for(milliseconds(300));
  EXPECT_EQ(job.records().back().state, SaveState::failed);
}

std::string failure_without_a_copy(CoordinationHarness& job) {
  job.kill_rank(0);
  EXPECT_TRUE(settles(job)) << job.describe();
  EXPECT_EQ(job.records().back().state, SaveState::failed);
  return job.records().back().message;
}

TEST(Breakpoint, AFailureSaysWhetherThereIsACheckpointAtAll) {
  CoordinationHarness fresh({.pods = 1});
  fresh.start();
  fresh.place(0, 12, RankPhase::computing);
  EXPECT_NE(failure_without_a_copy(fresh).find("there is no checkpoint yet: the next start begins at step 1"),
            std::string::npos);
  CoordinationHarness restored = training({.pods = 1});
  EXPECT_NE(failure_without_a_copy(restored).find("the newest complete checkpoint stands"), std::string::npos);
  CoordinationHarness back = training({.pods = 1});
  back.restart_sidecar(0);
  back.run_for(seconds(1));
  EXPECT_NE(failure_without_a_copy(back).find("the newest complete checkpoint, if there is one"), std::string::npos);
}

TEST(Breakpoint, WhereRanksHoldDifferentPartsAFailureNamesShadows) {
  CoordinationHarness job({.pods = 2});
  for (const std::uint32_t rank : {0u, 1u}) job.set_layout_of(rank, *layout_for("pipeline", rank, 2));
  job.start();
  for (const std::uint32_t rank : {0u, 1u}) job.place(rank, 12, RankPhase::computing);
  EXPECT_NE(failure_without_a_copy(job).find("rekindle.dev/shadow-every"), std::string::npos);
  CoordinationHarness alike = training({.pods = 1});
  EXPECT_EQ(failure_without_a_copy(alike).find("rekindle.dev/shadow-every"), std::string::npos);
}

TEST(Breakpoint, P19_TheSidecarOfADeadRankStaysUntilItIsDurable) {
  CoordinationHarness job = training({.pods = 2});
  job.set_write_time(milliseconds(300));
  job.kill_rank(1);
  job.run_for(milliseconds(1));
  job.terminate(1, 30);
  job.run_for(milliseconds(50));
  EXPECT_EQ(joined(job.take_log()).find("may exit"), std::string::npos);
  ASSERT_TRUE(settles(job));
  const std::string log = joined(job.take_log());
  ASSERT_NE(log.find("pod 1 may exit"), std::string::npos) << log;
  EXPECT_LT(log.find("published"), log.find("pod 1 may exit"));
}

TEST(Breakpoint, P19_ASidecarThatIsToldToEndWhileItsRanksLiveSavesFirst) {
  CoordinationHarness job = training({.pods = 2});
  job.terminate(0, 30);
  ASSERT_TRUE(settles(job));
  EXPECT_EQ(job.published().size(), 1u);
  EXPECT_EQ(job.records().back().cause, TriggerCause::terminated);
  EXPECT_NE(joined(job.take_log()).find("pod 0 may exit"), std::string::npos);
}

TEST(Breakpoint, AnIdleSidecarWithoutRanksMayExitAtOnce) {
  CoordinationHarness job({.pods = 2});
  job.terminate(0, 30);
  EXPECT_NE(joined(job.take_log()).find("pod 0 may exit"), std::string::npos);
}

TEST(Breakpoint, ASidecarThatComesBackFindsItsRanksHeldAndFindsOut) {
  CoordinationHarness job = training({.pods = 2});
  job.hook(1, 30);
  ASSERT_TRUE(settles(job));
  job.restart_sidecar(0);
  job.run_for(seconds(1));
  ASSERT_TRUE(settles(job)) << job.describe();
  EXPECT_EQ(job.pod(0).phase(), SidecarPhase::parked) << job.describe();
  EXPECT_EQ(job.published().size(), 1u);
}

TEST(Breakpoint, ASidecarRestartedInTheMiddleOfASaveLosesNothing) {
  for (int delay = 0; delay < 30; delay += 2) {
    CoordinationHarness job = training({.seed = static_cast<std::uint64_t>(delay) + 1, .pods = 2});
    job.set_write_time(milliseconds(10));
    job.hook(1, 30);
    job.run_for(milliseconds(delay));
    job.restart_sidecar(0);
    ASSERT_TRUE(settles(job)) << delay << "\n" << job.describe();
    EXPECT_EQ(answer_of(job, 1).outcome, HookOutcome::durable) << delay;
    EXPECT_EQ(answer_of(job, 1).step, 190u) << delay;
  }
}

TEST(Breakpoint, WhatARankHeldThatDiedWhileItsSidecarWasAwayTheOthersKnow) {
  CoordinationHarness job = training({.pods = 3});
  job.restart_sidecar(2);
  job.kill_rank(2);
  ASSERT_TRUE(settles(job));
  ASSERT_EQ(job.published().size(), 1u) << job.records().back().message;
  EXPECT_EQ(job.published()[0].step, 190u);
}

TEST(Breakpoint, P12_SmallStateOfADeadRankIsSavedFromItsSlot) {
  CoordinationHarness job = training({.pods = 2, .states = true});
  job.kill_rank(1);
  ASSERT_TRUE(settles(job));
  ASSERT_EQ(job.published().size(), 1u);
  EXPECT_TRUE(job.published()[0].inexact.empty());
}

TEST(Breakpoint, P12_SmallStateThatWentWithItsNodeIsNamed) {
  CoordinationHarness job = training({.pods = 2, .states = true});
  job.kill_pod(1);
  job.run_for(seconds(10));
  ASSERT_EQ(job.published().size(), 1u);
  EXPECT_EQ(job.published()[0].inexact, std::vector<std::uint32_t>{1});
}

TEST(Breakpoint, AHookDuringAssemblyHasNothingToSave) {
  CoordinationHarness job({.pods = 2});
  job.hook(0, 30);
  job.run_for(seconds(3));
  EXPECT_EQ(answer_of(job, 1).outcome, HookOutcome::nothing_to_save);
}

TEST(Breakpoint, AHookThatCallsASidecarWhichHasJustComeBackIsServed) {
  CoordinationHarness job = training({.pods = 2});
  job.restart_sidecar(0);
  job.hook(0, 30);
  ASSERT_TRUE(settles(job));
  EXPECT_EQ(answer_of(job, 1).outcome, HookOutcome::durable);
  EXPECT_EQ(answer_of(job, 1).step, 190u);
}

TEST(Breakpoint, ASidecarThatComesBackGoesOnWithTheRanksThatComeToo) {
  Coordination machine({.ordinal = 0, .pods = 1, .ranks_per_pod = 2});
  machine.advance(RankConnected{.rank = 0, .attempt = 7, .word = {190, RankPhase::computing, 0}}, Instant{});
  EXPECT_EQ(machine.attempt(), 0u);
  for (Instant now{}; machine.attempt() == 0 && now < Instant{} + seconds(3); machine.advance(Tick{}, now)) {
    ASSERT_TRUE(machine.next_wake().has_value());
    now = std::max(now + milliseconds(1), *machine.next_wake());
  }
  EXPECT_EQ(machine.attempt(), 7u);
}

TEST(Breakpoint, AMessageOfAnotherAttemptIsDropped) {
  Coordination machine({.ordinal = 0, .pods = 2});
  const Instant now{};
  machine.advance(RankConnected{.rank = 0, .attempt = 7, .word = {190, RankPhase::computing, 0}}, now);
  ASSERT_EQ(machine.attempt(), 7u);
  machine.advance(PeerConnected{1}, now);
  const auto outputs = machine.advance(PeerMessageArrived{1, 6, CollectMessage{make_term(9, 1), {}}}, now);
  EXPECT_TRUE(outputs.empty());
}

TEST(Breakpoint, P7_ALowerTermIsRefusedWithTheHighestSeen) {
  Coordination machine({.ordinal = 0, .pods = 3});
  const Instant now{};
  machine.advance(RankConnected{.rank = 0, .attempt = 7, .word = {190, RankPhase::computing, 0}}, now);
  machine.advance(PeerConnected{1}, now);
  machine.advance(PeerConnected{2}, now);
  machine.advance(PeerMessageArrived{2, 7, CollectMessage{make_term(9, 2), {}}}, now);
  const auto outputs = machine.advance(PeerMessageArrived{1, 7, CollectMessage{make_term(8, 1), {}}}, now);
  ASSERT_EQ(outputs.size(), 1u);
  const auto& sent = std::get<SendToPeer>(outputs[0]);
  EXPECT_EQ(sent.ordinal, 1u);
  EXPECT_EQ(std::get<CollectedMessage>(sent.message).term, make_term(9, 2));
}

}  // namespace
}  // namespace rekindle::sidecar
