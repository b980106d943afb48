#include "worker-sidecar/checkpoint/shards.h"

#include <gtest/gtest.h>

#include "tests/unit/worker-sidecar/checkpoint/job_layouts.h"
#include "worker-sidecar/checkpoint/plan.h"

namespace rekindle {
namespace {

using Ranks = std::vector<std::uint32_t>;

TensorDescription box(std::string name, Extents global, Extents offset, Extents shape) {
  return {std::move(name), Dtype::f32, std::move(shape), std::move(global), std::move(offset)};
}

std::vector<Ranks> ranks_of(const std::vector<ReplicaGroup>& groups) {
  std::vector<Ranks> ranks;
  for (const ReplicaGroup& group : groups) ranks.push_back(group.ranks);
  return ranks;
}

std::vector<Ranks> ranks_of(const JobOfLayouts& job) {
  const auto groups = group_shards(job.lists());
  EXPECT_TRUE(groups.has_value()) << groups.error().message;
  return groups ? ranks_of(*groups) : std::vector<Ranks>{};
}

std::string refusal_of(const JobOfLayouts& job) {
  const auto groups = group_shards(job.lists());
  EXPECT_FALSE(groups.has_value());
  return groups ? "" : groups.error().message;
}

TEST(GroupShards, OfDataParallelRanksAreOneGroup) {
  EXPECT_EQ(ranks_of(data_parallel(3)), (std::vector<Ranks>{{0, 1, 2}}));
}

TEST(GroupShards, OfTensorParallelRanksAreAGroupAPartAndOneOfWhatAllHold) {
  EXPECT_EQ(ranks_of(tensor_parallel(2, 2)), (std::vector<Ranks>{{0, 2}, {1, 3}, {0, 1, 2, 3}}));
}

TEST(GroupShards, OfPipelineStagesAreAGroupAStage) {
  EXPECT_EQ(ranks_of(pipeline_parallel(2, 3)), (std::vector<Ranks>{{0, 2, 4}, {1, 3, 5}}));
}

TEST(GroupShards, OfZeroOneAreEachRankAloneAndAllTogether) {
  EXPECT_EQ(ranks_of(zero_one(3)), (std::vector<Ranks>{{0}, {1}, {2}, {0, 1, 2}}));
}

TEST(GroupShards, DoNotDependOnTheOrderInWhichRanksAreGiven) {
  const JobOfLayouts job = tensor_parallel(2, 2);
  std::vector<RankLayout> ranks = job.lists();
  const auto before = group_shards(ranks);
  std::reverse(ranks.begin(), ranks.end());
  const auto after = group_shards(ranks);
  ASSERT_TRUE(before && after);
  EXPECT_EQ(split_for_writers(*before), split_for_writers(*after));
}

TEST(GroupShards, HalvesOfAWholeThatAnotherRankHoldsHaveTwoHoldersEach) {
  const JobOfLayouts job{{{{box("w", {4, 2}, {0, 0}, {4, 2})}},
                          {{box("w", {4, 2}, {0, 0}, {2, 2})}},
                          {{box("w", {4, 2}, {2, 0}, {2, 2})}}}};
  const auto groups = group_shards(job.lists());
  ASSERT_TRUE(groups) << groups.error().message;
  EXPECT_EQ(ranks_of(*groups), (std::vector<Ranks>{{0, 1}, {0, 2}}));
  // Rows are those of each rank's own part.
  const WritePlan plan = plan_write(*groups, {2}, {});
  EXPECT_EQ(plan.lost_groups, std::vector<std::size_t>{0});
  EXPECT_EQ(plan.writers[0].pieces, (std::vector<PiecePlan>{{"w", 0, 2}}));
  EXPECT_EQ(plan_write(*groups, {0}, {}).writers[0].pieces, (std::vector<PiecePlan>{{"w", 0, 2}, {"w", 2, 4}}));
}

TEST(GroupShards, ColumnHalvesBesideTheWholeAreNotNeeded) {
  const JobOfLayouts job{{{{box("w", {4, 2}, {0, 0}, {4, 2})}},
                          {{box("w", {4, 2}, {0, 0}, {4, 1})}},
                          {{box("w", {4, 2}, {0, 1}, {4, 1})}}}};
  EXPECT_EQ(ranks_of(job), (std::vector<Ranks>{{0}}));
}

TEST(GroupShards, RowsHereAndColumnsThereGoTogetherWhereTheyDoNotOverlap) {
  const JobOfLayouts job{{{{box("w", {4, 2}, {0, 0}, {2, 2})}},
                          {{box("w", {4, 2}, {2, 0}, {2, 1})}},
                          {{box("w", {4, 2}, {2, 1}, {2, 1})}}}};
  EXPECT_EQ(ranks_of(job), (std::vector<Ranks>{{0}, {1}, {2}}));
}

TEST(GroupShards, PartsThatOverlapAndCannotBeCutAreRefusedByName) {
  const JobOfLayouts job{{{{box("w", {4, 3}, {0, 0}, {4, 2})}}, {{box("w", {4, 3}, {0, 1}, {4, 2})}}}};
  const std::string why = refusal_of(job);
  EXPECT_NE(why.find("tensor \"w\" of [4, 3] is held by rank 0 at [0, 4) x [0, 2) and by rank 1 at [0, 4) x [1, 3): "
                     "the parts overlap"),
            std::string::npos)
      << why;
}

TEST(GroupShards, ElementsThatNobodyHoldsAreRefusedByName) {
  const JobOfLayouts job{{{{box("w", {4, 2}, {0, 0}, {2, 2})}}, {{box("w", {4, 2}, {3, 0}, {1, 2})}}}};
  const std::string why = refusal_of(job);
  EXPECT_NE(why.find("tensor \"w\" of [4, 2] is not complete: 2 of 8 elements are held by no rank (rank 0 at [0, 2) x "
                     "[0, 2), rank 1 at [3, 4) x [0, 2))"),
            std::string::npos)
      << why;
}

TEST(GroupShards, OneLayoutThatIsAPartEverywhereIsNotComplete) {
  const Layout half{{box("w", {4, 2}, {0, 0}, {2, 2})}};
  EXPECT_NE(refusal_of({std::vector<Layout>(2, half)})
                .find("4 of 8 elements are held by no rank (rank 0 at [0, 2) x [0, 2))"),
            std::string::npos);
}

TEST(GroupShards, OneNameWithTwoShapesOrTypesIsRefusedWithBoth) {
  EXPECT_NE(refusal_of({{{{whole_tensor("w", Dtype::f32, {4, 2})}}, {{whole_tensor("w", Dtype::f32, {4, 3})}}}})
                .find("tensor \"w\" is F32 [4, 2] as a whole for rank 0 and F32 [4, 3] for rank 1"),
            std::string::npos);
  EXPECT_NE(refusal_of({{{{whole_tensor("w", Dtype::f32, {4, 2})}}, {{whole_tensor("w", Dtype::bf16, {4, 2})}}}})
                .find("BF16 [4, 2] for rank 1"),
            std::string::npos);
}

TEST(GroupShards, EmptyTensorsBelongToSomebody) {
  const JobOfLayouts job{{{{whole_tensor("none", Dtype::f32, {0, 4})}},
                          {{whole_tensor("none", Dtype::f32, {0, 4}), whole_tensor("w", Dtype::f32, {2})}}}};
  EXPECT_EQ(ranks_of(job), (std::vector<Ranks>{{1}, {0, 1}}));
}

TEST(DescribeRanks, NamesAFewAndCountsTheRest) {
  EXPECT_EQ(describe_ranks({3}), "rank 3");
  EXPECT_EQ(describe_ranks({0, 1, 2, 3, 4}), "ranks 0, 1, 2, 3, 4");
  EXPECT_EQ(describe_ranks({0, 1, 2, 3, 4, 5}), "ranks 0, 1, 2, 3 and 2 more");
}

}  // namespace
}  // namespace rekindle
