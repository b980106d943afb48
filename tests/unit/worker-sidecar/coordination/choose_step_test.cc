#include "worker-sidecar/coordination/choose_step.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace rekindle::sidecar {
namespace {

CollectedRank at(std::uint32_t rank, std::uint64_t step, RankPhase phase) {
  return {rank, true, is_clean({step, phase, 0}), step, phase};
}
CollectedRank dead(std::uint32_t rank, std::uint64_t step, RankPhase phase = RankPhase::computing) {
  return {rank, false, false, step, phase};
}

ChooseInput job(std::vector<CollectedRank> ranks) {
  const auto world = static_cast<std::uint32_t>(ranks.size());
  return {.ranks = std::move(ranks), .world_size = world};
}

using Ranks = std::vector<std::uint32_t>;

TEST(ChooseStep, P5_TheStateOfNIsTakenWhileTheNextStepComputes) {
  const Choice choice = choose_step(job({at(0, 9, RankPhase::computing), at(1, 9, RankPhase::computing)}));
  EXPECT_EQ(choice.kind, ChoiceKind::take);
  EXPECT_EQ(choice.step, 9u);
  EXPECT_EQ(choice.ranks, (Ranks{0, 1}));
}

TEST(ChooseStep, P10_OneSurvivorAtTheNewerStepIsEnough) {
  const Choice choice =
      choose_step(job({at(0, 9, RankPhase::collective_failed), at(1, 10, RankPhase::between), dead(2, 9)}));
  EXPECT_EQ(choice.kind, ChoiceKind::take);
  EXPECT_EQ(choice.step, 10u);
  EXPECT_EQ(choice.ranks, Ranks{1});
  EXPECT_EQ(choice.steps_lost, 0u);
}

TEST(ChooseStep, P13_ARankThatDiedBeforeItsPartLeavesN) {
  const Choice choice = choose_step(job({at(0, 9, RankPhase::computing), dead(1, 9)}));
  EXPECT_EQ(choice.kind, ChoiceKind::take);
  EXPECT_EQ(choice.step, 9u);
}

TEST(ChooseStep, P10_CompleteGradientsMakeTheNextStepReachable) {
  const Choice choice =
      choose_step(job({at(0, 9, RankPhase::waiting_at_update), at(1, 9, RankPhase::collective_failed), dead(2, 9)}));
  EXPECT_EQ(choice.kind, ChoiceKind::permit);
  EXPECT_EQ(choice.step, 10u);
  EXPECT_EQ(choice.ranks, Ranks{0});
}

TEST(ChooseStep, P12_NIsKeptWhereTheNextStepWouldCostSomebodysSmallState) {
  ChooseInput input = job({at(0, 9, RankPhase::waiting_at_update), at(1, 9, RankPhase::collective_failed), dead(2, 9)});
  input.states_matter = true;
  const Choice choice = choose_step(input);
  EXPECT_EQ(choice.kind, ChoiceKind::take);
  EXPECT_EQ(choice.step, 9u);
  EXPECT_EQ(choice.ranks, (Ranks{0, 1}));
}

TEST(ChooseStep, P12_WhereEveryRankCanFollowTheNextStepIsTaken) {
  ChooseInput input = job({at(0, 9, RankPhase::waiting_at_update), at(1, 9, RankPhase::waiting_at_update)});
  input.states_matter = true;
  const Choice choice = choose_step(input);
  EXPECT_EQ(choice.kind, ChoiceKind::permit);
  EXPECT_EQ(choice.ranks, (Ranks{0, 1}));
}

TEST(ChooseStep, P13_AStepThatOnlyADeadRankHadIsReachedThroughALiveOneThatWaits) {
  const Choice choice =
      choose_step(job({at(0, 9, RankPhase::waiting_at_update), at(1, 9, RankPhase::computing), dead(2, 10)}));
  EXPECT_EQ(choice.kind, ChoiceKind::permit);
  EXPECT_EQ(choice.step, 10u);
  EXPECT_EQ(choice.ranks, Ranks{0});
}

TEST(ChooseStep, P13_AStepThatOnlyADeadRankHadIsWaitedForAndThenLostOnRecord) {
  ChooseInput input = job({at(0, 9, RankPhase::computing), dead(1, 10)});
  EXPECT_EQ(choose_step(input).kind, ChoiceKind::wait);
  input.arrival_over = true;
  const Choice choice = choose_step(input);
  EXPECT_EQ(choice.kind, ChoiceKind::take);
  EXPECT_EQ(choice.step, 9u);
  EXPECT_EQ(choice.steps_lost, 1u);
  EXPECT_NE(choice.why.find("step 10 was committed only by rank 1"), std::string::npos) << choice.why;
}

TEST(ChooseStep, NobodyIsWaitedForWhenEveryLiveRankSaidThatItsCollectiveFailed) {
  const Choice choice = choose_step(job({at(0, 9, RankPhase::collective_failed), dead(1, 10)}));
  EXPECT_EQ(choice.kind, ChoiceKind::take);
  EXPECT_EQ(choice.step, 9u);
  EXPECT_EQ(choice.steps_lost, 1u);
}

TEST(ChooseStep, P6_AnUpdateIsWaitedForAndThenDirty) {
  ChooseInput input = job({at(0, 9, RankPhase::updating), at(1, 9, RankPhase::waiting_at_step)});
  EXPECT_EQ(choose_step(input).kind, ChoiceKind::wait);
  input.updating_over = true;
  const Choice choice = choose_step(input);
  EXPECT_EQ(choice.kind, ChoiceKind::take);
  EXPECT_EQ(choice.ranks, Ranks{1});
}

TEST(ChooseStep, WithoutACleanCopyItSaysSo) {
  ChooseInput input = job({at(0, 9, RankPhase::updating), dead(1, 9)});
  input.updating_over = true;
  const Choice choice = choose_step(input);
  EXPECT_EQ(choice.kind, ChoiceKind::none);
  EXPECT_NE(choice.why.find("rank 0"), std::string::npos);
}

TEST(ChooseStep, WithoutALiveRankItSaysSo) {
  EXPECT_EQ(choose_step(job({dead(0, 9), dead(1, 9)})).kind, ChoiceKind::none);
}

TEST(ChooseStep, ALiveRankThatIsTwoBehindIsReportedAndNoSource) {
  const Choice choice = choose_step(job({at(0, 7, RankPhase::computing), at(1, 9, RankPhase::computing)}));
  EXPECT_EQ(choice.ranks, Ranks{1});
  ASSERT_EQ(choice.refused.size(), 1u);
  EXPECT_NE(choice.refused[0].find("rank 0 is at step 7"), std::string::npos);
}

TEST(ChooseStep, ADeadRanksClaimFarAheadIsReportedAndNotBelieved) {
  const Choice choice = choose_step(job({at(0, 9, RankPhase::computing), dead(1, 900)}));
  EXPECT_EQ(choice.kind, ChoiceKind::take);
  EXPECT_EQ(choice.step, 9u);
  EXPECT_EQ(choice.steps_lost, 0u);
  EXPECT_EQ(choice.refused.size(), 1u);
}

TEST(ChooseStep, AFinishedJobHasNothingToSave) {
  EXPECT_EQ(choose_step(job({dead(0, 9, RankPhase::finished), dead(1, 9, RankPhase::finished)})).kind,
            ChoiceKind::finished);
}

TEST(ChooseStep, AFinishedRankIsEvidenceAndNoSource) {
  const Choice choice = choose_step(job({dead(0, 10, RankPhase::finished), at(1, 9, RankPhase::waiting_at_update)}));
  EXPECT_EQ(choice.kind, ChoiceKind::permit);
  EXPECT_EQ(choice.step, 10u);
}

TEST(ChooseStep, P12_AStragglerIsLetThroughForItsSmallState) {
  ChooseInput input = job({at(0, 10, RankPhase::waiting_at_step), at(1, 9, RankPhase::waiting_at_update)});
  input.states_matter = true;
  Choice choice = choose_step(input);
  EXPECT_EQ(choice.kind, ChoiceKind::permit);
  EXPECT_EQ(choice.step, 10u);
  EXPECT_EQ(choice.ranks, Ranks{1});
  input.straggler_over = true;
  choice = choose_step(input);
  EXPECT_EQ(choice.kind, ChoiceKind::take);
  EXPECT_EQ(choice.step, 10u);
}

TEST(ChooseStep, APermittedRankThatDoesNotMoveIsNotWaitedForTwice) {
  ChooseInput input = job({at(0, 9, RankPhase::waiting_at_update), dead(1, 10)});
  input.permit_over = true;
  const Choice choice = choose_step(input);
  EXPECT_EQ(choice.kind, ChoiceKind::take);
  EXPECT_EQ(choice.step, 9u);
  EXPECT_EQ(choice.steps_lost, 1u);
}

// Every job of one to four ranks over phases, steps n and n + 1, and deaths: plays the answer until
// a step is taken, with ranks that do what the gates allow, and compares it with the best that was
// possible.
class EveryJob : public ::testing::TestWithParam<int> {};

struct Situation {
  RankPhase phase;
  std::uint64_t step;
  bool alive;
};

std::vector<Situation> situations() {
  std::vector<Situation> list;
  for (const std::uint64_t step : {5u, 6u}) {
    for (const RankPhase phase :
         {RankPhase::between, RankPhase::computing, RankPhase::updating, RankPhase::waiting_at_update,
          RankPhase::waiting_at_step, RankPhase::collective_failed}) {
      list.push_back({phase, step, true});
    }
    list.push_back({RankPhase::computing, step, false});
  }
  return list;
}

// The largest step that a live rank has or gets to with the gates' help; 0: no clean copy.
// `arrives`: ranks that compute get their reduction.
std::uint64_t best_possible(const std::vector<CollectedRank>& ranks, bool arrives, bool states_matter) {
  std::uint64_t committed = 0;
  bool anybody = false;
  for (const CollectedRank& rank : ranks) {
    // Held ranks that are updating commit one more.
    const std::uint64_t step = rank.step + (rank.alive && rank.phase == RankPhase::updating ? 1 : 0);
    committed = std::max(committed, step);
    anybody = anybody || rank.alive;
  }
  if (!anybody) return 0;
  std::uint64_t best = 0;
  bool all_wait = true;
  for (const CollectedRank& rank : ranks)
    all_wait = all_wait && rank.alive && rank.phase == RankPhase::waiting_at_update && rank.step == committed;
  for (const CollectedRank& rank : ranks) {
    if (!rank.alive) continue;
    std::uint64_t step = rank.step + (rank.phase == RankPhase::updating ? 1 : 0);
    if (rank.phase == RankPhase::waiting_at_update && (rank.step < committed || !states_matter || all_wait)) ++step;
    if (rank.phase == RankPhase::computing && rank.step + 1 == committed && arrives) ++step;
    best = std::max(best, step);
  }
  return best;
}

void play(std::vector<CollectedRank> ranks, bool arrives, bool states_matter) {
  const std::uint64_t best = best_possible(ranks, arrives, states_matter);
  ChooseInput input{.world_size = static_cast<std::uint32_t>(ranks.size()), .states_matter = states_matter};
  for (int turn = 0; turn < 20; ++turn) {
    input.ranks = ranks;
    const Choice choice = choose_step(input);
    if (choice.kind == ChoiceKind::take) {
      ASSERT_GE(choice.step, best);
      ASSERT_FALSE(choice.ranks.empty());
      for (const std::uint32_t writer : choice.ranks) {
        ASSERT_TRUE(ranks[writer].alive && ranks[writer].clean);
        ASSERT_EQ(ranks[writer].step, choice.step) << "a writer that has another step";
      }
      return;
    }
    if (choice.kind == ChoiceKind::none) {
      ASSERT_EQ(best, 0u) << "a copy was possible: " << choice.why;
      return;
    }
    ASSERT_NE(choice.kind, ChoiceKind::finished);
    bool moved = false;
    for (CollectedRank& rank : ranks) {
      if (!rank.alive) continue;
      const bool permitted = choice.kind == ChoiceKind::permit && rank.phase == RankPhase::waiting_at_update &&
                             rank.step + 1 == choice.step &&
                             std::find(choice.ranks.begin(), choice.ranks.end(), rank.rank) != choice.ranks.end();
      if (permitted || rank.phase == RankPhase::updating) {
        rank = at(rank.rank, rank.step + 1, RankPhase::waiting_at_step);
        moved = true;
      } else if (choice.kind == ChoiceKind::wait && rank.phase == RankPhase::computing && arrives) {
        rank = at(rank.rank, rank.step, RankPhase::waiting_at_update);
        moved = true;
      }
    }
    if (moved) continue;
    ASSERT_EQ(choice.kind, ChoiceKind::wait) << "ranks were permitted that cannot move";
    ASSERT_FALSE(input.arrival_over && input.straggler_over) << "waits for ever: " << choice.why;
    input.arrival_over = input.straggler_over = true;
  }
  FAIL() << "no end";
}

TEST_P(EveryJob, TakesACompleteStepThatIsNeverSmallerThanPossible) {
  const int world = GetParam();
  const std::vector<Situation> all = situations();
  std::vector<std::size_t> index(static_cast<std::size_t>(world), 0);
  std::size_t played = 0;
  for (;;) {
    std::vector<CollectedRank> ranks;
    std::string text;
    for (std::size_t rank = 0; rank < index.size(); ++rank) {
      const Situation& s = all[index[rank]];
      const auto number = static_cast<std::uint32_t>(rank);
      ranks.push_back(s.alive ? at(number, s.step, s.phase) : dead(number, s.step));
      text += std::string(s.alive ? to_string(s.phase) : "dead") + "@" + std::to_string(s.step) + " ";
    }
    for (const bool arrives : {false, true}) {
      for (const bool states_matter : {false, true}) {
        play(ranks, arrives, states_matter);
        if (::testing::Test::HasFatalFailure()) {
          FAIL() << text << (arrives ? "arrives " : "") << (states_matter ? "states" : "");
        }
        ++played;
      }
    }
    std::size_t digit = 0;
    while (digit < index.size() && ++index[digit] == all.size()) index[digit++] = 0;
    if (digit == index.size()) break;
  }
  std::size_t expected = 4;
  for (int i = 0; i < world; ++i) expected *= all.size();
  EXPECT_EQ(played, expected);
}

INSTANTIATE_TEST_SUITE_P(OfOneToFourRanks, EveryJob, ::testing::Values(1, 2, 3, 4));

}  // namespace
}  // namespace rekindle::sidecar
