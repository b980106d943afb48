#include "worker-sidecar/coordination/protection.h"

#include <gtest/gtest.h>

namespace rekindle::sidecar {
namespace {

StepGroup held_by(std::vector<std::uint32_t> ranks) { return {ranks, ranks}; }

TEST(Protection, IsFullWhereEveryRankHoldsEverything) { EXPECT_TRUE(protection_of({held_by({0, 1, 2})}, 0).full); }

TEST(Protection, P10_IsPartialWherePartsCanStandAtDifferentSteps) {
  const Protection protection = protection_of({held_by({0, 2}), held_by({1, 3})}, 0);
  EXPECT_FALSE(protection.full);
  EXPECT_NE(protection.message.find("a death between the commits of two ranks"), std::string::npos)
      << protection.message;
}

TEST(Protection, P10_NamesTheRanksWhoseDeathCostsSteps) {
  const Protection protection = protection_of({held_by({0}), held_by({2}), held_by({0, 1, 2})}, 0);
  EXPECT_FALSE(protection.full);
  EXPECT_EQ(protection.message,
            "only ranks 0, 2 hold their parts of the state: the death of one of them costs all steps since the newest "
            "checkpoint; a shadow of each step would prevent that");
}

TEST(Protection, AShadowOfEachStepMakesItFullAgainstDeathsOfProcesses) {
  const Protection protection = protection_of({held_by({0}), held_by({1})}, 1);
  EXPECT_TRUE(protection.full);
  EXPECT_NE(protection.message.find("the loss of a whole pod"), std::string::npos) << protection.message;
}

TEST(Protection, AShadowOfSomeStepsBoundsTheLoss) {
  const Protection protection = protection_of({held_by({0}), held_by({1})}, 10);
  EXPECT_FALSE(protection.full);
  EXPECT_NE(protection.message.find("costs up to 10 steps"), std::string::npos) << protection.message;
}

}  // namespace
}  // namespace rekindle::sidecar
