#include "operator/admission/json_edit.h"

#include <gtest/gtest.h>

namespace rekindle::op {
namespace {

using Json = nlohmann::json;

TEST(JsonEdit, WhatIsRecordedDoesWhatWasDone) {
  const Json before = Json::parse(R"({"a":{"b":1},"list":[1,2,3],"null":null})");
  JsonEdit edit(before);
  edit.add("/a/" + pointer_part("x/y~z"), "new");
  edit.add("/list/0", 0);
  edit.add("/list/-", 4);
  edit.replace("/a/b", 2);
  edit.remove("/list/2");
  edit.ensure("/null", Json::array());
  edit.ensure("/list", Json::array());
  edit.set("/a/b", 2);
  EXPECT_EQ(edit.document(), Json::parse(R"({"a":{"b":2,"x/y~z":"new"},"list":[0,1,3,4],"null":[]})"));
  const Json after = edit.document();
  EXPECT_EQ(before.patch(edit.take_operations()), after);
}

TEST(JsonEdit, NothingToDoIsNothingRecorded) {
  JsonEdit edit(Json::parse(R"({"a":{"b":1}})"));
  edit.set("/a/b", 1);
  edit.ensure("/a", Json::object());
  EXPECT_EQ(edit.take_operations(), Json::array());
}

TEST(JsonEdit, NullCountsAsAbsent) {
  const JsonEdit edit(Json::parse(R"({"a":null})"));
  EXPECT_EQ(edit.find("/a"), nullptr);
  EXPECT_EQ(edit.find("/a/b/c"), nullptr);
}

}  // namespace
}  // namespace rekindle::op
