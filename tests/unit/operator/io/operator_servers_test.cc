// The operator's servers on loopback, with everybody before them whom a cluster may send.
#include "operator/io/operator_servers.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "common/base/base64.h"
#include "common/net/http_client.h"
#include "common/net/socket.h"
#include "common/system/clock.h"
#include "operator/model/job.h"
#include "operator/model/names.h"
#include "tests/support/certificates.h"
#include "tests/support/recorded_transport.h"

namespace rekindle::op {
namespace {

using namespace std::chrono_literals;

// A connection on which so much was said and no more.
FileDescriptor half_said(std::uint16_t port, std::string_view bytes) {
  FileDescriptor descriptor = connect_to("127.0.0.1", port, monotonic_now() + 10s, -1).value();
  EXPECT_EQ(send(descriptor.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), std::ssize(bytes));
  return descriptor;
}

std::string review_of(const Json& pod, const std::string& namespace_name = "team-a") {
  return dump_json(
      {{"kind", "AdmissionReview"},
       {"apiVersion", "admission.k8s.io/v1"},
       {"request", {{"uid", "r1"}, {"operation", "CREATE"}, {"namespace", namespace_name}, {"object", pod}}}});
}

Json pod_of(const Json& owner) {
  return {{"metadata",
           {{"name", "p"}, {"labels", {{names::kProtectedLabel, "true"}}}, {"ownerReferences", Json::array({owner})}}},
          {"spec", {{"containers", Json::array({{{"name", "main"}}})}}}};
}

Json owner_named(const Json& name) {
  return {
      {"apiVersion", names::kVolcanoApiVersion}, {"kind", "Job"}, {"name", name}, {"uid", "x"}, {"controller", true}};
}

// A job with one worker, whose checkpoints go to that claim.
Json job_with(const std::string& uid, const std::string& claim) {
  return {
      {"metadata",
       {{"namespace", "team-a"},
        {"name", "digits"},
        {"uid", uid},
        {"labels", {{names::kSchedulingLabel, names::kSchedulingGrace}}},
        {"annotations", {{names::kClaimAnnotation, claim}}}}},
      {"spec",
       {{"tasks", Json::array({{{"name", "worker"},
                                {"replicas", 1},
                                {"template", {{"metadata", {{"labels", {{names::kProtectedLabel, "true"}}}}}}}}})}}}};
}

// Its worker as Volcano makes it.
Json worker_of(const std::string& job_uid) {
  Json owner = owner_named("digits");
  owner["uid"] = job_uid;
  Json pod = pod_of(owner);
  pod["metadata"]["annotations"] = {{names::kTaskSpecAnnotation, "worker"}, {names::kTaskIndexAnnotation, "0"}};
  return pod;
}

class OperatorServersTest : public testing::Test {
 protected:
  // Nobody's time is ever over, and there are few workers.
  void start(OperatorServerLimits limits = {.head = 1h, .probe_head = 1h, .admission_workers = 2, .probe_workers = 1}) {
    start(limits, server_context(own), server_context(own, authority.pem()));
  }

  // For what is the same with TLS and without.
  void start_in_plain_text(const OperatorServerLimits& limits) { start(limits, nullptr, nullptr); }

  void start(OperatorServerLimits limits, std::shared_ptr<const TlsServerContext> admission_tls,
             std::shared_ptr<const TlsServerContext> sidecar_tls) {
    limits.address = "127.0.0.1";
    auto started = OperatorServers::start(
        {.admission = 0, .sidecars = 0, .metrics = 0, .health = 0}, std::move(admission_tls), std::move(sidecar_tls),
        {}, jobs, transport, metrics, mailbox, {.alive = [] { return true; }, .ready = [] { return false; }}, limits);
    ASSERT_TRUE(started) << started.error().message;
    servers = std::move(*started);
  }

  int status_of(std::uint16_t port, const std::string& path) {
    return HttpClient({.host = "127.0.0.1", .port = port}).send({.path = path})->status;
  }

  HttpResponse answer_pod(const Json& pod, const std::string& namespace_name = "team-a") {
    return answer_admission({.method = "POST", .path = "/admission/pod", .body = review_of(pod, namespace_name)}, {},
                            reader, metrics);
  }

  TestAuthority authority;
  TlsKeyPair own = authority.server({.ip = {"127.0.0.1"}});
  JobCache jobs;
  RecordedTransport transport;
  JobReader reader{jobs, transport};
  Metrics metrics;
  Mailbox<OperatorInput> mailbox{16};
  std::unique_ptr<OperatorServers> servers;
};

TEST_F(OperatorServersTest, HealthAndReadinessAreToldApart) {
  start();
  EXPECT_EQ(status_of(servers->ports().health, "/healthz"), 200);
  EXPECT_EQ(status_of(servers->ports().health, "/readyz"), 503);
  EXPECT_EQ(status_of(servers->ports().health, "/"), 404);
  EXPECT_EQ(status_of(servers->ports().metrics, "/metrics"), 200);
}

TEST_F(OperatorServersTest, ProbesAreAnsweredHoweverManyStrangersAreSlow) {
  start();
  std::vector<FileDescriptor> slow;
  for (const char* part : {"G", "GET /healthz HTTP/1.1\r\nHost: h\r\n",
                           "POST /healthz HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"}) {
    for (int i = 0; i < 50; ++i) slow.push_back(half_said(servers->ports().health, part));
    EXPECT_EQ(status_of(servers->ports().health, "/healthz"), 200) << part;
  }
}

TEST_F(OperatorServersTest, AdmissionIsAnsweredHoweverManyHandshakesHang) {
  start();
  std::vector<FileDescriptor> slow;
  for (int i = 0; i < 40; ++i) slow.push_back(half_said(servers->ports().admission, "\x16"));
  HttpClient client({.host = "127.0.0.1", .port = servers->ports().admission, .tls = client_context(authority.pem())});
  const Result<HttpResponse> response =
      client.send({.method = "POST", .path = "/admission/pod", .body = review_of(Json::object())});
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->status, 200);
}

TEST_F(OperatorServersTest, AdmissionHasNoMoreConnectionsThanItsLimit) {
  start_in_plain_text({.head = 1h, .admission_connections = 1});
  const FileDescriptor silent = half_said(servers->ports().admission, "");
  EXPECT_EQ(status_of(servers->ports().admission, "/"), 404);
  char byte = 0;
  EXPECT_EQ(recv(silent.get(), &byte, 1, MSG_DONTWAIT), 0) << "it gave way to the one that was served";
}

// There are thousands of sidecars, and a report is small.
TEST_F(OperatorServersTest, ASidecarThatSendsMoreThanAMegabyteIsRefusedBeforeItHasSentIt) {
  start_in_plain_text({.head = 1h});
  const std::string head = "POST /v1/sync HTTP/1.1\r\nHost: h\r\nContent-Length: 1048577\r\n\r\n";
  const FileDescriptor talker = half_said(servers->ports().sidecars, head);
  ASSERT_EQ(wait_for(talker.get(), false, monotonic_now() + 60s, -1).value(), Readiness::ready);
  std::string answer(32, '\0');
  const ssize_t count = recv(talker.get(), answer.data(), answer.size(), 0);
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 413 ")) << count << ": " << answer;
}

// Anybody may make such a pod; what it names can be read nowhere.
TEST_F(OperatorServersTest, AnOwnerWithAnOddNameIsAdmittedWithAWarningAndAskedNobodyAbout) {
  for (const Json& name : {Json(""), Json(nullptr), Json("."), Json("..")}) {
    const HttpResponse response = answer_pod(pod_of(owner_named(name)));
    EXPECT_EQ(response.status, 200) << name;
    const Json answer = parse_json(response.body, "answer").value()["response"];
    EXPECT_TRUE(answer["allowed"].get<bool>()) << name;
    EXPECT_TRUE(answer.contains("warnings")) << name;
  }
  EXPECT_EQ(transport.requests(), std::vector<std::string>{});
}

// The job was deleted and made anew, and the watch is late.
TEST_F(OperatorServersTest, APodIsAdmittedByItsOwnJobWhileAnOlderOneOfTheNameIsKnown) {
  jobs.put({"team-a", "digits"}, std::make_shared<Job>(*job_from_json(job_with("old", "claim-of-old"))));
  transport.prepare("GET /apis/batch.volcano.sh/v1alpha1/namespaces/team-a/jobs/digits", 200,
                    job_with("new", "claim-of-new"));
  const HttpResponse response = answer_pod(worker_of("new"));
  const Json answer = parse_json(response.body, "answer").value()["response"];
  ASSERT_TRUE(answer.contains("patch")) << answer;
  const std::string patch = base64_decode(answer["patch"].get<std::string>()).value();
  EXPECT_TRUE(patch.contains("claim-of-new")) << patch;
}

TEST_F(OperatorServersTest, AReviewWithoutANamespaceIsAnsweredToo) {
  EXPECT_EQ(answer_pod(pod_of(owner_named("digits")), "").status, 200);
  EXPECT_EQ(transport.requests(), std::vector<std::string>{});
}

// Holds every call until the test lets them go.
class HeldTransport final : public KubeTransport {
 public:
  Result<HttpResponse> send(const HttpRequest&, std::stop_token) override {
    std::unique_lock lock(mutex_);
    ++calls_;
    changed_.notify_all();
    changed_.wait(lock, [&] { return let_go_; });
    return HttpResponse{.status = 200, .body = dump_json(job_with("x", "checkpoints"))};
  }
  Result<HttpResponse> stream(const HttpRequest& request, const TransportSink&, std::stop_token stop) override {
    return send(request, std::move(stop));
  }

  void wait_for_calls(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return calls_ >= count; });
  }
  void let_go() {
    const std::lock_guard lock(mutex_);
    let_go_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int calls_ = 0;        // guarded by mutex_
  bool let_go_ = false;  // guarded by mutex_
};

// Whoever asks about Jobs that there are not holds workers and uses up the rate of recoveries.
TEST(JobReader, ReadsOnlyAFewJobsAtOnceAndLetsNobodyWait) {
  JobCache jobs;
  HeldTransport transport;
  JobReader reader(jobs, transport);
  const PodOwner owner{"team-a", "digits", "x"};
  {
    std::vector<std::jthread> strangers;
    for (int i = 0; i < JobReader::kReadsMax; ++i) strangers.emplace_back([&] { reader.find(owner); });
    transport.wait_for_calls(JobReader::kReadsMax);
    EXPECT_EQ(reader.find(owner), nullptr);
    jobs.put({"team-a", "known"}, std::make_shared<Job>(*job_from_json(job_with("y", "checkpoints"))));
    EXPECT_NE(reader.find({"team-a", "known", "y"}), nullptr) << "what the watch has shown needs no read";
    transport.let_go();
  }
  EXPECT_NE(reader.find(owner), nullptr) << "the places are free again";
}

class AnswerSyncTest : public testing::Test {
 protected:
  // The answer when the owner thread gives its own after that time; with it, how long that took.
  std::pair<HttpResponse, Duration> answer_after(Duration silence, bool hangs_up = false) {
    Mailbox<OperatorInput> mailbox(1);
    Duration waited{};
    const SyncWait wait = [&](SyncReply&, Duration limit) -> std::optional<SyncOutcome> {
      waited += limit;
      if (waited < silence) return std::nullopt;
      return SyncOutcome{.status = 200, .body = "news"};
    };
    ServedRequest served{.request = {.method = "POST", .path = "/v1/sync", .body = "{}"},
                         .peer_uri = "rekindle://team-a/j1",
                         .peer_gone = [hangs_up] { return hangs_up; }};
    HttpResponse response = answer_sync(served, mailbox, wait);
    return {std::move(response), waited};
  }
};

TEST_F(AnswerSyncTest, TheLongestWaitOfASidecarIsWaitedFor) {
  const auto [response, waited] = answer_after(30s);
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, "news");
}

TEST_F(AnswerSyncTest, AnOwnerThreadThatHangsIsNotWaitedForForEver) {
  const auto [response, waited] = answer_after(1h);
  EXPECT_EQ(response.status, 503);
  EXPECT_LE(waited, 1min);
}

// Without a time to wait for, a client comes again at once.
TEST_F(AnswerSyncTest, WhoeverIsToComeAgainIsToldWhen) {
  const auto [response, waited] = answer_after(1h);
  ASSERT_EQ(response.status, 503);
  EXPECT_EQ(response.headers.value_of("Retry-After"), "1");
}

// Each that waits holds a thread.
TEST_F(AnswerSyncTest, ASidecarThatHasHungUpIsNotWaitedFor) {
  const auto [response, waited] = answer_after(30s, true);
  EXPECT_LE(waited, 1s);
}

}  // namespace
}  // namespace rekindle::op
