#include "operator/controller/store.h"

#include <gtest/gtest.h>

#include "common/base/format.h"

namespace rekindle::op {
namespace {

struct Thing {
  std::string uid;
  std::string job;
  bool operator==(const Thing&) const = default;
};

ObjectKey key(const std::string& name) { return {"team-a", name}; }

std::vector<std::string> names(const std::vector<StoreChange<Thing>>& changes) {
  std::vector<std::string> texts;
  for (const StoreChange<Thing>& change : changes) {
    texts.push_back(format("{}:{}>{}", change.key.name, change.before ? change.before->uid : "-",
                           change.after ? change.after->uid : "-"));
  }
  return texts;
}

class StoreTest : public testing::Test {
 protected:
  void list(const std::vector<std::string>& objects) {
    writer.apply(Init{});
    for (const std::string& name : objects) writer.apply(InitApply<Thing>{key(name), Thing{name + "1", "digits"}});
    listed = writer.apply(InitDone{});
  }

  StoreWriter<Thing> writer{[](const Thing& thing) { return std::vector<std::string>{thing.job}; }};
  StoreReader<Thing> reader = writer.reader();
  std::vector<StoreChange<Thing>> listed;
};

TEST_F(StoreTest, IsNotReadyBeforeTheFirstList) {
  EXPECT_FALSE(reader.ready());
  writer.apply(Init{});
  writer.apply(InitApply<Thing>{key("a"), {"a1", "digits"}});
  EXPECT_FALSE(reader.ready());
  EXPECT_EQ(reader.get(key("a")), nullptr);
  EXPECT_EQ(names(writer.apply(InitDone{})), (std::vector<std::string>{"a:->a1"}));
  EXPECT_TRUE(reader.ready());
  EXPECT_EQ(reader.get(key("a"))->uid, "a1");
}

TEST_F(StoreTest, ReadersSeeTheOldStateUntilTheListIsComplete) {
  list({"a", "b"});
  writer.apply(Init{});
  writer.apply(InitApply<Thing>{key("c"), {"c1", "digits"}});
  EXPECT_EQ(reader.size(), 2u);
  EXPECT_NE(reader.get(key("a")), nullptr);
  writer.apply(InitDone{});
  EXPECT_EQ(reader.size(), 1u);
  EXPECT_EQ(reader.get(key("a")), nullptr);
}

TEST_F(StoreTest, AListTellsOfWhatVanishedMeanwhile) {
  list({"a", "b"});
  list({"b", "c"});
  EXPECT_EQ(names(listed), (std::vector<std::string>{"b:b1>b1", "c:->c1", "a:a1>-"}));
}

TEST_F(StoreTest, AListThatIsBegunAgainForgetsTheFirstHalf) {
  list({"a"});
  writer.apply(Init{});
  writer.apply(InitApply<Thing>{key("half"), {"h1", "digits"}});
  list({"a"});
  EXPECT_EQ(reader.get(key("half")), nullptr);
}

TEST_F(StoreTest, AnObjectThatCannotBeReadKeepsItsLastGoodState) {
  list({"a"});
  writer.apply(Init{});
  writer.apply(InitKeep{key("a")});
  writer.apply(InitKeep{key("never-seen")});
  EXPECT_EQ(names(writer.apply(InitDone{})), (std::vector<std::string>{"a:a1>a1"}));
}

TEST_F(StoreTest, ApplyAndDeleteTellBeforeAndAfter) {
  list({"a"});
  EXPECT_EQ(names(writer.apply(Apply<Thing>{key("a"), {"a2", "digits"}})), (std::vector<std::string>{"a:a1>a2"}));
  EXPECT_EQ(names(writer.apply(Apply<Thing>{key("b"), {"b1", "digits"}})), (std::vector<std::string>{"b:->b1"}));
  EXPECT_EQ(names(writer.apply(Delete<Thing>{key("a"), std::nullopt})), (std::vector<std::string>{"a:a2>-"}));
  EXPECT_EQ(reader.get(key("a")), nullptr);
}

TEST_F(StoreTest, ADeleteGivesTheFinalStateWhereThereIsOne) {
  list({"a"});
  EXPECT_EQ(names(writer.apply(Delete<Thing>{key("a"), Thing{"final", "digits"}})),
            (std::vector<std::string>{"a:final>-"}));
}

TEST_F(StoreTest, WhatWasHandedOutStaysAsItWas) {
  list({"a"});
  const std::shared_ptr<const Thing> before = reader.get(key("a"));
  writer.apply(Apply<Thing>{key("a"), {"a2", "digits"}});
  writer.apply(Delete<Thing>{key("a"), std::nullopt});
  EXPECT_EQ(before->uid, "a1");
}

TEST_F(StoreTest, GroupsFollowTheObjects) {
  list({"a", "b"});
  EXPECT_EQ(reader.group("digits").size(), 2u);
  writer.apply(Apply<Thing>{key("b"), {"b2", "other"}});
  EXPECT_EQ(reader.group("digits").size(), 1u);
  EXPECT_EQ(reader.group("other").front()->uid, "b2");
  writer.apply(Delete<Thing>{key("b"), Thing{"b2", "misleading"}});
  EXPECT_TRUE(reader.group("other").empty());
  list({"c"});
  EXPECT_EQ(reader.group("digits").size(), 1u);
  EXPECT_TRUE(reader.group("nobody").empty());
}

TEST_F(StoreTest, ReadersSurviveAMoveOfTheWriter) {
  list({"a"});
  StoreWriter<Thing> moved = std::move(writer);
  moved.apply(Apply<Thing>{key("b"), {"b1", "digits"}});
  EXPECT_EQ(reader.size(), 2u);
  EXPECT_EQ(reader.all().back()->uid, "b1");
}

}  // namespace
}  // namespace rekindle::op
