// A rank whose registered memory holds something else (RK_SWAPPED) in an agreement: no source, and
// nobody waits for it.
#include <gtest/gtest.h>

#include "worker-sidecar/coordination/choose_step.h"

namespace rekindle::sidecar {
namespace {

CollectedRank rank_at(std::uint32_t rank, std::uint64_t step, RankPhase phase) {
  return {rank, true, is_clean({step, phase, 0}), step, phase};
}

TEST(SwappedRank, IsNoSourceWhereAnotherRankHasTheState) {
  const Choice choice =
      choose_step({.ranks = {rank_at(0, 9, RankPhase::swapped), rank_at(1, 9, RankPhase::between)}, .world_size = 2});
  EXPECT_EQ(choice.kind, ChoiceKind::take);
  EXPECT_EQ(choice.step, 9u);
  EXPECT_EQ(choice.ranks, std::vector<std::uint32_t>{1});
}

TEST(SwappedRank, IsNotWaitedForAlsoWhereSmallStateMatters) {
  const Choice choice = choose_step({.ranks = {rank_at(0, 8, RankPhase::swapped), rank_at(1, 9, RankPhase::between)},
                                     .world_size = 2,
                                     .states_matter = true});
  EXPECT_EQ(choice.kind, ChoiceKind::take);
  EXPECT_EQ(choice.step, 9u);
}

TEST(SwappedRank, WhereAllAreNobodyHasACopyAndItIsSaidAtOnce) {
  const Choice choice =
      choose_step({.ranks = {rank_at(0, 9, RankPhase::swapped), rank_at(1, 9, RankPhase::swapped)}, .world_size = 2});
  EXPECT_EQ(choice.kind, ChoiceKind::none);
  EXPECT_NE(choice.why.find("no live rank has a clean copy"), std::string::npos) << choice.why;
}

TEST(SwappedRank, OfAPhaseThatIsNotKnownIsTheSame) {
  EXPECT_FALSE(is_clean({9, static_cast<RankPhase>(13), 0}));
  EXPECT_FALSE(is_clean({9, RankPhase::swapped, 0}));
}

}  // namespace
}  // namespace rekindle::sidecar
