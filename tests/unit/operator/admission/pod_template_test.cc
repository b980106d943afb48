#include "operator/admission/pod_template.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace rekindle::op {
namespace {

using Json = nlohmann::json;

TEST(LiesIn, ComparesWholeParts) {
  EXPECT_TRUE(lies_in("/data/a", "/data"));
  EXPECT_TRUE(lies_in("/data/", "/data"));
  EXPECT_TRUE(lies_in("/data", "/"));
  EXPECT_FALSE(lies_in("/database", "/data"));
  EXPECT_FALSE(lies_in("/", "/data"));
}

TEST(MountFor, TakesTheDeepestWritableOne) {
  const Json spec = Json::parse(
      R"({"containers":[{"volumeMounts":[{"name":"a","mountPath":"/data"},{"name":"b","mountPath":"/data/deep"},
      {"name":"c","mountPath":"/data/deep/er","readOnly":true}]}]})");
  ASSERT_NE(mount_for(spec, "/data/deep/er/x"), nullptr);
  EXPECT_EQ(text_of(*mount_for(spec, "/data/deep/er/x"), "name"), "b");
  EXPECT_EQ(text_of(*mount_for(spec, "/data/x"), "name"), "a");
  EXPECT_EQ(mount_for(spec, "/elsewhere"), nullptr);
}

TEST(FaultOfPath, KnowsWhatCannotBeUsed) {
  EXPECT_FALSE(fault_of_path("/data/run..7/x"));
  for (const char* path :
       {"", "data", "/", "/..", "/a/..", "/a/../b", "/rekindle", "/rekindle/run", "/rekindle/tls/x"}) {
    EXPECT_TRUE(fault_of_path(path)) << path;
  }
  EXPECT_FALSE(fault_of_path("/rekindle/checkpoints"));
}

}  // namespace
}  // namespace rekindle::op
