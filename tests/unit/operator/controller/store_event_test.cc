#include "operator/controller/store_event.h"

#include <gtest/gtest.h>

#include "common/base/format.h"

namespace rekindle::op {
namespace {

Result<int> decode(const Json& object) {
  if (!object.is_number_integer()) return fail(ErrorCode::invalid_input, "no number");
  return object.get<int>();
}

class ConvertTest : public testing::Test {
 protected:
  std::optional<StoreEvent<int>> converted(StoreEvent<Json> event) {
    return convert<int>(std::move(event), decode, [this](const ObjectKey& key, const Error& error) {
      unreadable += format("{}: {}", to_text(key), error.message);
    });
  }
  std::string unreadable;
};

TEST_F(ConvertTest, DecodesWhatCarriesAnObject) {
  EXPECT_EQ(converted(InitApply<Json>{{"a", "b"}, Json(1)}), StoreEvent<int>(InitApply<int>{{"a", "b"}, 1}));
  EXPECT_EQ(converted(Apply<Json>{{"a", "b"}, Json(2)}), StoreEvent<int>(Apply<int>{{"a", "b"}, 2}));
  EXPECT_EQ(converted(Delete<Json>{{"a", "b"}, Json(3)}), StoreEvent<int>(Delete<int>{{"a", "b"}, 3}));
  EXPECT_EQ(converted(Init{}), StoreEvent<int>(Init{}));
  EXPECT_EQ(converted(InitDone{}), StoreEvent<int>(InitDone{}));
  EXPECT_EQ(unreadable, "");
}

TEST_F(ConvertTest, AnUnreadableObjectOfAListIsKeptAndReported) {
  EXPECT_EQ(converted(InitApply<Json>{{"a", "b"}, Json("x")}), StoreEvent<int>(InitKeep{{"a", "b"}}));
  EXPECT_EQ(unreadable, "a/b: no number");
}

TEST_F(ConvertTest, AnUnreadableChangeLeavesTheLastGoodState) {
  EXPECT_EQ(converted(Apply<Json>{{"a", "b"}, Json("x")}), std::nullopt);
  EXPECT_EQ(unreadable, "a/b: no number");
}

TEST_F(ConvertTest, ADeleteCountsEvenWhenItsLastStateCannotBeRead) {
  EXPECT_EQ(converted(Delete<Json>{{"a", "b"}, Json("x")}), StoreEvent<int>(Delete<int>{{"a", "b"}, std::nullopt}));
}

}  // namespace
}  // namespace rekindle::op
