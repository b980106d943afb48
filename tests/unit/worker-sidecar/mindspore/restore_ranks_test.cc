#include "worker-sidecar/mindspore/restore_ranks.h"

#include <gtest/gtest.h>

#include "common/base/format.h"

namespace rekindle {
namespace {

// The seeds' example: eight ranks, rank r and rank r + 4 alike.
std::map<std::uint32_t, RankGroup> eight_ranks() {
  std::map<std::uint32_t, RankGroup> groups;
  for (std::uint32_t rank = 0; rank < 8; ++rank) groups[rank] = {rank % 4, rank % 4 + 4};
  return groups;
}

RestoreChoice choose(const std::set<std::uint32_t>& faulty) {
  const Result<RestoreChoice> choice = choose_restore_ranks(eight_ranks(), faulty);
  EXPECT_TRUE(choice) << choice.error().message;
  return choice.value_or(RestoreChoice{});
}

std::string refusal(const std::map<std::uint32_t, RankGroup>& groups, const std::set<std::uint32_t>& faulty = {},
                    std::optional<std::uint32_t> world_size = {}) {
  const Result<RestoreChoice> choice = choose_restore_ranks(groups, faulty, world_size);
  return choice ? "accepted" : choice.error().message;
}

TEST(RestoreRanks, ARankThatIsLostIsReplacedByItsCopy) {
  const RestoreEnvironment environment = restore_environment(choose({0}));
  EXPECT_EQ(environment.ranks, "1,2,3,4");
  EXPECT_EQ(environment.map, R"({"0,4":4,"1,5":1,"2,6":2,"3,7":3})");
}

TEST(RestoreRanks, TheSmallestUsableRankIsChosen) {
  const RestoreEnvironment environment = restore_environment(choose({}));
  EXPECT_EQ(environment.ranks, "0,1,2,3");
  EXPECT_EQ(environment.map, R"({"0,4":0,"1,5":1,"2,6":2,"3,7":3})");
}

TEST(RestoreRanks, AGroupThatLostAllItsRanksSendsEveryoneToThePeriodicCheckpoint) {
  const RestoreChoice choice = choose({1, 5, 7});
  EXPECT_EQ(restore_environment(choice).ranks, "-1");
  EXPECT_EQ(restore_environment(choice).map, std::nullopt);
  EXPECT_EQ(lost_groups(choice),
            (std::vector<std::string>{"the part of ranks 1,5 has no living copy: all of them are faulty. All ranks "
                                      "have to go back to a periodic checkpoint"}));
}

TEST(RestoreRanks, ARankWithoutCopiesIsItsOwnGroup) {
  const Result<RestoreChoice> choice = choose_restore_ranks({{0, {0}}, {1, {1}}}, {1});
  ASSERT_TRUE(choice);
  EXPECT_EQ(lost_groups(*choice),
            (std::vector<std::string>{"the part of rank 1 has no living copy: no other rank holds it. All ranks have "
                                      "to go back to a periodic checkpoint"}));
}

TEST(RestoreRanks, ARankWithoutAFileIsKnownFromItsGroup) {
  std::map<std::uint32_t, RankGroup> groups = eight_ranks();
  groups.erase(0);
  const Result<RestoreChoice> choice = choose_restore_ranks(groups, {0});
  ASSERT_TRUE(choice) << choice.error().message;
  EXPECT_EQ(restore_environment(*choice).ranks, "1,2,3,4");
}

TEST(RestoreRanks, AFileOfAnotherRankIsRefused) {
  std::map<std::uint32_t, RankGroup> groups = eight_ranks();
  groups[2] = {3, 7};
  EXPECT_EQ(refusal(groups), "the file of rank 2 lists ranks 3,7 and not rank 2 itself; it belongs to another rank");
}

TEST(RestoreRanks, RanksThatDisagreeAreRefused) {
  std::map<std::uint32_t, RankGroup> groups = eight_ranks();
  groups[4] = {4};
  EXPECT_EQ(refusal(groups),
            "the file of rank 0 lists ranks 0,4 and the file of rank 4 lists rank 4; they are of different runs");
}

TEST(RestoreRanks, ARankThatNoFileListsIsRefused) {
  std::map<std::uint32_t, RankGroup> groups = eight_ranks();
  groups.erase(2);
  groups.erase(6);
  EXPECT_EQ(refusal(groups), "no file tells the group of rank 2; nobody knows who could replace it");
}

TEST(RestoreRanks, TheWorldSizeSaysWhichRanksThereAre) {
  EXPECT_EQ(refusal(eight_ranks(), {}, 8), "accepted");
  EXPECT_EQ(refusal(eight_ranks(), {}, 9), "no file tells the group of rank 8; nobody knows who could replace it");
  EXPECT_EQ(refusal(eight_ranks(), {}, 7),
            "the file of rank 3 lists rank 7, but a world of 7 has none; the file is of another run");
}

TEST(RestoreRanks, AFaultyRankThatNobodyListsIsRefused) {
  EXPECT_EQ(refusal(eight_ranks(), {8}), "rank 8 is named as faulty, but no file lists it");
}

TEST(RestoreRanks, NoFilesAreRefused) { EXPECT_EQ(refusal({}), "no rank has a file that tells its group"); }

// Ranks 0 to 7 with the same step; equal content within a group.
std::map<std::uint32_t, HeldCheckpoint> equal_copies() {
  std::map<std::uint32_t, HeldCheckpoint> held;
  for (std::uint32_t rank = 0; rank < 8; ++rank) held[rank] = {184, format("part {}", rank % 4)};
  return held;
}

std::string copies_refusal(const std::set<std::uint32_t>& faulty, const std::map<std::uint32_t, HeldCheckpoint>& held) {
  const Status status = check_copies(choose(faulty), held);
  return status ? "accepted" : status.error().message;
}

TEST(CheckCopies, EqualCopiesOfOneStepPass) { EXPECT_EQ(copies_refusal({0, 5}, equal_copies()), "accepted"); }

TEST(CheckCopies, AnOlderCopyThatIsNotChosenDoesNotMatter) {
  auto held = equal_copies();
  held[6] = {100, "older"};
  held.erase(7);
  EXPECT_EQ(copies_refusal({}, held), "accepted");
}

TEST(CheckCopies, WhatAFaultyRankHoldsDoesNotMatter) {
  auto held = equal_copies();
  held[6].hash = "half written";
  EXPECT_EQ(copies_refusal({6}, held), "accepted");
}

TEST(CheckCopies, AChosenRankWithAnotherStepIsRefused) {
  auto held = equal_copies();
  held[2] = {100, "older"};
  EXPECT_EQ(copies_refusal({}, held),
            "rank 2, chosen for ranks 2,6, has step 100 where others have step 184; parts of different steps do not "
            "fit together");
}

TEST(CheckCopies, AChosenRankWithoutACheckpointIsRefused) {
  auto held = equal_copies();
  held.erase(3);
  EXPECT_EQ(copies_refusal({}, held), "rank 3, chosen for ranks 3,7, has no checkpoint");
}

TEST(CheckCopies, CopiesThatDifferAreRefused) {
  auto held = equal_copies();
  held[5].hash = "damaged";
  EXPECT_EQ(copies_refusal({}, held),
            "rank 1, chosen for ranks 1,5, and rank 5 hold different parameters for step 184 though they should be "
            "copies; at least one is damaged");
}

TEST(CheckCopies, AGroupWithoutALivingCopyIsRefused) {
  EXPECT_EQ(copies_refusal({1, 5}, equal_copies()),
            "the part of ranks 1,5 has no living copy: all of them are faulty. All ranks have to go back to a periodic "
            "checkpoint");
}

}  // namespace
}  // namespace rekindle
