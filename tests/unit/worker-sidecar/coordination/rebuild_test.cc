// When the ranks of a job make their communicators anew instead of being started again, and what
// happens to them while they do.
#include "worker-sidecar/coordination/rebuild.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/coordination_harness.h"

namespace rekindle::sidecar {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// ---- the rule ----

CollectedRank able_rank(std::uint32_t rank, std::uint64_t step, RankPhase phase = RankPhase::computing) {
  return {.rank = rank,
          .alive = true,
          .clean = is_clean({.step = step, .phase = phase, .slot = 0}),
          .step = step,
          .phase = phase,
          .rebuilds = true};
}

std::string why_not(std::vector<CollectedRank> ranks, std::uint64_t step, bool alike = true) {
  return why_not_rebuild(
      {.ranks = std::move(ranks), .world_size = 2, .step = step, .alike = [alike](std::uint32_t, std::uint32_t) {
         return alike;
       }});
}

TEST(WhyNotRebuild, EverybodyIsThereAndAble) {
  EXPECT_THAT(why_not({able_rank(0, 190), able_rank(1, 190)}, 190), IsEmpty());
}

TEST(WhyNotRebuild, WhoeverIsBehindIsBroughtForward) {
  EXPECT_THAT(why_not({able_rank(0, 190), able_rank(1, 191)}, 191), IsEmpty());
  EXPECT_THAT(why_not({able_rank(0, 150), able_rank(1, 191)}, 191), IsEmpty()) << "also from far";
}

TEST(WhyNotRebuild, WhoeverLoadsForAnEarlierOrderComesOutOfIt) {
  EXPECT_THAT(why_not({able_rank(0, 190, RankPhase::restoring), able_rank(1, 191)}, 191), IsEmpty());
}

TEST(WhyNotRebuild, EachThatSpeaksAgainstItIsNamed) {
  EXPECT_THAT(why_not({able_rank(0, 190)}, 190), HasSubstr("not every rank has answered"));
  CollectedRank dead = able_rank(1, 190);
  dead.alive = false;
  EXPECT_THAT(why_not({able_rank(0, 190), dead}, 190), HasSubstr("rank 1 has ended"));
  EXPECT_THAT(why_not({able_rank(0, 190), able_rank(1, 190, RankPhase::finished)}, 190), HasSubstr("rank 1 has ended"));
  CollectedRank unable = able_rank(0, 190);
  unable.rebuilds = false;
  EXPECT_THAT(why_not({unable, able_rank(1, 190)}, 190), HasSubstr("RK_REBUILDS"));
  EXPECT_THAT(why_not({able_rank(0, 190, RankPhase::updating), able_rank(1, 190)}, 190),
              HasSubstr("rank 0 stopped in the middle of an update"));
  EXPECT_THAT(why_not({able_rank(0, 190, RankPhase::updating), able_rank(1, 191)}, 191), IsEmpty())
      << "it comes out of it at the step";
  EXPECT_THAT(why_not({able_rank(0, 190, RankPhase::swapped), able_rank(1, 190)}, 190), HasSubstr("other weights"));
  EXPECT_THAT(why_not({able_rank(0, 191), able_rank(1, 190)}, 190), HasSubstr("rank 0 is beyond step 190"));
}

TEST(WhyNotRebuild, ARankThatIsBehindNeedsACopyOfItselfAtTheStep) {
  EXPECT_THAT(why_not({able_rank(0, 190), able_rank(1, 191)}, 191, false), HasSubstr("rank 0 is behind step 191"));
  EXPECT_THAT(why_not({able_rank(0, 191), able_rank(1, 191)}, 191, false), IsEmpty()) << "nobody has to load anything";
}

TEST(OnlyCommunicatorsFailed, NothingElseIsBroken) {
  EXPECT_TRUE(only_communicators_failed({TriggerCause::collective_failed, TriggerCause::user, TriggerCause::sidecar}));
  for (const TriggerCause other : {TriggerCause::hook, TriggerCause::operator_order, TriggerCause::rank_died,
                                   TriggerCause::pod_lost, TriggerCause::terminated}) {
    EXPECT_FALSE(only_communicators_failed({TriggerCause::collective_failed, other})) << to_string(other);
  }
}

TEST(RebuildCount, CountsAtOneStepAndEachOrderOnce) {
  const auto order = [](std::uint64_t term, std::uint64_t step) {
    return CommittedMessage{.term = term, .step = step, .after = AfterBreakpoint::rebuild};
  };
  RebuildCount count;
  count.note(order(make_term(1, 0), 190));
  count.note(order(make_term(1, 0), 190));
  EXPECT_EQ(count.at(190), 1u);
  count.note(order(make_term(2, 0), 190));
  EXPECT_EQ(count.at(190), 2u);
  EXPECT_EQ(count.at(191), 0u);
  count.note({.term = make_term(3, 0), .step = 190, .after = AfterBreakpoint::go_on});
  EXPECT_EQ(count.at(190), 2u);
  EXPECT_EQ(count.term(), make_term(2, 0));
  count.note(order(make_term(4, 0), 200));
  EXPECT_EQ(count.at(200), 1u);
  EXPECT_EQ(count.at(190), 0u);
}

// ---- the machines ----

const RestoreCandidate kBefore{"a1-s184-x", 1, 184, "hash-184", {.bytes = 1212000, .world_size = 2, .live_ranks = 2}};

CoordinationHarness rebuilding_job(HarnessOptions options) {
  options.rebuilds = true;
  CoordinationHarness job(options);
  job.start(kBefore);
  for (std::uint32_t rank = 0; rank < job.config().world_size(); ++rank) job.place(rank, 190, RankPhase::computing);
  job.run_for(milliseconds(5));
  job.take_log();
  return job;
}

bool is_quiet_again(CoordinationHarness& job) {
  const bool quiet = job.run_until([&] { return job.quiet(); }, seconds(60));
  job.run_for(milliseconds(50));
  for (const std::string& violation : job.violations()) ADD_FAILURE() << violation;
  return quiet;
}

void expect_all_rebuilt(const CoordinationHarness& job, std::uint64_t step) {
  for (std::uint32_t rank = 0; rank < job.config().world_size(); ++rank) {
    EXPECT_TRUE(job.rank(rank).alive) << rank;
    EXPECT_FALSE(job.rank(rank).must_rebuild()) << rank;
    EXPECT_EQ(job.rank(rank).word.step, step) << rank;
  }
}

TEST(Rebuild, AFailedCollectiveOfAJobThatLivesStopsNobody) {
  CoordinationHarness job = rebuilding_job({.pods = 2, .ranks_per_pod = 2, .after_fault = AfterBreakpoint::stop});
  job.fail_collective(1);
  ASSERT_TRUE(is_quiet_again(job)) << job.describe();
  for (const std::uint32_t rank : {0u, 2u, 3u}) job.reach_gate(rank);
  ASSERT_TRUE(is_quiet_again(job));
  expect_all_rebuilt(job, 190);
  const BreakpointRecord& record = job.records().back();
  EXPECT_EQ(record.state, SaveState::durable);
  EXPECT_TRUE(record.rebuild);
  EXPECT_THAT(record.message, HasSubstr("go on with step 191"));
  EXPECT_EQ(job.pod(0).phase(), SidecarPhase::training);
}

TEST(Rebuild, FromItsFirstMomentTheRecordSaysThatNobodyIsToBeRestarted) {
  CoordinationHarness job = rebuilding_job({.pods = 2});
  job.fail_collective(0);
  ASSERT_TRUE(is_quiet_again(job));
  for (const BreakpointRecord& record : job.records()) EXPECT_TRUE(record.rebuild) << to_text(record);
}

TEST(Rebuild, ADeathInBetweenIsInTheRecordAtOnce) {
  CoordinationHarness job = rebuilding_job({.pods = 3});
  job.set_write_time(milliseconds(500));
  job.fail_collective(0);
  job.run_for(milliseconds(50));
  ASSERT_EQ(job.records().back().state, SaveState::writing);
  ASSERT_TRUE(job.records().back().rebuild);
  job.kill_rank(2);
  job.run_for(milliseconds(20));
  EXPECT_FALSE(job.records().back().rebuild);
  ASSERT_TRUE(is_quiet_again(job));
  EXPECT_FALSE(job.records().back().rebuild);
  EXPECT_EQ(job.pod(0).phase(), SidecarPhase::parked);
}

TEST(Rebuild, OneRankAheadBringsTheOthersForward) {
  CoordinationHarness job = rebuilding_job({.pods = 2});
  job.place(1, 191, RankPhase::computing);
  job.fail_collective(0);
  ASSERT_TRUE(is_quiet_again(job));
  job.reach_gate(1);
  ASSERT_TRUE(is_quiet_again(job));
  ASSERT_EQ(job.published().size(), 1u);
  EXPECT_EQ(job.published()[0].step, 191u);
  expect_all_rebuilt(job, 191);
}

TEST(Rebuild, ARankThatWasPermittedToGoOnIsWaitedFor) {
  CoordinationHarness job = rebuilding_job({.pods = 2});
  job.want_checkpoint(0);
  ASSERT_TRUE(is_quiet_again(job));  // step 190 is durable, and could be gone on from at once
  job.place(0, 190, RankPhase::waiting_at_update);
  job.place(1, 190, RankPhase::waiting_at_update);
  job.order("b-1", AfterBreakpoint::go_on, 30);
  ASSERT_TRUE(job.run_until([&] { return job.rank(1).permit == 191; }, seconds(5)));
  job.fail_collective(0);  // no longer on its way to 191, and rank 1 is
  ASSERT_TRUE(is_quiet_again(job));
  ASSERT_TRUE(is_quiet_again(job));
  expect_all_rebuilt(job, 191);
}

TEST(Rebuild, BeforeTheFirstStepThereIsNothingToLoad) {
  CoordinationHarness job({.pods = 2, .rebuilds = true});
  job.start();
  job.fail_collective(0);
  ASSERT_TRUE(is_quiet_again(job));
  job.reach_gate(1);
  ASSERT_TRUE(is_quiet_again(job));
  EXPECT_TRUE(job.published().empty());
  expect_all_rebuilt(job, 0);
}

TEST(Rebuild, WhereOneRankCannotTheJobStopsAndSaysWhich) {
  CoordinationHarness job = rebuilding_job({.pods = 3, .unable = {1}});
  job.fail_collective(0);
  ASSERT_TRUE(is_quiet_again(job));
  EXPECT_FALSE(job.records().back().rebuild);
  EXPECT_THAT(job.records().back().message, HasSubstr("rank 1 cannot make its communicators anew"));
  EXPECT_EQ(job.published().size(), 1u);
  for (std::uint32_t rank = 0; rank < 3; ++rank) EXPECT_TRUE(job.rank(rank).stop) << rank;
}

TEST(Rebuild, AReportThatTravelsWithAnotherReasonIsNotTakenForANewFailure) {
  CoordinationHarness job = rebuilding_job({.pods = 2, .after_fault = AfterBreakpoint::stop});
  job.fail_collective(0);
  job.set_link(0, 1, false);
  job.fail_collective(1);  // held by nobody yet; told once the link is back
  job.order("by-hand", AfterBreakpoint::go_on, 30);
  job.run_for(milliseconds(1));
  job.set_link(0, 1, true);
  ASSERT_TRUE(is_quiet_again(job));
  job.run_for(seconds(5));
  ASSERT_TRUE(is_quiet_again(job));
  expect_all_rebuilt(job, 190);
}

TEST(Rebuild, WithoutACheckpointTheJobStops) {
  CoordinationHarness job = rebuilding_job({.pods = 2});
  job.fail_publishing({ErrorCode::exhausted, "no space left on the volume", Retry::no});
  job.fail_collective(0);
  ASSERT_TRUE(is_quiet_again(job));
  EXPECT_FALSE(job.records().back().rebuild);
  EXPECT_TRUE(job.rank(0).stop);
  EXPECT_TRUE(job.rank(1).stop);
}

TEST(Rebuild, AStormOfReportsIsOneRebuild) {
  CoordinationHarness job = rebuilding_job({.pods = 8});
  for (std::uint32_t rank = 0; rank < 8; ++rank) job.fail_collective(rank);
  ASSERT_TRUE(is_quiet_again(job));
  job.run_for(seconds(5));
  expect_all_rebuilt(job, 190);
  for (std::uint32_t rank = 0; rank < 8; ++rank) EXPECT_EQ(job.rank(rank).rebuilds_made, 1u) << rank;
}

TEST(Rebuild, TheSameStepFailingAgainAndAgainStopsTheJob) {
  CoordinationHarness job = rebuilding_job({.pods = 2, .after_fault = AfterBreakpoint::stop});
  for (std::uint32_t round = 1; round <= job.config().limits.rebuilds_max; ++round) {
    job.fail_collective(0);
    ASSERT_TRUE(is_quiet_again(job));
    job.reach_gate(1);
    ASSERT_TRUE(is_quiet_again(job));
    EXPECT_EQ(job.rank(1).rebuilds_made, round);
  }
  job.fail_collective(1);
  ASSERT_TRUE(is_quiet_again(job));
  EXPECT_TRUE(job.rank(0).stop);
  EXPECT_TRUE(job.rank(1).stop);
  EXPECT_THAT(job.records().back().message, HasSubstr("3 times at this step"));
}

TEST(Rebuild, AStepInBetweenMakesItAnotherFailure) {
  CoordinationHarness job = rebuilding_job({.pods = 2});
  for (std::uint64_t step = 190; step < 200; ++step) {
    for (std::uint32_t rank = 0; rank < 2; ++rank) job.place(rank, step, RankPhase::computing);
    job.fail_collective(0);
    ASSERT_TRUE(is_quiet_again(job));
    job.reach_gate(1);
    ASSERT_TRUE(is_quiet_again(job));
    expect_all_rebuilt(job, step);
  }
}

}  // namespace
}  // namespace rekindle::sidecar
