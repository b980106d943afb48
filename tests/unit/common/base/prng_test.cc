#include "common/base/prng.h"

#include <gtest/gtest.h>

namespace rekindle {
namespace {

TEST(Prng, GivesThePublishedSequence) {
  // The first numbers of SplitMix64 for the seed 1234567.
  Prng numbers(1234567);
  EXPECT_EQ(numbers.next(), 6457827717110365317u);
  EXPECT_EQ(numbers.next(), 3203168211198807973u);
  EXPECT_EQ(numbers.next(), 9817491932198370423u);
}

TEST(Prng, StaysWithinItsBounds) {
  Prng numbers(7);
  for (int i = 0; i < 10000; ++i) {
    EXPECT_LT(numbers.below(3), 3u);
    const double unit = numbers.unit();
    EXPECT_GE(unit, 0.0);
    EXPECT_LT(unit, 1.0);
  }
  EXPECT_EQ(numbers.below(0), 0u);
}

}  // namespace
}  // namespace rekindle
