// What the pods tell about the files of one round.
#include "worker-sidecar/coordination/writing_round.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rekindle::sidecar {
namespace {

using ::testing::ElementsAre;

const CoordinationConfig kTwoPods{.pods = 2};

WritingRound begun() {
  WritingRound round(kTwoPods);
  round.begin(7, 12, "a1-s12-n1", {{.rank = 0, .file = "rank-0"}, {.rank = 1, .file = "rank-1"}}, {0, 1});
  return round;
}

PodWrittenMessage told_by(std::uint32_t pod, std::vector<std::uint32_t> ranks) {
  PodWrittenMessage message{.term = 7, .ordinal = pod, .ok = true};
  for (const std::uint32_t rank : ranks) message.ranks.push_back({rank, WrittenFile{.file = "of another"}});
  return message;
}

TEST(WritingRound, APodTellsOnlyOfItsOwnRanks) {
  WritingRound round = begun();
  EXPECT_EQ(round.add(told_by(0, {0, 1})), ReportState::whole);
  EXPECT_EQ(round.add(told_by(1, {})), ReportState::incomplete);
  EXPECT_EQ(round.add(told_by(1, {1})), ReportState::whole);
}

// The coordinator's ranks may hold none where those of another pod do.
TEST(WritingRound, ARankThatItsPodCallsInexactIsAlsoWhereTheCoordinatorHasNoSmallState) {
  WritingRound round = begun();
  PodWrittenMessage other = told_by(1, {1});
  other.inexact_ranks = {1};
  round.add(told_by(0, {0}));
  round.add(other);
  EXPECT_THAT(round.inexact_ranks(false), ElementsAre(1));
}

}  // namespace
}  // namespace rekindle::sidecar
