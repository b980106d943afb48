// Start and restore, told on the harness.
#include "worker-sidecar/coordination/job_start.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/coordination_harness.h"

namespace rekindle::sidecar {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

const RestoreCandidate kNewest{
    "a1-s184-x", 1, 184, "hash-184", {.bytes = 1212000, .world_size = 4, .live_ranks = 3, .agreed_milliseconds = 6}};
const RestoreCandidate kOlder{"a1-s170-y", 1, 170, "hash-170", {.bytes = 1212000, .world_size = 4, .live_ranks = 4}};

bool comes_up(CoordinationHarness& job) {
  return job.run_until([&] { return job.all_running(); }, seconds(60));
}

TEST(JobStart, StartsFromStepZeroWhenThereIsNothingToRestore) {
  CoordinationHarness job({.pods = 3});
  job.connect_everything();
  ASSERT_TRUE(comes_up(job)) << job.describe();
  for (std::uint32_t rank = 0; rank < 3; ++rank) EXPECT_EQ(job.rank(rank).word, (RankStatus{0, RankPhase::between, 0}));
  EXPECT_EQ(job.pod(0).attempt(), 1u);
}

TEST(JobStart, P17_AllRanksTakeTheNewestCheckpoint) {
  CoordinationHarness job({.pods = 2, .ranks_per_pod = 2});
  job.start(kNewest);
  for (std::uint32_t rank = 0; rank < 4; ++rank) EXPECT_EQ(job.rank(rank).word.step, 184u);
  EXPECT_EQ(job.pod(1).attempt(), 2u);
}

TEST(JobStart, EveryPodIsToldWhatTheManifestOfTheTakenCheckpointSays) {
  CoordinationHarness job({.pods = 3});
  job.set_candidates({kNewest, kOlder});
  job.set_bad(kNewest.path, {ErrorCode::corrupt, "the hash of rank-0.safetensors is wrong", Retry::no});
  job.connect_everything();
  ASSERT_TRUE(comes_up(job)) << job.describe();
  for (std::uint32_t pod = 0; pod < 3; ++pod) {
    EXPECT_EQ(job.begun(pod).manifest_hash, "hash-170") << pod;
    EXPECT_EQ(job.begun(pod).summary, kOlder.summary) << pod;
  }
}

TEST(JobStart, WhereNothingWasRestoredThereIsNothingToTellAboutIt) {
  CoordinationHarness job({.pods = 2});
  job.start();
  EXPECT_EQ(job.begun(1).manifest_hash, "");
  EXPECT_EQ(job.begun(1).summary, std::nullopt);
}

TEST(JobStart, P15_TheAttemptIsClaimedWithItsParentBeforeAnyRankTakes) {
  CoordinationHarness job({.pods = 2});
  job.start(kNewest);
  const std::string log = joined(job.take_log());
  const std::size_t claimed = log.find("claims attempt 2 from a1-s184-x");
  ASSERT_NE(claimed, std::string::npos) << log;
  EXPECT_LT(claimed, log.find("lives in attempt 2"));
}

TEST(JobStart, P17_ACheckpointThatOneRankCannotLoadIsTakenByNobody) {
  CoordinationHarness job({.pods = 2});
  job.set_candidates({kNewest, kOlder});
  job.set_bad(kNewest.path, {ErrorCode::corrupt, "the hash of rank-0.safetensors is wrong", Retry::no});
  job.connect_everything();
  ASSERT_TRUE(comes_up(job));
  EXPECT_EQ(job.rank(0).word.step, 170u);
  EXPECT_EQ(job.rank(1).word.step, 170u);
  EXPECT_NE(joined(job.take_log()).find("problem checkpoint_refused: a1-s184-x"), std::string::npos);
}

TEST(JobStart, P17_WhatMayPassIsTriedAgainBeforeAnythingOlder) {
  CoordinationHarness job({.pods = 2});
  job.set_candidates({kNewest, kOlder});
  job.fail_loads_of(1, {ErrorCode::not_found, "no such file", Retry::yes});
  job.connect_everything();
  job.run_for(milliseconds(2500));
  EXPECT_FALSE(job.all_running());
  job.mend_loads_of(1);
  ASSERT_TRUE(comes_up(job));
  EXPECT_EQ(job.rank(0).word.step, 184u);
  EXPECT_EQ(joined(job.take_log()).find("checkpoint_refused"), std::string::npos);
}

TEST(JobStart, StorageThatCannotBeReadForAWhileRefusesNobody) {
  CoordinationHarness job({.pods = 2});
  job.set_candidates({kNewest});
  job.fail_listing(Error{ErrorCode::io, "the server is away"});
  job.connect_everything();
  job.run_for(seconds(5));
  EXPECT_FALSE(job.all_running());
  job.fail_listing({});
  ASSERT_TRUE(comes_up(job)) << job.describe();
  EXPECT_EQ(job.rank(0).word.step, 184u);
  EXPECT_EQ(joined(job.take_log()).find("refuses rank"), std::string::npos);
}

TEST(JobStart, AnAttemptThatCannotBeClaimedForAWhileRefusesNobody) {
  CoordinationHarness job({.pods = 2});
  job.set_candidates({kNewest});
  job.fail_claims(Error{ErrorCode::io, "the server is away"});
  job.connect_everything();
  job.run_for(seconds(5));
  EXPECT_FALSE(job.all_running());
  job.fail_claims({});
  ASSERT_TRUE(comes_up(job)) << job.describe();
  EXPECT_EQ(job.rank(0).word.step, 184u);
  EXPECT_EQ(joined(job.take_log()).find("refuses rank"), std::string::npos);
}

TEST(JobStart, P17_StorageThatFailsForAWhileIsWaitedFor) {
  for (const ErrorCode code :
       {ErrorCode::io, ErrorCode::unavailable, ErrorCode::deadline_exceeded, ErrorCode::exhausted}) {
    CoordinationHarness job({.pods = 2});
    job.set_candidates({kNewest, kOlder});
    job.fail_loads_of(1, {code, "input/output error", Retry::no});
    job.connect_everything();
    job.run_for(seconds(30));
    EXPECT_FALSE(job.all_running()) << to_string(code);
    job.mend_loads_of(1);
    ASSERT_TRUE(comes_up(job)) << to_string(code) << "\n" << job.describe();
    for (std::uint32_t rank = 0; rank < 2; ++rank) EXPECT_EQ(job.rank(rank).word.step, 184u) << to_string(code);
  }
}

TEST(JobStart, P17_StorageThatGoesOnFailingStopsTheStartAndNothingOlderIsTaken) {
  CoordinationHarness job({.pods = 2});
  job.set_candidates({kNewest, kOlder});
  job.fail_loads_of(1, {ErrorCode::io, "input/output error", Retry::no});
  job.connect_everything();
  job.run_for(seconds(90));
  EXPECT_FALSE(job.all_running());
  const std::string log = joined(job.take_log());
  EXPECT_EQ(log.find("lives in attempt"), std::string::npos) << log;
  for (const char* rank : {"refuses rank 0: ", "refuses rank 1: "})
    EXPECT_NE(log.find(std::string(rank) + "a1-s184-x: pod 1: rank 1: input/output error. No older checkpoint"),
              std::string::npos)
        << log;
}

TEST(JobStart, P17_WhatStaysMissingGivesWayToTheOneBefore) {
  CoordinationHarness job({.pods = 2});
  job.set_candidates({kNewest, kOlder});
  job.set_bad(kNewest.path, {ErrorCode::not_found, "no such file", Retry::no});
  job.connect_everything();
  job.run_for(milliseconds(4500));
  EXPECT_FALSE(job.all_running());
  ASSERT_TRUE(comes_up(job)) << job.describe();
  EXPECT_EQ(job.rank(0).word.step, 170u);
}

TEST(JobStart, AProgramThatHasChangedIsToldSoAndGetsNothingOlder) {
  CoordinationHarness job({.pods = 2});
  job.set_candidates({kNewest, kOlder});
  job.fail_loads_of(1, {ErrorCode::invalid_input, "tensor \"w\" has another shape", Retry::no});
  job.connect_everything();
  job.run_for(seconds(3));
  EXPECT_FALSE(job.all_running());
  EXPECT_NE(joined(job.take_log()).find("refuses rank 0: a1-s184-x: pod 1: rank 1: tensor \"w\" has another shape"),
            std::string::npos);
}

TEST(JobStart, NeverStartsFromStepZeroWhileCheckpointsExistThatCannotBeUsed) {
  CoordinationHarness job({.pods = 2});
  job.set_candidates({kNewest});
  job.set_bad(kNewest.path, {ErrorCode::corrupt, "the manifest is cut short", Retry::no});
  job.connect_everything();
  job.run_for(seconds(5));
  EXPECT_FALSE(job.all_running());
  const std::string log = joined(job.take_log());
  EXPECT_NE(log.find("refuses rank 0: 1 checkpoints exist and none can be used"), std::string::npos) << log;
  EXPECT_NE(log.find("refuses rank 1"), std::string::npos);
}

TEST(JobStart, WaitsForTheOperatorsGo) {
  CoordinationHarness held({.pods = 2});
  held.connect_rank(0);
  held.connect_rank(1);
  held.set_link(0, 1, false);
  held.set_link(0, 1, true);
  held.table({{0, false}, {1, true}}, false);
  held.run_for(seconds(5));
  EXPECT_FALSE(held.all_running()) << "an old pod still runs";
  held.table({{0, false}, {1, false}}, true);
  EXPECT_TRUE(comes_up(held)) << held.describe();
}

TEST(JobStart, RefusesRanksThatCannotBeOneJobAndNamesTensorRanksAndShapes) {
  CoordinationHarness job({.pods = 2});
  job.set_layout_of(1, {{whole_tensor("w", Dtype::f32, {64, 5})}});
  job.connect_everything();
  job.run_for(seconds(3));
  EXPECT_FALSE(job.all_running());
  EXPECT_NE(joined(job.take_log()).find("tensor \"w\" is F32 [64, 4] as a whole for rank 0 and F32 [64, 5] for rank 1"),
            std::string::npos);
}

TEST(JobStart, RefusesAJobInWhichNobodyHoldsSomeElements) {
  CoordinationHarness job({.pods = 2, .ranks_per_pod = 2});
  for (std::uint32_t rank = 0; rank < 4; ++rank) job.set_layout_of(rank, *layout_for("tensor", 0, 4));
  job.connect_everything();
  job.run_for(seconds(3));
  EXPECT_FALSE(job.all_running());
  EXPECT_NE(
      joined(job.take_log()).find("tensor \"w\" of [64, 4] is not complete: 128 of 256 elements are held by no rank"),
      std::string::npos);
}

TEST(JobStart, RanksThatHoldDifferentPartsComeTogetherWhateverTheNetworkLoses) {
  for (const char* parallel : {"tensor", "pipeline", "zero"}) {
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
      CoordinationHarness job(
          {.seed = seed, .pods = 3, .ranks_per_pod = 2, .drop = 0.2, .duplicate = 0.2, .delay_most = milliseconds(30)});
      for (std::uint32_t rank = 0; rank < 6; ++rank) job.set_layout_of(rank, *layout_for(parallel, rank, 6));
      job.set_candidates({kNewest});
      job.connect_everything();
      ASSERT_TRUE(comes_up(job)) << parallel << ", seed " << seed << "\n" << job.describe();
      for (std::uint32_t rank = 0; rank < 6; ++rank)
        EXPECT_EQ(job.rank(rank).word.step, 184u) << parallel << ", seed " << seed;
      ASSERT_TRUE(job.violations().empty()) << parallel << ", seed " << seed << ": " << job.violations().front();
    }
  }
}

TEST(JobStart, ASidecarThatComesBackRejoinsWithoutARestore) {
  CoordinationHarness job({.pods = 2});
  job.start(kNewest);
  job.place(0, 190, RankPhase::computing);
  job.place(1, 190, RankPhase::computing);
  job.take_log();
  job.restart_sidecar(0);
  ASSERT_TRUE(comes_up(job)) << job.describe();
  const std::string log = joined(job.take_log());
  EXPECT_NE(log.find("pod 0 lives in attempt 2, rejoined"), std::string::npos) << log;
  EXPECT_EQ(log.find("claims"), std::string::npos);
  EXPECT_EQ(job.rank(0).word.step, 190u);
}

TEST(JobStart, ACoordinatorThatIsLostOnTheWayIsReplacedWhenItsSidecarIsBack) {
  for (int delay = 0; delay < 12; ++delay) {
    CoordinationHarness job({.seed = static_cast<std::uint64_t>(delay) + 1, .pods = 3});
    job.set_candidates({kNewest});
    job.connect_everything();
    job.run_for(std::chrono::microseconds(500 * delay));
    job.restart_sidecar(0);
    EXPECT_TRUE(comes_up(job)) << "after " << delay << " half milliseconds\n" << job.describe();
    for (std::uint32_t rank = 0; rank < 3; ++rank) EXPECT_EQ(job.rank(rank).word.step, 184u) << delay;
    for (std::uint32_t pod = 1; pod < 3; ++pod) EXPECT_EQ(job.begun(pod).summary, kNewest.summary) << delay;
    EXPECT_EQ(job.rank(0).attempt, job.rank(1).attempt) << delay;
    EXPECT_EQ(job.rank(1).attempt, job.rank(2).attempt) << delay;
  }
}

TEST(JobStart, ComesTogetherWhateverTheNetworkLoses) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    CoordinationHarness job({.seed = seed, .pods = 4, .drop = 0.2, .duplicate = 0.2, .delay_most = milliseconds(30)});
    job.set_candidates({kNewest});
    job.connect_everything();
    ASSERT_TRUE(comes_up(job)) << "seed " << seed << "\n" << job.describe();
    for (std::uint32_t rank = 0; rank < 4; ++rank) EXPECT_EQ(job.rank(rank).word.step, 184u) << "seed " << seed;
    EXPECT_TRUE(job.violations().empty()) << "seed " << seed << ": " << job.violations().front();
  }
}

// --- a pod that is told to end before its ranks live in an attempt ---

TEST(JobStart, APodThatWasToldToEndBeginsNoAttempt) {
  for (int milliseconds_in = 0; milliseconds_in < 4; ++milliseconds_in) {
    CoordinationHarness job({.pods = 1, .ranks_per_pod = 2, .trains = true});
    job.connect_everything();
    job.run_for(milliseconds(milliseconds_in));
    ASSERT_EQ(job.pod(0).attempt(), 0u) << milliseconds_in;
    job.terminate(0, 30);
    job.run_for(seconds(2));
    const std::string log = joined(job.take_log());
    EXPECT_EQ(log.find("lives in attempt"), std::string::npos) << log;
    EXPECT_NE(log.find("refuses rank 0: no attempt begins here any more"), std::string::npos) << log;
    EXPECT_NE(log.find("refuses rank 1: no attempt begins here any more"), std::string::npos) << log;
    EXPECT_NE(log.find("pod 0 may exit"), std::string::npos) << log;
    EXPECT_EQ(joined(job.violations()), "");
  }
}

TEST(JobStart, ARankThatComesToAPodThatIsEndedIsRefused) {
  CoordinationHarness job({.pods = 1});
  job.table({{0, false}}, true);
  job.terminate(0, 30);
  job.run_for(milliseconds(100));
  job.connect_rank(0);
  job.run_for(seconds(1));
  const std::string log = joined(job.take_log());
  EXPECT_NE(log.find("refuses rank 0: no attempt begins here any more"), std::string::npos) << log;
  EXPECT_EQ(log.find("lives in attempt"), std::string::npos) << log;
}

TEST(JobStart, TheOtherPodsDoNotBeginWithoutThePodThatIsEnded) {
  CoordinationHarness job({.pods = 3});
  job.connect_everything();
  job.run_for(milliseconds(2));
  ASSERT_EQ(job.pod(0).attempt(), 0u);
  job.terminate(1, 30);
  job.run_for(seconds(3));
  for (std::uint32_t pod = 0; pod < 3; ++pod) EXPECT_EQ(job.pod(pod).attempt(), 0u) << pod;
}

TEST(JobStart, ASidecarThatCameBackAndIsToldToEndWaitsForItsRanksAndSavesThem) {
  CoordinationHarness job({.pods = 1, .ranks_per_pod = 2});
  job.start(kNewest);
  for (const std::uint32_t rank : {0u, 1u}) job.place(rank, 190, RankPhase::between);
  job.restart_sidecar(0);
  job.terminate(0, 30);
  ASSERT_TRUE(job.run_until([&] { return !job.published().empty(); }, seconds(10))) << job.describe();
  EXPECT_EQ(job.published()[0].step, 190u);
  job.run_for(milliseconds(100));
  const std::string log = joined(job.take_log());
  EXPECT_LT(log.find("published"), log.find("pod 0 may exit")) << log;
  EXPECT_EQ(joined(job.violations()), "");
}

TEST(JobStart, ASidecarThatCameBackAndIsToldToEndDoesNotWaitForEverForRanksThatDoNotCome) {
  Coordination sidecar({.pods = 1});
  Instant now{std::chrono::hours(1)};
  const auto may_exit = [](const CoordinationOutputs& outputs) {
    return std::ranges::any_of(outputs, [](const auto& each) { return std::holds_alternative<ExitAllowed>(each); });
  };
  sidecar.advance(JobRemembered{.attempt = 3, .job_layout_hash = "of before"}, now);
  EXPECT_FALSE(may_exit(sidecar.advance(Terminating{30}, now)));
  bool said = false;
  for (const Instant end = now + seconds(6); now < end && !said;) {
    now = std::min(end, sidecar.next_wake().value_or(end));
    said = may_exit(sidecar.advance(Tick{}, now));
  }
  EXPECT_TRUE(said);
}

TEST(JobStart, TheSidecarThatComesNextLearnsOfTheAttemptAlsoWhereNotAllIsKnownOfTheOthers) {
  Coordination sidecar({.ordinal = 1, .pods = 2});
  const Instant now{std::chrono::hours(1)};
  sidecar.advance(PeerConnected{0}, now);
  sidecar.advance(RankConnected{.rank = 1}, now);
  sidecar.advance(PeerMessageArrived{0, 0, BeginMessage{}}, now);
  sidecar.advance(RankRegistered{1, {.layout = harness_layout()}}, now);
  sidecar.advance(PeerMessageArrived{0, 0, OfferMessage{}}, now);
  sidecar.advance(RankLoaded{1, {.ok = true}}, now);
  std::optional<RememberJob> left;
  for (const CoordinationOutput& output : sidecar.advance(PeerMessageArrived{0, 1, TakeMessage{.attempt = 1}}, now)) {
    if (const auto* remember = std::get_if<RememberJob>(&output)) left = *remember;
  }
  ASSERT_TRUE(left);
  EXPECT_EQ(left->attempt, 1u);
  EXPECT_NE(left->job_layout_hash, "");
}

TEST(JobStart, AHookOfAPodThatIsEndedBeforeItsAttemptIsAnsweredAtOnce) {
  CoordinationHarness job({.pods = 1});
  job.connect_everything();
  job.hook(0, 30);
  job.terminate(0, 30);
  ASSERT_TRUE(job.hooks().begin()->second.answer);
  EXPECT_EQ(job.hooks().begin()->second.answer->outcome, HookOutcome::nothing_to_save);
}

}  // namespace
}  // namespace rekindle::sidecar
