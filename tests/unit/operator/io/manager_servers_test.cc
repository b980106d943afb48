// What the operator's process shows to others while it works: readiness, certificates, and what it
// asks the API server for.
#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>

#include "common/net/http_client.h"
#include "operator/io/manager.h"
#include "operator/model/names.h"
#include "tests/support/certificates.h"
#include "tests/support/recorded_transport.h"

namespace rekindle::op {
namespace {

using namespace std::chrono_literals;

const std::string kGatedPodPath = "/api/v1/namespaces/team-a/pods/digits-worker-0";

// One protected job whose pod came long ago, when no webhook answered. Watches show nothing.
class OneJobApiServer final : public KubeTransport {
 public:
  Result<HttpResponse> send(const HttpRequest& request, std::stop_token) override {
    note(request);
    if (request.method != "GET") return HttpResponse{.status = 201, .body = "{}"};
    if (request.path == kGatedPodPath) return HttpResponse{.status = 200, .body = dump_json(gated_pod())};
    Json items = Json::array();
    if (request.path.ends_with("/jobs")) items.push_back(job());
    if (request.path.ends_with("/pods")) items.push_back(gated_pod());
    return HttpResponse{
        .status = 200,
        .body = dump_json({{"kind", "List"}, {"metadata", {{"resourceVersion", "7"}}}, {"items", items}})};
  }

  Result<HttpResponse> stream(const HttpRequest& request, const TransportSink&, std::stop_token stop) override {
    note(request);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, stop, [] { return false; });
    return HttpResponse{.status = 200};
  }

  // Whether somebody asks that, in the end.
  bool wait_for(const std::string& method, const std::string& path_end) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 60s, [&] {
      return std::ranges::any_of(
          requests_, [&](const HttpRequest& each) { return each.method == method && each.path.ends_with(path_end); });
    });
  }

  // With their query, without further pages and versions.
  std::vector<std::string> selections_of(const std::string& path) {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> found;
    for (const HttpRequest& each : requests_) {
      if (each.path != path) continue;
      const auto selector = std::ranges::find(each.query, "labelSelector", &decltype(each.query)::value_type::first);
      found.push_back(selector == each.query.end() ? "everything" : selector->second);
    }
    return found;
  }

 private:
  void note(const HttpRequest& request) {
    const std::lock_guard lock(mutex_);
    requests_.push_back(request);
    changed_.notify_all();
  }

  static Json job() {
    return {
        {"metadata",
         {{"namespace", "team-a"},
          {"name", "digits"},
          {"uid", "j1"},
          {"resourceVersion", "5"},
          {"labels", {{names::kSchedulingLabel, names::kSchedulingGrace}}}}},
        {"spec",
         {{"tasks", Json::array({{{"name", "worker"},
                                  {"replicas", 1},
                                  {"template", {{"metadata", {{"labels", {{names::kProtectedLabel, "true"}}}}}}}}})}}},
        {"status", {{"state", {{"phase", "Pending"}}}}}};
  }

  static Json gated_pod() {
    return {{"metadata",
             {{"namespace", "team-a"},
              {"name", "digits-worker-0"},
              {"uid", "u0"},
              {"resourceVersion", "6"},
              {"creationTimestamp", "2026-01-01T10:00:00Z"},
              {"labels", {{names::kProtectedLabel, "true"}}},
              {"annotations", {{names::kTaskSpecAnnotation, "worker"}, {names::kTaskIndexAnnotation, "0"}}},
              {"ownerReferences", Json::array({{{"apiVersion", names::kVolcanoApiVersion},
                                                {"kind", "Job"},
                                                {"name", "digits"},
                                                {"uid", "j1"},
                                                {"controller", true}}})}}},
            {"spec", {{"schedulingGates", Json::array({{{"name", names::kInjectionGate}}})}}}};
  }

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<HttpRequest> requests_;  // guarded by mutex_
};

class ManagerServersTest : public testing::Test {
 protected:
  ManagerServersTest() {
    RecordedTransport secrets;
    secrets.prepare("POST /api/v1/namespaces/rekindle-system/secrets", 201, Json::object());
    certificates = CertificateStore::open(secrets, "rekindle-system", wall_seconds());
    Result<std::unique_ptr<Manager>> started =
        Manager::start(api, *certificates, tls_of(first),
                       {.ports = {.admission = 0, .sidecars = 0, .metrics = 0, .health = 0},
                        .server_limits = {.address = "127.0.0.1"},
                        .instance = "test"});
    EXPECT_TRUE(started) << started.error().message;
    manager = std::move(*started);
  }

  static ServerTls tls_of(const TestAuthority& authority) {
    const TlsKeyPair own = authority.server({.ip = {"127.0.0.1"}});
    return {.admission = server_context(own), .sidecars = server_context(own, authority.pem())};
  }

  int readiness() {
    return HttpClient({.host = "127.0.0.1", .port = manager->ports().health}).send({.path = "/readyz"})->status;
  }

  // What a client hears that trusts this authority alone.
  static Result<HttpResponse> ask(std::uint16_t port, const TestAuthority& authority) {
    const auto tls = client_context(authority.pem(), authority.client("rekindle://team-a/j1"));
    return HttpClient({.host = "127.0.0.1", .port = port, .tls = tls}).send({.path = "/"});
  }

  TestAuthority first{"first authority"};
  OneJobApiServer api;
  Result<CertificateStore> certificates = fail(ErrorCode::internal, "not opened yet");
  std::unique_ptr<Manager> manager;
};

TEST_F(ManagerServersTest, IsReadyOnceItsWebhooksAreRegistered) {
  ASSERT_TRUE(api.wait_for("POST", "/secrets")) << "its stores are filled";
  EXPECT_EQ(readiness(), 503);
  manager->webhooks_registered();
  EXPECT_EQ(readiness(), 200);
}

TEST_F(ManagerServersTest, APodThatTheWebhookMissedIsLookedAfterOnceItIsRegistered) {
  manager->webhooks_registered();
  EXPECT_TRUE(api.wait_for("DELETE", "/pods/digits-worker-0"));
}

TEST_F(ManagerServersTest, BothPortsServeTheCertificateThatReplacesTheFirst) {
  const TestAuthority second("second authority");
  manager->replace_tls(tls_of(second));
  for (const std::uint16_t port : {manager->ports().admission, manager->ports().sidecars}) {
    const Result<HttpResponse> response = ask(port, second);
    ASSERT_TRUE(response) << response.error().message;
    EXPECT_EQ(response->status, 404) << "it is served, and there is nothing at /";
    EXPECT_FALSE(ask(port, first));
  }
}

// A cluster has many more pods than those that are protected.
TEST_F(ManagerServersTest, OnlyProtectedPodsAreListedAndWatched) {
  ASSERT_TRUE(api.wait_for("POST", "/secrets")) << "its stores are filled";
  const std::vector<std::string> selections = api.selections_of("/api/v1/pods");
  ASSERT_FALSE(selections.empty());
  for (const std::string& selection : selections) EXPECT_EQ(selection, "rekindle.dev/protected=true");
}

}  // namespace
}  // namespace rekindle::op
