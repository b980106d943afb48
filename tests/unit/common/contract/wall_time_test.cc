#include "common/contract/wall_time.h"

#include <gtest/gtest.h>

namespace rekindle {
namespace {

TEST(WallTime, ReadsWhatKubernetesWrites) {
  const auto plain = parse_wall_time("2026-01-31T12:00:00Z");
  ASSERT_TRUE(plain);
  EXPECT_EQ(to_text(*plain), "2026-01-31T12:00:00Z");
  EXPECT_EQ(to_micro_text(*parse_wall_time("2026-01-31T12:00:00.1234567Z")), "2026-01-31T12:00:00.123456Z");
  EXPECT_EQ(parse_wall_time("2026-01-31T13:30:00+01:30"), plain);
  EXPECT_EQ(parse_wall_time("2026-01-31T07:00:00-05:00"), plain);
}

TEST(WallTime, CountsFromTheEpoch) {
  EXPECT_EQ(parse_wall_time("1970-01-01T00:00:01Z")->time_since_epoch().count(), 1'000'000);
  EXPECT_EQ(to_text(*parse_wall_time("1969-12-31T23:59:59Z")), "1969-12-31T23:59:59Z");
}

TEST(WallTime, AnythingElseIsNone) {
  for (const char* text :
       {"", "yesterday", "2026-01-31", "2026-13-31T12:00:00Z", "2026-02-30T12:00:00Z", "2026-01-31T25:00:00Z",
        "2026-01-31T12:00:00", "2026-01-31T12:00:00.Z", "2026-01-31T12:00:00+1:00", "2026-01-31T12:00:00Zjunk"}) {
    EXPECT_FALSE(parse_wall_time(text)) << text;
  }
}

}  // namespace
}  // namespace rekindle
