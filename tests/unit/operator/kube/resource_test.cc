#include "operator/kube/resource.h"

#include <gtest/gtest.h>

namespace rekindle::op {
namespace {

TEST(Resource, CoreKindsLiveUnderApi) {
  EXPECT_EQ(api_version(kPods), "v1");
  EXPECT_EQ(collection_path(kPods, "team-a"), "/api/v1/namespaces/team-a/pods");
  EXPECT_EQ(collection_path(kPods, ""), "/api/v1/pods");
}

TEST(Resource, GroupsLiveUnderApis) {
  EXPECT_EQ(api_version(kJobs), "batch.volcano.sh/v1alpha1");
  EXPECT_EQ(collection_path(kJobs, "team-a"), "/apis/batch.volcano.sh/v1alpha1/namespaces/team-a/jobs");
  EXPECT_EQ(collection_path(kBreakpoints, ""), "/apis/rekindle.dev/v1alpha1/breakpoints");
}

TEST(Resource, KindsWithoutNamespacesIgnoreOne) {
  EXPECT_EQ(collection_path(kMutatingWebhooks, "team-a"),
            "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations");
}

TEST(Resource, ANameFromOutsideCannotLeaveItsPlace) {
  EXPECT_EQ(collection_path(kPods, "a/../../b?x"), "/api/v1/namespaces/a%2F..%2F..%2Fb%3Fx/pods");
}

}  // namespace
}  // namespace rekindle::op
