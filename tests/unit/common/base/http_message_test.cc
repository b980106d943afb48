#include "common/base/http_message.h"

#include <gtest/gtest.h>

namespace rekindle {
namespace {

TEST(HttpHeaders, AreFoundWhateverTheirCase) {
  const HttpHeaders headers{{"Retry-After", "3"}, {"X-A", "1"}, {"x-a", "2"}};
  EXPECT_EQ(headers.value_of("retry-after"), "3");
  EXPECT_EQ(headers.value_of("X-a"), "1");
  EXPECT_EQ(headers.count("x-A"), 2u);
  EXPECT_FALSE(headers.has("absent"));
}

TEST(HttpHeaders, SettingReplacesEveryEarlierValue) {
  HttpHeaders headers{{"Accept", "a"}, {"accept", "b"}};
  headers.set("ACCEPT", "c");
  EXPECT_EQ(headers, (HttpHeaders{{"ACCEPT", "c"}}));
}

TEST(RequestTarget, EncodesWhatWouldEndAValue) {
  const HttpRequest request{.path = "/api/v1/pods", .query = {{"labelSelector", "a in (b,c)&d=e"}, {"limit", "500"}}};
  EXPECT_EQ(request_target(request), "/api/v1/pods?labelSelector=a%20in%20%28b%2Cc%29%26d%3De&limit=500");
}

TEST(ParseQuery, IsTheOppositeOfTheTarget) {
  const HttpQuery query = {{"a b", "c&d=%"}, {"e", ""}, {"\xc3\xa9", "/"}};
  const std::string target = request_target({.path = "/", .query = query});
  EXPECT_EQ(parse_query(target.substr(2)), query);
}

TEST(ParseQuery, TakesNamesWithoutAValueAndPlusAsSpace) {
  EXPECT_EQ(parse_query("a&&b=1+2&"), (HttpQuery{{"a", ""}, {"b", "1 2"}}));
}

TEST(PercentDecode, RefusesHalfAnEscape) {
  EXPECT_EQ(percent_decode("%41", false), "A");
  EXPECT_FALSE(percent_decode("%4", false));
  EXPECT_FALSE(percent_decode("%", false));
  EXPECT_FALSE(percent_decode("a%zz", false));
}

}  // namespace
}  // namespace rekindle
