#include "operator/io/webhook_registration.h"

#include <gtest/gtest.h>

namespace rekindle::op {
namespace {

TEST(CaBundlePatch, PutsTheAuthorityIntoEveryWebhookOnce) {
  Json configuration{
      {"metadata", {{"resourceVersion", "7"}}},
      {"webhooks", Json::array({{{"name", "a"}, {"clientConfig", {{"caBundle", "b2xk"}}}}, {{"name", "b"}}})}};
  const std::optional<Json> patch = ca_bundle_patch(configuration, "new");
  ASSERT_TRUE(patch);
  EXPECT_EQ((*patch)["metadata"]["resourceVersion"], "7");
  for (const Json& webhook : (*patch)["webhooks"]) EXPECT_EQ(webhook["clientConfig"]["caBundle"], "bmV3");
  configuration.merge_patch(*patch);
  EXPECT_EQ(ca_bundle_patch(configuration, "new"), std::nullopt);
}

TEST(CaBundlePatch, OfSomethingElseThanAConfigurationIsNothing) {
  for (const Json& odd : {Json(), Json("text"), Json::array(), Json{{"webhooks", 7}}, Json{{"webhooks", {1, "x"}}}}) {
    EXPECT_EQ(ca_bundle_patch(odd, "new"), std::nullopt) << odd;
  }
  const Json odd_parts{{"webhooks", Json::array({{{"clientConfig", 7}}, {{"clientConfig", {{"caBundle", 7}}}}})}};
  EXPECT_TRUE(ca_bundle_patch(odd_parts, "new"));
}

}  // namespace
}  // namespace rekindle::op
