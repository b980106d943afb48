#include "docs/examples/digits/adam.h"

#include <gtest/gtest.h>

namespace digits {
namespace {

TEST(Adam, FirstUpdateMovesEveryParameterByTheLearningRate) {
  Adam adam(2, 0.01);
  std::vector<float> parameters = {1.0F, 1.0F};
  adam.update(parameters, std::vector<float>{0.5F, -3.0F});
  EXPECT_NEAR(parameters[0], 0.99F, 1e-6);
  EXPECT_NEAR(parameters[1], 1.01F, 1e-6);
}

TEST(Adam, LostCountersAreDerivedToTheBit) {
  Adam adam(1, 0.01);
  std::vector<float> parameters = {0.0F};
  for (int k = 0; k < 184; ++k) adam.update(parameters, std::vector<float>{0.1F});
  const Adam::Counters derived = Adam::counters_after(184);
  EXPECT_EQ(derived.updates, adam.counters.updates);
  EXPECT_EQ(derived.first_power, adam.counters.first_power);
  EXPECT_EQ(derived.second_power, adam.counters.second_power);
}

}  // namespace
}  // namespace digits
