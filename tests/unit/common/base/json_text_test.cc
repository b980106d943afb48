#include "common/base/json_text.h"

#include <gtest/gtest.h>

#include "common/base/format.h"
#include "common/base/json_fields.h"

namespace rekindle {
namespace {

TEST(JsonText, StringsAreAsTheTreeWritesThem) {
  for (const std::string text : {"", "weights.0", "a \"quoted\" \\ name", "tab\tand\nline", "\x7f",
                                 "gr\xc3\xbc\xc3\x9f", "broken \xff utf", "~ !"}) {
    std::string out;
    append_json_string(out, text);
    EXPECT_EQ(out, dump_json(Json(text)));
  }
}

TEST(JsonText, NumbersAreAsTheTreeWritesThem) {
  for (const std::vector<std::uint64_t>& numbers : {std::vector<std::uint64_t>{}, {0}, {1, UINT64_MAX, 3}}) {
    std::string out;
    append_json_numbers(out, numbers);
    EXPECT_EQ(out, dump_json(Json(numbers)));
  }
}

TEST(JsonText, ElementsGoIntoTheFieldAndNotIntoATextThatLooksLikeIt) {
  std::string text = dump_json({{"a", "\"list\":[]"}, {"list", Json::array()}, {"z", 1}});
  put_json_elements(text, "list", "1,2");
  EXPECT_EQ(text, dump_json({{"a", "\"list\":[]"}, {"list", {1, 2}}, {"z", 1}}));
}

TEST(JsonElements, AreHandedOverInOrderAndNotKept) {
  std::vector<int> seen;
  const Result<Json> rest =
      parse_json_elements(R"({"x":{"list":[{"n":1},{"n":2,"list":[{"n":9}]}],"other":[{"n":3}]},"list":[{"n":4}]})",
                          "text", 1000, {"x", "list"}, [&](const Json& element) -> Status {
                            seen.push_back(element["n"].get<int>());
                            return {};
                          });
  ASSERT_TRUE(rest.has_value());
  EXPECT_EQ(seen, (std::vector<int>{1, 2}));
  EXPECT_EQ(dump_json(*rest), R"({"list":[{"n":4}],"x":{"list":[],"other":[{"n":3}]}})");
}

TEST(JsonElements, OnlyObjectsOfThatVeryArrayAreElements) {
  const auto none = [](const Json&) -> Status { return fail(ErrorCode::internal, "this is no element"); };
  for (const std::string text : {R"({"list":{"a":{"n":1}}})", R"({"list":[[{"n":1}]]})", R"([{"list":1},{"n":1}])",
                                 R"({"list":[1,"a"]})", R"({"y":{"list":[{"n":1}]}})"}) {
    const Result<Json> whole = parse_json_elements(text, "text", 1000, {"list"}, none);
    ASSERT_TRUE(whole.has_value()) << text;
    EXPECT_EQ(dump_json(*whole), text);
  }
}

TEST(JsonElements, TheFirstErrorEndsIt) {
  int asked = 0;
  const Result<Json> refused =
      parse_json_elements(R"({"list":[{},{},{}]})", "text", 1000, {"list"}, [&](const Json&) -> Status {
        ++asked;
        return fail(ErrorCode::corrupt, format("number {}", asked));
      });
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().message, "number 1");
  EXPECT_EQ(asked, 1);
}

TEST(JsonElements, BrokenTextIsAnErrorAsEver) {
  EXPECT_FALSE(parse_json_elements(R"({"list":[{})", "text", 1000, {"list"}, [](const Json&) { return Status(); }));
  EXPECT_FALSE(parse_json_elements(R"({"list":[{}]})", "text", 5, {"list"}, [](const Json&) { return Status(); }));
}

}  // namespace
}  // namespace rekindle
