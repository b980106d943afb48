#include "common/base/format.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace rekindle {
namespace {

TEST(Sentence, ValuesTakeTheirPlacesInOrder) {
  const std::string job = "digits";
  EXPECT_EQ(format("rank {} of {}, job {}{}", 3, std::uint64_t{18446744073709551615u}, job, '!'),
            "rank 3 of 18446744073709551615, job digits!");
}

TEST(Sentence, AValueThatLooksLikeAPlaceStaysText) { EXPECT_EQ(format("{} and {}", "{}", -1), "{} and -1"); }

TEST(Sentence, TextOfAnyKindIsText) {
  const char* pointer = "pointer";
  EXPECT_EQ(format("{} {} {}", pointer, std::string_view("view"), true), "pointer view true");
}

TEST(Sentence, APatternWithoutPlacesIsItself) { EXPECT_EQ(format("nothing"), "nothing"); }

}  // namespace
}  // namespace rekindle
