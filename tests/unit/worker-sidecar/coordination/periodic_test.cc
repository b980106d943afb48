// Checkpoints that are made while training goes on, each as a story.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/worker-sidecar/coordination/periodic_world.h"

namespace rekindle::sidecar {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::PeriodicWorld;
using ::testing::SizeIs;

const SnapshotSettings kEveryTenSteps{.rhythm = SnapshotRhythm::steps, .every_steps = 10};

bool held(PeriodicWorld& job) { return job.pod(0).sidecar->phase() != SidecarPhase::training; }

TEST(Periodic, EveryTenthStepIsSavedWhileTrainingGoesOn) {
  PeriodicWorld job(2, kEveryTenSteps);
  job.start();
  job.train(35);
  ASSERT_THAT(job.published, SizeIs(3));
  EXPECT_EQ(job.published[0].step, 10u);
  EXPECT_EQ(job.published[1].step, 20u);
  EXPECT_EQ(job.published[2].step, 30u);
  EXPECT_EQ(job.published[0].kind, CheckpointKind::periodic);
  EXPECT_EQ(job.published[0].term, 0u);
  EXPECT_THAT(job.problems, IsEmpty());
}

TEST(Periodic, EveryRankKeepsAndWritesItsShareOnly) {
  PeriodicWorld job(4, kEveryTenSteps);
  job.start();
  job.train(12);
  for (std::uint32_t pod = 0; pod < 4; ++pod) {
    ASSERT_THAT(job.pod(pod).kept, SizeIs(1));
    ASSERT_THAT(job.pod(pod).kept[0].pieces, SizeIs(1));
    EXPECT_EQ(job.pod(pod).kept[0].pieces[0].end_row - job.pod(pod).kept[0].pieces[0].begin_row, 25u);
  }
  ASSERT_THAT(job.published, SizeIs(1));
  EXPECT_THAT(job.published[0].files, SizeIs(4));
}

TEST(Periodic, SaysHowLongTrainingStood) {
  PeriodicWorld job(2, kEveryTenSteps);
  job.start();
  job.train(12);
  ASSERT_THAT(job.reports, SizeIs(1));
  EXPECT_EQ(job.reports[0].step, 10u);
  EXPECT_DOUBLE_EQ(job.reports[0].stopped_milliseconds, 1.5);
  EXPECT_THAT(job.reports[0].rhythm, HasSubstr("every 10 steps"));
}

TEST(Periodic, ByTimeTheStepIsOneThatNobodyHasPassed) {
  PeriodicWorld job(2, {.rhythm = SnapshotRhythm::time, .every = seconds(1)});
  job.start();
  job.train(150);
  ASSERT_FALSE(job.published.empty());
  EXPECT_THAT(job.problems, IsEmpty());
}

TEST(Periodic, ARankThatHadPassedTheStepIsAskedForALaterOne) {
  PeriodicWorld job(2, kEveryTenSteps);
  job.start();
  job.pod(1).takes_snapshots = false;  // the word did not reach it in time
  job.train(12);
  EXPECT_THAT(job.published, IsEmpty());
  job.pod(1).takes_snapshots = true;
  job.train(120);
  ASSERT_FALSE(job.published.empty());
  EXPECT_GT(job.published[0].step, 10u);
  EXPECT_EQ(job.published[0].step % 10, 0u);
}

TEST(Periodic, AWriterThatFailsCostsThisCheckpointOnlyAndItsFolderGoes) {
  PeriodicWorld job(2, kEveryTenSteps);
  job.start();
  job.pod(1).write_error = Error{ErrorCode::exhausted, "the volume is full"};
  job.train(12);
  EXPECT_THAT(job.published, IsEmpty());
  ASSERT_THAT(job.removed, SizeIs(1));
  EXPECT_THAT(job.removed[0], HasSubstr("a1-s10-"));
  ASSERT_THAT(job.problems, SizeIs(1));
  EXPECT_THAT(job.problems[0], HasSubstr("the periodic checkpoint of step 10 was given up"));
  EXPECT_THAT(job.problems[0], HasSubstr("the volume is full"));
  job.pod(1).write_error.reset();
  job.train(20);
  EXPECT_FALSE(job.published.empty());
  EXPECT_FALSE(held(job));
}

TEST(Periodic, AFileOfACheckpointThatWasGivenUpIsNotTakenForTheNextOnes) {
  PeriodicWorld job(2, kEveryTenSteps);
  job.start();
  job.pod(1).answers_writes = false;  // the disk is slow
  job.pod(0).write_error = Error{ErrorCode::io, "the server is away"};
  job.train(12);
  job.pod(0).write_error.reset();
  for (int steps = 0; steps < 200 && job.pod(1).unanswered.size() < 2; ++steps) job.train(1);
  ASSERT_THAT(job.pod(1).unanswered, SizeIs(2));
  job.answer_write(1, job.pod(1).unanswered[0]);
  EXPECT_THAT(job.published, IsEmpty());
  job.answer_write(1, job.pod(1).unanswered[1]);
  ASSERT_THAT(job.published, SizeIs(1));
  EXPECT_EQ(job.published[0].step, job.pod(1).unanswered[1].step);
}

TEST(Periodic, SmallStateOfEveryRankIsInIt) {
  PeriodicWorld job(2, kEveryTenSteps);
  job.pod(0).has_state = job.pod(1).has_state = true;
  job.start();
  job.train(12);
  ASSERT_THAT(job.published, SizeIs(1));
  EXPECT_THAT(job.published[0].states, SizeIs(2));
}

TEST(Periodic, WithoutTheSmallStateOfARankThereIsNoCheckpoint) {
  PeriodicWorld job(2, kEveryTenSteps);
  job.pod(0).has_state = job.pod(1).has_state = true;
  job.pod(1).states_missing = {1};
  job.start();
  job.train(12);
  EXPECT_THAT(job.published, IsEmpty());
  ASSERT_THAT(job.problems, SizeIs(1));
  EXPECT_THAT(job.problems[0], HasSubstr("the small state of rank 1 at this step is not there"));
}

TEST(Periodic, APublishThatFailsIsNoCheckpoint) {
  PeriodicWorld job(2, kEveryTenSteps);
  job.start();
  job.publish_error = Error{ErrorCode::io, "the server is away"};
  job.train(12);
  EXPECT_THAT(job.reports, IsEmpty());
  EXPECT_THAT(job.removed, SizeIs(1));
}

TEST(Periodic, ABreakpointDoesNotWaitForIt) {
  PeriodicWorld job(2, kEveryTenSteps);
  job.start();
  job.pod(1).answers_writes = false;  // the disk is slow
  job.train(12);
  EXPECT_THAT(job.published, IsEmpty());
  job.handle(0, HookCalled{.hook = 1, .container = "main", .seconds_left = 30});
  EXPECT_TRUE(held(job));
  EXPECT_THAT(job.removed, SizeIs(1));
  EXPECT_THAT(job.problems, IsEmpty());
}

TEST(Periodic, AnAnswerForOneThatWasGivenUpPublishesNothing) {
  PeriodicWorld job(2, kEveryTenSteps);
  job.start();
  job.pod(1).answers_writes = false;
  job.train(12);
  ASSERT_THAT(job.pod(1).unanswered, SizeIs(1));
  const WriteMessage late = job.pod(1).unanswered[0];
  job.handle(0, PeerLost{1});
  job.handle(0, PeerConnected{1});
  job.handle(
      1, RankWritten{1, {.term = late.term, .written = {.file = late.file, .bytes = 1, .hash = std::string(32, '0')}}});
  EXPECT_THAT(job.published, IsEmpty());
  EXPECT_THAT(job.removed, SizeIs(1));
}

TEST(Periodic, AFolderThatIsThereWhenNobodyWantsItAnyMoreIsRemoved) {
  PeriodicWorld job(2, kEveryTenSteps);
  job.start();
  job.handle(0, FolderCreated{make_periodic_term(99, 0), "a1-s10-late"});
  EXPECT_THAT(job.removed, ::testing::ElementsAre("a1-s10-late"));
}

TEST(Periodic, APodThatComesBackIsPlannedAnew) {
  PeriodicWorld job(2, kEveryTenSteps);
  job.start();
  job.train(12);
  job.handle(0, PeerLost{1});
  job.handle(1, PeerLost{0});
  job.handle(1, PeerConnected{0});
  job.handle(0, PeerConnected{1});
  job.train(24);
  EXPECT_THAT(job.pod(1).kept, SizeIs(2));
  EXPECT_GE(job.published.size(), 2u);
}

TEST(Periodic, TensorsThatAppearLateArePlannedIn) {
  PeriodicWorld job(2, kEveryTenSteps);
  job.start();
  job.train(3);
  for (std::uint32_t pod = 0; pod < 2; ++pod) {
    job.pod(pod).layout.tensors.push_back(whole_tensor("moments", Dtype::f32, {100, 2}));
    job.handle(pod, RankRegistered{pod, {.layout = job.pod(pod).layout, .states = {}, .late = true}});
  }
  job.run(seconds(2));
  EXPECT_THAT(job.pod(1).kept, SizeIs(2));
  job.train(20);
  ASSERT_FALSE(job.published.empty());
  EXPECT_THAT(job.published.back().tensors, SizeIs(2));
}

TEST(Periodic, WithoutMemoryForTheCopyThePlanIsTriedAgainLaterAndSaysSoOnce) {
  PeriodicWorld job(2, kEveryTenSteps);
  job.pod(1).no_memory = Error{ErrorCode::exhausted, "the memory volume is full"};
  job.start();
  job.train(100);
  EXPECT_THAT(job.published, IsEmpty());
  ASSERT_THAT(job.problems, SizeIs(1));
  EXPECT_THAT(job.problems[0], HasSubstr("the memory volume is full"));
  job.pod(1).no_memory.reset();
  job.run(seconds(61));
  job.train(20);
  EXPECT_FALSE(job.published.empty());
}

TEST(Periodic, AfterTheLastStepNothingIsSaidToHaveFailed) {
  PeriodicWorld job(2, kEveryTenSteps);
  job.start();
  job.train(15);
  for (std::uint32_t pod = 0; pod < 2; ++pod) job.handle(pod, RankFinished{pod});
  job.run(seconds(5));
  EXPECT_THAT(job.problems, IsEmpty());
  EXPECT_THAT(job.removed, IsEmpty());
}

TEST(Periodic, TheDeathOfARankWhileItsSnapshotIsWrittenIsTheBreakpointsBusiness) {
  PeriodicWorld job(2, kEveryTenSteps);
  job.start();
  job.pod(1).answers_writes = false;
  job.train(12);
  job.handle(1, RankDied{1, job.pod(1).word, 1});
  EXPECT_TRUE(held(job));
  EXPECT_THAT(job.removed, SizeIs(1));
}

TEST(Periodic, AShadowAloneIsKeptAndNothingIsSaved) {
  PeriodicWorld job(2, {.shadow_every_steps = 5});
  job.start();
  job.train(30);
  ASSERT_THAT(job.pod(0).kept, SizeIs(1));
  EXPECT_FALSE(job.pod(0).kept[0].snapshots);
  EXPECT_EQ(job.pod(0).kept[0].shadow_every_steps, 5u);
  EXPECT_THAT(job.published, IsEmpty());
}

TEST(Periodic, SwitchedOffNobodyIsAskedForAnything) {
  PeriodicWorld job(2, {});
  job.start();
  job.train(30);
  EXPECT_THAT(job.pod(0).kept, IsEmpty());
  EXPECT_EQ(job.pod(0).sidecar->next_wake(), std::nullopt);
}

}  // namespace
}  // namespace rekindle::sidecar
