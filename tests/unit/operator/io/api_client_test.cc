#include "operator/io/api_client.h"

#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "common/base/format.h"
#include "common/system/clock.h"
#include "operator/kube/requests.h"
#include "tests/support/certificates.h"
#include "tests/support/fake_api_server.h"
#include "tests/support/temporary_folder.h"

namespace rekindle::op {
namespace {

using namespace std::chrono_literals;

const std::string kPodsOfTeamA = "/api/v1/namespaces/team-a/pods";

class ApiClientTest : public testing::Test {
 protected:
  // A client that finds the server through files as a pod has them.
  std::unique_ptr<ApiClient> in_pod(const FakeApiServer& server, ApiClientSettings settings = {}) {
    write_bytes(folder.at("token"), "token-1");
    write_bytes(folder.at("ca.crt"), authority.pem());
    write_bytes(folder.at("namespace"), "rekindle-system");
    auto credentials =
        Credentials::in_cluster({.folder = folder.path(), .host = "127.0.0.1", .port = std::to_string(server.port())});
    EXPECT_TRUE(credentials) << credentials.error().message;
    return std::make_unique<ApiClient>(std::move(*credentials), std::move(settings));
  }

  std::unique_ptr<ApiClient> by_kubeconfig(const std::string& cluster, const std::string& user = "{}") {
    write_bytes(folder.at("config"),
                format("current-context: x\ncontexts: [{{name: x, context: {{cluster: c, user: u}}}}]\nclusters: "
                       "[{{name: c, cluster: {}}}]\nusers: [{{name: u, user: {}}}]\n",
                       cluster, user));
    auto credentials = Credentials::from_kubeconfig({folder.at("config")});
    EXPECT_TRUE(credentials) << credentials.error().message;
    return std::make_unique<ApiClient>(std::move(*credentials));
  }

  static HttpRequest list_pods() { return list_request(kPods, {.namespace_name = "team-a"}, {}); }

  static Json pod(const std::string& name) { return {{"metadata", {{"namespace", "team-a"}, {"name", name}}}}; }

  FakeApiServer::Options with_tls(const std::string& token = {}) {
    return {.tls = authority.server({.ip = {"127.0.0.1"}}), .token = token};
  }

  TestAuthority authority;
  TemporaryFolder folder;
};

TEST_F(ApiClientTest, AsksOverTlsWithItsToken) {
  FakeApiServer server(with_tls("token-1"));
  server.put(kPodsOfTeamA, pod("a"));
  const auto client = in_pod(server, {.user_agent = "rekindle-operator/0.1"});
  const Result<HttpResponse> response = client->send(list_pods());
  ASSERT_TRUE(response) << response.error().message;
  const Result<ListPage> page = read_list_page(*response, "listing");
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_EQ(page->items.size(), 1u);
  EXPECT_EQ(server.requests(), (std::vector<std::string>{"GET /api/v1/namespaces/team-a/pods?limit=500"}));
  EXPECT_EQ(server.last_headers().value_of("User-Agent"), "rekindle-operator/0.1");
}

TEST_F(ApiClientTest, AServerOfAnotherAuthorityIsRefused) {
  FakeApiServer server({.tls = TestAuthority("a stranger").server({.ip = {"127.0.0.1"}})});
  const auto client = in_pod(server);
  const Result<HttpResponse> response = client->send(list_pods());
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, ErrorCode::refused);
  EXPECT_TRUE(server.requests().empty()) << "the token must not reach a stranger";
}

TEST_F(ApiClientTest, ARotatedTokenCostsNoCaller) {
  FakeApiServer server(with_tls("token-1"));
  server.put(kPodsOfTeamA, pod("a"));
  const auto client = in_pod(server);
  ASSERT_EQ(client->send(list_pods())->status, 200);
  write_bytes(folder.at("token"), "token-2");
  server.require_token("token-2");
  EXPECT_EQ(client->send(list_pods())->status, 200);
  EXPECT_EQ(client->counts().retries, 1u);
}

TEST_F(ApiClientTest, ARotatedTokenCostsNoWatch) {
  FakeApiServer server(with_tls("token-1"));
  server.put(kPodsOfTeamA, pod("a"));
  const auto client = in_pod(server);
  ASSERT_EQ(client->send(list_pods())->status, 200);
  write_bytes(folder.at("token"), "token-2");
  server.require_token("token-2");
  std::string heard;
  const TransportSink sink{.on_bytes = [&](std::string_view bytes) { return heard += bytes, true; }, .on_quiet = {}};
  EXPECT_EQ(client->stream(list_pods(), sink, {})->status, 200);
  EXPECT_NE(heard, "");
}

TEST_F(ApiClientTest, ATokenThatIsRefusedForGoodIsAskedForOnce) {
  FakeApiServer server(with_tls("another"));
  const auto client = in_pod(server);
  EXPECT_EQ(client->send(list_pods())->status, 401);
  EXPECT_EQ(server.requests().size(), 1u);
}

TEST_F(ApiClientTest, RetryAfterIsObeyedAndTheRequestRepeated) {
  FakeApiServer server(with_tls());
  server.put(kPodsOfTeamA, pod("a"));
  const auto client = in_pod(server);
  server.answer_next({.status = 429, .headers = {{"Retry-After", "1"}}});
  EXPECT_EQ(client->send(list_pods())->status, 200);
  EXPECT_EQ(client->counts().retries, 1u);
  EXPECT_EQ(client->counts().requests, 2u);
}

TEST_F(ApiClientTest, ARetryAfterBeyondItsPatienceIsTheCallersBusiness) {
  FakeApiServer server(with_tls());
  const auto client = in_pod(server, {.retry_wait_max = 5s});
  server.answer_next({.status = 503, .headers = {{"Retry-After", "6"}}});
  EXPECT_EQ(client->send(list_pods())->status, 503);
  EXPECT_EQ(server.requests().size(), 1u);
}

TEST_F(ApiClientTest, ARefusalByABudgetIsAnAnswerAndNotRepeated) {
  FakeApiServer server(with_tls());
  const auto client = in_pod(server);
  server.answer_next({.status = 429, .body = R"({"kind":"Status","code":429,"reason":"TooManyRequests"})"});
  EXPECT_EQ(client->send(*delete_request(kPods, {"team-a", "a"}, DeleteParams("uid")))->status, 429);
  EXPECT_EQ(server.requests().size(), 1u);
}

// Zero would be a request after the other for as long as the server has no time.
TEST_F(ApiClientTest, ARetryAfterOfNothingIsTakenForASecond) {
  FakeApiServer server(with_tls());
  const auto client = in_pod(server, {.retry_wait_max = 999ms});
  server.answer_next({.status = 429, .headers = {{"Retry-After", "0"}}});
  EXPECT_EQ(client->send(list_pods())->status, 429);
  EXPECT_EQ(server.requests().size(), 1u) << "a second is more than it may wait";
}

TEST_F(ApiClientTest, ARequestAboveItsRateWaitsForItsTurn) {
  FakeApiServer server(with_tls());
  const auto client = in_pod(server, {.requests_per_second = 1.0 / 3600, .burst = 1});
  ASSERT_TRUE(client->send(list_pods()));
  std::stop_source stopped;
  stopped.request_stop();
  const Result<HttpResponse> response = client->send(list_pods(), stopped.get_token());
  ASSERT_FALSE(response);
  EXPECT_TRUE(is_stopped(response.error()));
  EXPECT_EQ(client->counts().errors, 0u) << "it has not been tried";
}

// A watch is open for minutes.
TEST_F(ApiClientTest, TheTimeForAWholeCallIsNoneOfAStreams) {
  FakeApiServer server(with_tls());
  server.put(kPodsOfTeamA, pod("a"));
  const auto client = in_pod(server, {.limits = {.total = 1ns}});
  const TransportSink sink{.on_bytes = [](std::string_view) { return true; }, .on_quiet = {}};
  const Result<HttpResponse> response = client->stream(list_pods(), sink, {});
  EXPECT_TRUE(response) << response.error().message;
}

TEST_F(ApiClientTest, ARotatedAuthorityEndsTheTrustInTheOneBefore) {
  FakeApiServer server(with_tls());
  server.put(kPodsOfTeamA, pod("a"));
  const auto client = in_pod(server);
  ASSERT_EQ(client->send(list_pods())->status, 200);
  write_bytes(folder.at("ca.crt"), TestAuthority("the next").pem());
  ASSERT_TRUE(client->credentials().endpoint(monotonic_now() + 2min)) << "it looks at the file again";
  const Result<HttpResponse> response = client->send(list_pods());
  ASSERT_FALSE(response) << "also not over the connection that is open";
  EXPECT_EQ(response.error().code, ErrorCode::refused);
}

TEST_F(ApiClientTest, StoppingEndsTheWaitForRetryAfter) {
  FakeApiServer server(with_tls());
  const auto client = in_pod(server, {.retry_wait_max = 1h});
  server.answer_next({.status = 429, .headers = {{"Retry-After", "1000"}}});
  std::stop_source stop;
  std::jthread stopper([&] {
    server.wait_until([](const FakeApiServer& seen) { return seen.requests().size() == 1; });
    stop.request_stop();
  });
  const Result<HttpResponse> response = client->send(list_pods(), stop.get_token());
  ASSERT_FALSE(response);
  EXPECT_TRUE(is_stopped(response.error()));
}

TEST_F(ApiClientTest, ManyThreadsShareIt) {
  FakeApiServer server(with_tls("token-1"));
  server.put(kPodsOfTeamA, pod("a"));
  const auto client = in_pod(server, {.requests_per_second = 0});
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int request = 0; request < 25; ++request) {
          const Result<HttpResponse> response = client->send(list_pods());
          EXPECT_TRUE(response && response->status == 200);
        }
      });
    }
  }
  EXPECT_EQ(client->counts().requests, 100u);
}

TEST_F(ApiClientTest, AKubeconfigWithACertificateIsEnough) {
  FakeApiServer::Options options = with_tls();
  options.client_authorities_pem = authority.pem();
  FakeApiServer server(std::move(options));
  server.put(kPodsOfTeamA, pod("a"));
  const TlsKeyPair me = authority.client("https://me.example");
  write_bytes(folder.at("ca.crt"), authority.pem());
  write_bytes(folder.at("me.crt"), me.certificate_pem);
  write_bytes(folder.at("me.key"), me.private_key_pem);
  const std::string cluster =
      format("{{server: 'https://127.0.0.1:{}', certificate-authority: ca.crt}}", server.port());
  EXPECT_EQ(by_kubeconfig(cluster, "{client-certificate: me.crt, client-key: me.key}")->send(list_pods())->status, 200);
  EXPECT_FALSE(by_kubeconfig(cluster)->send(list_pods()));
}

TEST_F(ApiClientTest, AServerNameAndAPathOfTheKubeconfigAreUsed) {
  FakeApiServer server({.tls = authority.server({.dns = {"kubernetes.internal"}})});
  write_bytes(folder.at("ca.crt"), authority.pem());
  const auto client =
      by_kubeconfig(format("{{server: 'https://127.0.0.1:{}/k8s/clusters/c-1', certificate-authority: ca.crt, "
                           "tls-server-name: kubernetes.internal}}",
                           server.port()));
  EXPECT_EQ(client->send({.path = "/version"})->status, 404);
  EXPECT_EQ(server.requests(), (std::vector<std::string>{"GET /k8s/clusters/c-1/version"}));
}

TEST_F(ApiClientTest, AskGivesTheObjectOrTheReason) {
  FakeApiServer server(with_tls());
  const auto client = in_pod(server);
  server.answer_next({.status = 200, .body = R"({"major":"1"})"});
  EXPECT_EQ(call_api(*client, HttpRequest{.path = "/version"}, "asking for the version"), (Json{{"major", "1"}}));
  const Result<Json> missing = call_api(*client, get_request(kPods, {"team-a", "x"}), "getting pod team-a/x");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::not_found);
  EXPECT_TRUE(missing.error().message.starts_with("getting pod team-a/x: "));
}

TEST_F(ApiClientTest, AnUnreachableServerIsUnavailable) {
  std::unique_ptr<ApiClient> client;
  {
    FakeApiServer server(with_tls());
    client = in_pod(server);
  }
  const Result<HttpResponse> response = client->send(list_pods());
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, ErrorCode::unavailable);
  EXPECT_EQ(client->counts().errors, 1u);
}

}  // namespace
}  // namespace rekindle::op
