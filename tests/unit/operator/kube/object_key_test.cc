#include "operator/kube/object_key.h"

#include <gtest/gtest.h>

namespace rekindle::op {
namespace {

TEST(ObjectKey, ComesFromTheMetadata) {
  const Json pod = {{"metadata", {{"namespace", "team-a"}, {"name", "digits-worker-0"}}}};
  EXPECT_EQ(key_of(pod), (ObjectKey{"team-a", "digits-worker-0"}));
  EXPECT_EQ(to_text(*key_of(pod)), "team-a/digits-worker-0");
}

TEST(ObjectKey, OfAKindWithoutNamespacesIsItsName) {
  const Json node = {{"metadata", {{"name", "node-1"}}}};
  EXPECT_EQ(to_text(*key_of(node)), "node-1");
}

TEST(ObjectKey, NeedsAName) {
  EXPECT_FALSE(key_of(Json::object()));
  EXPECT_FALSE(key_of(Json("text")));
  EXPECT_FALSE(key_of(Json{{"metadata", {{"name", ""}}}}));
  EXPECT_FALSE(key_of(Json{{"metadata", {{"name", 7}}}}));
}

TEST(ObjectKey, IsOrderedByNamespaceAndThenName) {
  EXPECT_LT((ObjectKey{"a", "z"}), (ObjectKey{"b", "a"}));
  EXPECT_LT((ObjectKey{"a", "a"}), (ObjectKey{"a", "b"}));
}

}  // namespace
}  // namespace rekindle::op
