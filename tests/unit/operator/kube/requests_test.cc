#include "operator/kube/requests.h"

#include <gtest/gtest.h>

#include "common/base/format.h"

namespace rekindle::op {
namespace {

using namespace std::chrono_literals;

// What goes over the wire, in one text: easy to read, and every byte counts.
std::string wire(const HttpRequest& request) {
  std::string text = format("{} {}\n", request.method, request_target(request));
  for (const HttpHeader& header : request.headers) text += format("{}: {}\n", header.name, header.value);
  return text + request.body;
}

std::string wire(const Result<HttpRequest>& request) { return request ? wire(*request) : request.error().message; }

TEST(Requests, FirstPageOfAListNamesItsSelection) {
  EXPECT_EQ(wire(list_request(kPods, {.namespace_name = "team-a", .label_selector = "volcano.sh/job-name=digits"}, {})),
            "GET /api/v1/namespaces/team-a/pods?labelSelector=volcano.sh%2Fjob-name%3Ddigits&limit=500\n"
            "Accept: application/json\n");
}

TEST(Requests, NextPageGivesTheTokenAndNoVersion) {
  EXPECT_EQ(wire(list_request(kJobs, {}, {.limit = 2, .continue_token = "abc==", .resource_version = "7"})),
            "GET /apis/batch.volcano.sh/v1alpha1/jobs?limit=2&continue=abc%3D%3D\n"
            "Accept: application/json\n");
}

TEST(Requests, ListInOnePageHasNoLimit) {
  EXPECT_EQ(wire(list_request(kMutatingWebhooks, {.field_selector = "metadata.name=n1"},
                              {.limit = 0, .resource_version = "0"})),
            "GET "
            "/apis/admissionregistration.k8s.io/v1/"
            "mutatingwebhookconfigurations?fieldSelector=metadata.name%3Dn1&resourceVersion=0\n"
            "Accept: application/json\n");
}

TEST(Requests, MetadataOnlyAsksForPartialObjects) {
  EXPECT_EQ(wire(list_request(kSecrets, {.namespace_name = "a", .metadata_only = true}, {})),
            "GET /api/v1/namespaces/a/secrets?limit=500\n"
            "Accept: application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json\n");
}

TEST(Requests, WatchResumesFromItsVersionWithBookmarks) {
  EXPECT_EQ(wire(watch_request(kPods, {.label_selector = "a=b"}, {.resource_version = "4711", .timeout = 300s})),
            "GET /api/v1/pods?labelSelector=a%3Db&watch=true&allowWatchBookmarks=true&resourceVersion=4711"
            "&timeoutSeconds=300\n"
            "Accept: application/json\n");
}

TEST(Requests, GetNamesOneObject) {
  EXPECT_EQ(wire(get_request(kBreakpoints, {"team-a", "digits-1-ab"})),
            "GET /apis/rekindle.dev/v1alpha1/namespaces/team-a/breakpoints/digits-1-ab\n"
            "Accept: application/json\n");
}

TEST(Requests, CreatePostsTheObject) {
  EXPECT_EQ(wire(create_request(kSecrets, "a", {{"metadata", {{"name", "c"}}}})),
            "POST /api/v1/namespaces/a/secrets?fieldManager=rekindle-operator\n"
            "Accept: application/json\n"
            "Content-Type: application/json\n"
            R"({"metadata":{"name":"c"}})");
}

TEST(Requests, MergePatchOfAStatusGoesToTheSubresource) {
  EXPECT_EQ(wire(merge_patch_request(kBreakpoints, {"a", "b"}, {{"status", {{"step", 184}}}}, Subresource::status)),
            "PATCH /apis/rekindle.dev/v1alpha1/namespaces/a/breakpoints/b/status?fieldManager=rekindle-operator\n"
            "Accept: application/json\n"
            "Content-Type: application/merge-patch+json\n"
            R"({"status":{"step":184}})");
}

TEST(Requests, DeleteCarriesTheUidAsPrecondition) {
  EXPECT_EQ(wire(delete_request(kPods, {"a", "p"}, DeleteParams("uid-1"))),
            "DELETE /api/v1/namespaces/a/pods/p\n"
            "Accept: application/json\n"
            "Content-Type: application/json\n"
            R"({"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"uid":"uid-1"},)"
            R"("propagationPolicy":"Background"})");
}

// What outside input can make of a name: every request says so instead of ending the process.
TEST(Requests, WithoutANameOrNamespaceAreRefused) {
  const ObjectKey wrong[] = {{"team-a", ""}, {"", "p"}, {"", ""}, {"team-a", ".."}, {"..", "p"}, {"team-a", "."}};
  for (const ObjectKey& key : wrong) {
    const Result<HttpRequest> requests[] = {
        get_request(kPods, key),
        merge_patch_request(kPods, key, Json::object()),
        delete_request(kPods, key, DeleteParams("uid-1")),
    };
    for (const Result<HttpRequest>& request : requests) {
      ASSERT_FALSE(request) << to_text(key) << " " << request->path;
      EXPECT_EQ(request.error().code, ErrorCode::invalid_input);
      EXPECT_EQ(request.error().retry, Retry::no);
    }
  }
}

TEST(Requests, ACreateNeedsANamespaceExactlyWhereTheKindHasOne) {
  EXPECT_FALSE(create_request(kPods, "", Json::object()));
  EXPECT_FALSE(create_request(kMutatingWebhooks, "team-a", Json::object()));
  EXPECT_TRUE(create_request(kMutatingWebhooks, "", Json::object()));
  EXPECT_FALSE(get_request(kMutatingWebhooks, {"team-a", "n1"}));
}

TEST(Requests, ADeleteWithoutAUidIsRefused) {
  const Result<HttpRequest> request = delete_request(kPods, {"a", "p"}, DeleteParams(""));
  ASSERT_FALSE(request);
  EXPECT_NE(request.error().message.find("uid"), std::string::npos) << request.error().message;
}

}  // namespace
}  // namespace rekindle::op
