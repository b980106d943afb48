#include "common/base/json_fields.h"

#include <gtest/gtest.h>

namespace rekindle {
namespace {

TEST(JsonFields, ReadsWhatIsThereAndDefaultsTheRest) {
  const Json document = Json::parse(R"({"name":"w1","step":7,"done":null})");
  JsonFields in(document, "test");
  EXPECT_EQ(in.text("name"), "w1");
  EXPECT_EQ(in.number("step"), 7u);
  EXPECT_TRUE(in.boolean_or("done", true));
  EXPECT_TRUE(in.finish());
}

TEST(JsonFields, FirstMistakeIsTheOneReported) {
  const Json document = Json::parse(R"({"step":-1})");
  JsonFields in(document, "manifest");
  EXPECT_EQ(in.number("step"), 0u);
  EXPECT_EQ(in.text("name"), "");
  ASSERT_FALSE(in.finish());
  EXPECT_EQ(in.finish().error().message, "manifest: step must be a whole number that is not negative");
}

TEST(JsonFields, SomethingElseThanAnObjectIsRefusedNotCrashed) {
  const Json document = Json::array();
  JsonFields in(document, "manifest");
  EXPECT_EQ(in.text("name"), "");
  EXPECT_FALSE(in.finish());
}

TEST(ParseJson, DeepNestingIsRefusedBeforeItIsBuilt) {
  const Result<Json> parsed = parse_json(std::string(1000, '['), "body");
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().code, ErrorCode::invalid_input);
}

TEST(ParseJson, BracketsInsideStringsDoNotCount) {
  EXPECT_TRUE(parse_json("\"" + std::string(1000, '[') + "\\\"[\"", "body"));
}

TEST(ParseJson, TooManyBytesAreRefused) { EXPECT_FALSE(parse_json("[1,2,3]", "body", 3)); }

TEST(ParseJson, MoreValuesThanAllowedAreRefusedBeforeTheyAreBuilt) {
  EXPECT_TRUE(parse_json(R"([1,{"a":2}])", "body", 100, 4));
  const Result<Json> parsed = parse_json(R"([1,{"a":2}])", "body", 100, 3);
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().code, ErrorCode::invalid_input);
  EXPECT_EQ(parsed.error().message, "body has 4 values, and 3 are read at most: make it smaller");
}

TEST(ParseJson, CommasInsideStringsAreNoValues) { EXPECT_TRUE(parse_json(R"(",,[{\",")", "body", 100, 1)); }

TEST(DumpJson, InvalidUtf8IsReplacedNotThrown) { EXPECT_NO_THROW(dump_json(Json("\xff"))); }

}  // namespace
}  // namespace rekindle
