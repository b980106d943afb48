#include "common/base/json_slices.h"

#include <gtest/gtest.h>

#include "common/base/format.h"
#include "common/base/json_fields.h"

namespace rekindle {
namespace {

TEST(JsonSlices, AFieldIsTheTextOfItsValue) {
  const std::string_view object = R"( { "a" : [1, {"b":"]}"}] ,"b":-1.5e3,"c":"x\\\"y","d":{} } )";
  EXPECT_EQ(json_field(object, "a"), R"([1, {"b":"]}"}])");
  EXPECT_EQ(json_field(object, "b"), "-1.5e3");
  EXPECT_EQ(json_field(object, "c"), R"("x\\\"y")");
  EXPECT_EQ(json_field(object, "d"), "{}");
  EXPECT_FALSE(json_field(object, "e"));
  EXPECT_EQ(json_field(R"({"a":1,"a":2})", "a"), "2") << "as the parser has it";
  EXPECT_FALSE(json_field("[]", "a"));
  EXPECT_FALSE(json_field(R"({"a":1} x)", "a"));
}

TEST(JsonSlices, ElementsAreTheTextsOfAList) {
  EXPECT_EQ(json_elements(R"([1,"a,b",{"c":[2,3]}, [] ])"),
            (std::vector<std::string_view>{"1", R"("a,b")", R"({"c":[2,3]})", "[]"}));
  EXPECT_EQ(json_elements(" [ ] "), std::vector<std::string_view>{});
  for (const char* text : {"", "[", "[1", "[1,", "[1,]", "[,1]", "{}", "[1] 2", "[1 2]", "[\"a]", "[[1]"})
    EXPECT_FALSE(json_elements(text)) << text;
}

TEST(JsonSlices, AgreeWithTheParserHoweverTheTextIsCut) {
  const std::string text = R"({"items":[{"n":"\"{[","v":[null,true,[]]},{"n":{}}],"z":0})";
  for (std::size_t bytes = 0; bytes < text.size(); ++bytes) {
    EXPECT_FALSE(json_field(std::string_view(text).substr(0, bytes), "items")) << bytes;
  }
  const Json whole = Json::parse(text);
  const auto elements = json_elements(json_field(text, "items").value());
  ASSERT_TRUE(elements);
  ASSERT_EQ(elements->size(), whole["items"].size());
  for (std::size_t i = 0; i < elements->size(); ++i) EXPECT_EQ(Json::parse((*elements)[i]), whole["items"][i]);
}

}  // namespace
}  // namespace rekindle
