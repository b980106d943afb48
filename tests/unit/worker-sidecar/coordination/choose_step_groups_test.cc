// The choice of a step where ranks hold different parts, and with copies in shadows (PROTOCOL P10,
// P13).
#include <gtest/gtest.h>

#include <algorithm>

#include "worker-sidecar/coordination/choose_step.h"

// The helpers have the names of those of choose_step_test.cc, which is compiled together with this.
namespace rekindle::sidecar::step_groups {
namespace {

using Ranks = std::vector<std::uint32_t>;
using Steps = std::vector<std::uint64_t>;

CollectedRank at(std::uint32_t rank, std::uint64_t step, RankPhase phase, Steps shadows = {}) {
  return {rank, true, is_clean({step, phase, 0}), step, phase, std::move(shadows)};
}
CollectedRank dead(std::uint32_t rank, std::uint64_t step, Steps shadows = {}) {
  return {rank, false, false, step, RankPhase::computing, std::move(shadows)};
}

StepGroup group(Ranks ranks) { return {ranks, ranks}; }
const std::vector<StepGroup> kPairs = {group({0, 2}), group({1, 3})};  // two replicas of two halves
const std::vector<StepGroup> kSingles = {group({0}), group({1})};

ChooseInput job(std::vector<StepGroup> groups, std::vector<CollectedRank> ranks) {
  const auto world = static_cast<std::uint32_t>(ranks.size());
  return {.ranks = std::move(ranks), .world_size = world, .groups = std::move(groups)};
}

TEST(ChooseStepOfGroups, ADeathInOnePairLeavesTheStepToTheOther) {
  const Choice choice = choose_step(job(kPairs, {at(0, 9, RankPhase::computing), at(1, 9, RankPhase::computing),
                                                 at(2, 9, RankPhase::computing), dead(3, 9)}));
  EXPECT_EQ(choice.kind, ChoiceKind::take);
  EXPECT_EQ(choice.step, 9u);
  EXPECT_EQ(choice.ranks, (Ranks{0, 1, 2}));
}

TEST(ChooseStepOfGroups, AnotherGroupsCopyDoesNotReplaceALostOne) {
  const Choice choice = choose_step(job(kSingles, {at(0, 9, RankPhase::computing), dead(1, 9)}));
  EXPECT_EQ(choice.kind, ChoiceKind::none);
  EXPECT_EQ(choice.lost_groups, std::vector<std::size_t>{1});
}

TEST(ChooseStepOfGroups, P10_AGroupThatIsBehindIsLetThroughWhenTheOtherHasNoCopyOfTheStepBefore) {
  ChooseInput input = job(kPairs, {at(0, 10, RankPhase::between), at(1, 9, RankPhase::waiting_at_update),
                                   at(2, 10, RankPhase::between), dead(3, 9)});
  const Choice choice = choose_step(input);
  EXPECT_EQ(choice.kind, ChoiceKind::permit);
  EXPECT_EQ(choice.step, 10u);
  EXPECT_EQ(choice.ranks, Ranks{1});
}

TEST(ChooseStepOfGroups, NobodyIsLetThroughWhileAnotherGroupIsOnlyOnItsWay) {
  // Rank 2 has committed and is gone. Were rank 0 let through and rank 1 never arrived, step 9
  // would be gone as well.
  ChooseInput input =
      job(kPairs, {at(0, 9, RankPhase::waiting_at_update), at(1, 9, RankPhase::computing), dead(2, 10), dead(3, 9)});
  Choice choice = choose_step(input);
  EXPECT_EQ(choice.kind, ChoiceKind::wait);
  EXPECT_EQ(choice.why, "rank 1 to arrive at the update to step 10");
  input.arrival_over = true;
  choice = choose_step(input);
  EXPECT_EQ(choice.kind, ChoiceKind::take);
  EXPECT_EQ(choice.step, 9u);
  EXPECT_EQ(choice.steps_lost, 1u);
}

TEST(ChooseStepOfGroups, P10_TheNextStepIsMadeOnlyWhenEveryGroupCanMakeIt) {
  const Choice both =
      choose_step(job(kPairs, {at(0, 9, RankPhase::waiting_at_update), at(1, 9, RankPhase::waiting_at_update),
                               at(2, 9, RankPhase::computing), dead(3, 9)}));
  EXPECT_EQ(both.kind, ChoiceKind::permit);
  EXPECT_EQ(both.ranks, (Ranks{0, 1}));
  const Choice one = choose_step(job(kPairs, {at(0, 9, RankPhase::waiting_at_update), at(1, 9, RankPhase::computing),
                                              at(2, 9, RankPhase::computing), dead(3, 9)}));
  EXPECT_EQ(one.kind, ChoiceKind::take);
  EXPECT_EQ(one.step, 9u);
}

TEST(ChooseStepOfGroups, P13_TheOnlyCopyOfAShardIsTakenFromItsShadow) {
  const Choice choice = choose_step(job(kSingles, {at(0, 9, RankPhase::computing, {8, 9}), dead(1, 9, {8, 9})}));
  EXPECT_EQ(choice.kind, ChoiceKind::take);
  EXPECT_EQ(choice.step, 9u);
  EXPECT_EQ(choice.ranks, Ranks{0});
  EXPECT_EQ(choice.shadows, Ranks{1});
  EXPECT_EQ(choice.steps_lost, 0u);
}

TEST(ChooseStepOfGroups, P10_APartThatIsAtTheNextStepAlreadyIsTakenFromTheShadowsOfTheStepBefore) {
  // Rank 1 died in the middle of its update to step 10, rank 0 has made it.
  const Choice choice = choose_step(job(kSingles, {at(0, 10, RankPhase::between, {9, 10}), dead(1, 9, {8, 9})}));
  EXPECT_EQ(choice.kind, ChoiceKind::take);
  EXPECT_EQ(choice.step, 9u);
  EXPECT_TRUE(choice.ranks.empty());
  EXPECT_EQ(choice.shadows, (Ranks{0, 1}));
  EXPECT_EQ(choice.steps_lost, 1u);
}

TEST(ChooseStepOfGroups, AllDeadWithTheirShadowsCompleteLoseNothing) {
  const Choice choice =
      choose_step(job(kPairs, {dead(0, 9, {8, 9}), dead(1, 9, {8, 9}), dead(2, 9, {9}), dead(3, 9, {9})}));
  EXPECT_EQ(choice.kind, ChoiceKind::take);
  EXPECT_EQ(choice.step, 9u);
  EXPECT_EQ(choice.shadows, (Ranks{0, 1, 2, 3}));
}

TEST(ChooseStepOfGroups, AShadowThatOneHolderLacksIsNone) {
  const Choice choice =
      choose_step(job(kPairs, {dead(0, 9, {8, 9}), dead(1, 9, {8, 9}), dead(2, 9, {9}), dead(3, 9, {8})}));
  EXPECT_EQ(choice.kind, ChoiceKind::none);
}

TEST(ChooseStepOfGroups, ARankWithoutAShareNeedsNoShadow) {
  std::vector<StepGroup> groups = {{{0, 1, 2}, {0, 1}}};
  EXPECT_EQ(choose_step(job(groups, {dead(0, 9, {9}), dead(1, 9, {9}), dead(2, 9)})).shadows, (Ranks{0, 1}));
}

TEST(ChooseStepOfGroups, AnOlderShadowIsTakenWhereNothingNewerIsComplete) {
  const Choice choice = choose_step(job(kSingles, {at(0, 29, RankPhase::computing, {20, 25}), dead(1, 29, {20, 25})}));
  EXPECT_EQ(choice.step, 25u);
  EXPECT_EQ(choice.steps_lost, 4u);
  EXPECT_NE(choice.why.find("step 29 is not complete: there is no copy of the part of rank 1, and"), std::string::npos)
      << choice.why;
}

TEST(ChooseStepOfGroups, AFinishedRanksShadowMayGoAnyMoment) {
  CollectedRank finished = dead(1, 9, {9});
  finished.phase = RankPhase::finished;
  EXPECT_EQ(choose_step(job(kSingles, {dead(0, 9, {9}), finished})).kind, ChoiceKind::none);
}

TEST(ChooseStepOfGroups, ASkewOfTwoIsNoSource) {
  const Choice choice = choose_step(job(kSingles, {at(0, 7, RankPhase::computing), at(1, 9, RankPhase::computing)}));
  EXPECT_EQ(choice.kind, ChoiceKind::none);
  EXPECT_EQ(choice.refused.size(), 1u);
}

// --- every job ---

struct Situation {
  RankPhase phase;
  std::uint64_t step;
  bool alive;
  Steps shadows;
};

// Two steps, all phases that matter, deaths; with shadows every set of copies that a rank at that
// step can have.
std::vector<Situation> situations(bool with_shadows) {
  std::vector<Situation> list;
  for (const std::uint64_t step : {5u, 6u}) {
    std::vector<Steps> copies = {{}};
    if (with_shadows) copies.push_back({5});
    if (with_shadows && step == 6) copies.insert(copies.end(), {{6}, {5, 6}});
    for (const Steps& shadows : copies) {
      for (const RankPhase phase :
           {RankPhase::computing, RankPhase::updating, RankPhase::waiting_at_update, RankPhase::collective_failed}) {
        list.push_back({phase, step, true, shadows});
      }
      list.push_back({RankPhase::computing, step, false, shadows});
    }
  }
  return list;
}

// Straight from the definition: can every group come to `step`, and may it?
struct Possible {
  const std::vector<CollectedRank>& ranks;
  const std::vector<StepGroup>& groups;
  bool arrives;
  bool states_matter;

  static std::uint64_t finished_update(const CollectedRank& rank) {
    return rank.step + (rank.alive && rank.phase == RankPhase::updating ? 1 : 0);
  }
  std::uint64_t committed() const {
    std::uint64_t most = 0;
    for (const CollectedRank& rank : ranks) most = std::max(most, finished_update(rank));
    return most;
  }
  std::uint64_t live_committed() const {
    std::uint64_t most = 0;
    for (const CollectedRank& rank : ranks) most = std::max(most, rank.alive ? finished_update(rank) : 0);
    return most;
  }
  bool rank_comes_to(const CollectedRank& rank, std::uint64_t step) const {
    if (!rank.alive || step + 1 < live_committed()) return false;  // a skew of two is refused
    if (finished_update(rank) == step) return true;
    if (rank.step + 1 != step) return false;
    if (rank.phase == RankPhase::waiting_at_update) return true;
    return rank.phase == RankPhase::computing && arrives && step <= committed();
  }
  bool in_shadows(const StepGroup& group, std::uint64_t step) const {
    return std::all_of(group.sharers.begin(), group.sharers.end(), [&](std::uint32_t rank) {
      return std::find(ranks[rank].shadow_steps.begin(), ranks[rank].shadow_steps.end(), step) !=
             ranks[rank].shadow_steps.end();
    });
  }
  bool complete(std::uint64_t step) const {
    return std::all_of(groups.begin(), groups.end(), [&](const StepGroup& group) {
      return in_shadows(group, step) || std::any_of(group.ranks.begin(), group.ranks.end(), [&](std::uint32_t rank) {
               return rank_comes_to(ranks[rank], step);
             });
    });
  }
  // 0: no step.
  std::uint64_t best() const {
    const std::uint64_t most = committed();
    const bool all_wait = std::all_of(ranks.begin(), ranks.end(), [&](const CollectedRank& rank) {
      return rank.alive && rank.phase == RankPhase::waiting_at_update && rank.step == most;
    });
    if ((!states_matter || all_wait) && complete(most + 1)) return most + 1;
    for (std::uint64_t step = most; step > 0; --step) {
      if (complete(step)) return step;
    }
    return 0;
  }
};

// Plays the answers until a step is taken, with ranks that do what the gates allow.
void play(std::vector<CollectedRank> ranks, const std::vector<StepGroup>& groups, bool arrives, bool states_matter) {
  const std::uint64_t best = Possible{ranks, groups, arrives, states_matter}.best();
  ChooseInput input{
      .world_size = static_cast<std::uint32_t>(ranks.size()), .states_matter = states_matter, .groups = groups};
  for (int turn = 0; turn < 20; ++turn) {
    input.ranks = ranks;
    const Choice choice = choose_step(input);
    if (choice.kind == ChoiceKind::take) {
      ASSERT_GE(choice.step, best);
      for (const std::uint32_t writer : choice.ranks) {
        ASSERT_TRUE(ranks[writer].alive && ranks[writer].clean && ranks[writer].phase != RankPhase::updating);
        ASSERT_EQ(ranks[writer].step, choice.step) << "a writer that has another step";
      }
      for (const std::uint32_t shadow : choice.shadows) {
        ASSERT_TRUE(
            std::binary_search(ranks[shadow].shadow_steps.begin(), ranks[shadow].shadow_steps.end(), choice.step))
            << "no such copy";
        ASSERT_FALSE(std::binary_search(choice.ranks.begin(), choice.ranks.end(), shadow)) << "it writes twice";
      }
      for (const StepGroup& each : groups) {
        const bool live = std::any_of(each.ranks.begin(), each.ranks.end(), [&](std::uint32_t rank) {
          return std::binary_search(choice.ranks.begin(), choice.ranks.end(), rank);
        });
        const bool copied =
            std::includes(choice.shadows.begin(), choice.shadows.end(), each.sharers.begin(), each.sharers.end());
        ASSERT_TRUE(live || copied) << "a group without a copy of step " << choice.step;
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
                             std::binary_search(choice.ranks.begin(), choice.ranks.end(), rank.rank);
      if (permitted || rank.phase == RankPhase::updating) {
        rank = at(rank.rank, rank.step + 1, RankPhase::waiting_at_step, rank.shadow_steps);
        moved = true;
      } else if (choice.kind == ChoiceKind::wait && rank.phase == RankPhase::computing && arrives) {
        rank = at(rank.rank, rank.step, RankPhase::waiting_at_update, rank.shadow_steps);
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

struct Shape {
  const char* name;
  std::uint32_t world;
  bool shadows;
  std::vector<StepGroup> groups;
};
void PrintTo(const Shape& shape, std::ostream* out) { *out << shape.name; }

class EveryShardedJob : public ::testing::TestWithParam<Shape> {};

TEST_P(EveryShardedJob, TakesACompleteStepThatIsNeverSmallerThanPossible) {
  const Shape& shape = GetParam();
  const std::vector<Situation> all = situations(shape.shadows);
  std::vector<std::size_t> index(shape.world, 0);
  std::size_t played = 0;
  for (;;) {
    std::vector<CollectedRank> ranks;
    for (std::uint32_t rank = 0; rank < shape.world; ++rank) {
      const Situation& s = all[index[rank]];
      ranks.push_back(s.alive ? at(rank, s.step, s.phase, s.shadows) : dead(rank, s.step, s.shadows));
    }
    for (const bool arrives : {false, true}) {
      for (const bool states_matter : {false, true}) {
        play(ranks, shape.groups, arrives, states_matter);
        if (::testing::Test::HasFatalFailure()) {
          std::string text;
          for (const CollectedRank& rank : ranks) {
            text += std::string(rank.alive ? to_string(rank.phase) : "dead") + "@" + std::to_string(rank.step);
            for (const std::uint64_t step : rank.shadow_steps) text += "+" + std::to_string(step);
            text += " ";
          }
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
  for (std::uint32_t i = 0; i < shape.world; ++i) expected *= all.size();
  EXPECT_EQ(played, expected);
}

INSTANTIATE_TEST_SUITE_P(
    Of, EveryShardedJob,
    ::testing::Values(
        Shape{"two_pairs", 4, false, {group({0, 2}), group({1, 3})}},
        Shape{"four_singles", 4, false, {group({0}), group({1}), group({2}), group({3})}},
        Shape{"a_pair_two_singles_and_all", 4, false, {group({2}), group({3}), group({0, 1}), group({0, 1, 2, 3})}},
        Shape{"one_group_with_shadows", 3, true, {group({0, 1, 2})}},
        Shape{"singles_with_shadows", 3, true, {group({0}), group({1}), group({2})}},
        Shape{"a_pair_and_a_single_with_shadows", 3, true, {group({2}), group({0, 1})}},
        Shape{"zero_with_shadows", 3, true, {group({0}), group({1}), group({2}), group({0, 1, 2})}}),
    [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace rekindle::sidecar::step_groups
