// The whole inside of the operator's process before an API server that answers when the test wants
// it to: threads, servers and watches are the real ones.
#include "operator/io/manager.h"

#include <gtest/gtest.h>

#include <condition_variable>

#include "common/system/clock.h"
#include "operator/model/names.h"
#include "tests/support/recorded_transport.h"

namespace rekindle::op {
namespace {

using namespace std::chrono_literals;

constexpr Duration kPatience = 60s;

// Lists two protected jobs, opens watches in which nothing happens, and lets writes wait until the
// test refuses them.
class SlowApiServer final : public KubeTransport {
 public:
  Result<HttpResponse> send(const HttpRequest& request, std::stop_token stop) override {
    if (request.method == "GET") return HttpResponse{.status = 200, .body = list(request.path)};
    std::unique_lock lock(mutex_);
    ++writes_;
    changed_.notify_all();
    changed_.wait_for(lock, stop, kPatience, [&] { return refuses_; });
    if (stop.stop_requested()) ++cut_off_;
    return HttpResponse{.status = 500, .body = R"({"kind":"Status","code":500,"message":"as the test wants it"})"};
  }

  Result<HttpResponse> stream(const HttpRequest&, const TransportSink&, std::stop_token stop) override {
    std::unique_lock lock(mutex_);
    ++watches_;
    changed_.notify_all();
    changed_.wait_for(lock, stop, kPatience, [] { return false; });
    --watches_;
    changed_.notify_all();
    return HttpResponse{.status = 200};
  }

  // Every write, those that wait and those that come.
  void refuse_writes() {
    const std::lock_guard lock(mutex_);
    refuses_ = true;
    changed_.notify_all();
  }

  std::size_t cut_off() {
    const std::lock_guard lock(mutex_);
    return cut_off_;
  }

  bool wait_for_writes(std::size_t count) {
    return wait([&] { return writes_ >= count; });
  }
  bool wait_for_watches(std::size_t count) {
    return wait([&] { return watches_ == count; });
  }

 private:
  template <typename Condition>
  bool wait(Condition condition) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kPatience, condition);
  }

  static std::string list(const std::string& path) {
    Json items = Json::array();
    if (path.find("/jobs") != std::string::npos) items = Json::array({job("first"), job("second")});
    return dump_json({{"kind", "List"}, {"metadata", {{"resourceVersion", "7"}}}, {"items", items}});
  }

  static Json job(const std::string& name) {
    return {
        {"metadata",
         {{"namespace", "team-a"},
          {"name", name},
          {"uid", name + "-uid"},
          {"resourceVersion", "5"},
          {"labels", {{names::kSchedulingLabel, names::kSchedulingGrace}}}}},
        {"spec",
         {{"tasks", Json::array({{{"name", "worker"},
                                  {"replicas", 1},
                                  {"template", {{"metadata", {{"labels", {{names::kProtectedLabel, "true"}}}}}}}}})}}},
        {"status", {{"state", {{"phase", "Pending"}}}}}};
  }

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::size_t writes_ = 0;   // guarded by mutex_
  std::size_t watches_ = 0;  // guarded by mutex_; that are open
  std::size_t cut_off_ = 0;  // guarded by mutex_; writes that were given up
  bool refuses_ = false;     // guarded by mutex_
};

class ManagerTest : public testing::Test {
 protected:
  ManagerTest() {
    RecordedTransport secrets;
    secrets.prepare("POST /api/v1/namespaces/rekindle-system/secrets", 201, Json::object());
    certificates = CertificateStore::open(secrets, "rekindle-system", wall_seconds());
    tls = **ServerCertificate(*certificates, "rekindle-operator", "rekindle-system").renew(wall_seconds());
  }

  static Manager::Settings settings() {
    return {.ports = {.admission = 0, .sidecars = 0, .metrics = 0, .health = 0},
            .server_limits = {.address = "127.0.0.1"},
            .instance = "test"};
  }

  SlowApiServer api;
  Result<CertificateStore> certificates = fail(ErrorCode::internal, "not opened yet");
  ServerTls tls;
};

// It crashed here: workers were gone while the owner still wanted them.
TEST_F(ManagerTest, JobsMayWantMoreWhileItStops) {
  std::atomic<bool> hurried{false};
  std::atomic<int> hours{0};
  Manager::Settings impatient = settings();
  // What is to be tried again is due at once.
  impatient.loop.clock.monotonic = [&] { return Instant(1h) + (hurried ? ++hours : 0) * 1h; };
  Result<std::unique_ptr<Manager>> manager = Manager::start(api, *certificates, tls, std::move(impatient));
  ASSERT_TRUE(manager) << manager.error().message;
  ASSERT_TRUE(api.wait_for_writes(2)) << "each job's certificate";
  ASSERT_TRUE(api.wait_for_watches(3));
  hurried = true;

  std::jthread stopping([&] { (*manager)->stop(); });
  ASSERT_TRUE(api.wait_for_watches(0)) << "the stop has begun";
  api.refuse_writes();
  stopping.join();
}

TEST_F(ManagerTest, AnApiServerThatDoesNotAnswerIsNotWaitedForWhenItStops) {
  Manager::Settings hurried = settings();
  hurried.last_calls = 1ms;
  Result<std::unique_ptr<Manager>> manager = Manager::start(api, *certificates, tls, std::move(hurried));
  ASSERT_TRUE(manager) << manager.error().message;
  ASSERT_TRUE(api.wait_for_writes(2)) << "each job's certificate";
  (*manager)->stop();
  EXPECT_EQ(api.cut_off(), 2u);
}

TEST(StoppableTransport, EndsCallsThatRunAndThoseThatCome) {
  SlowApiServer api;
  StoppableTransport transport(api);
  std::jthread running([&] { static_cast<void>(transport.send({.method = "POST", .path = "/"})); });
  ASSERT_TRUE(api.wait_for_writes(1));
  transport.stop();
  running.join();
  static_cast<void>(transport.send({.method = "POST", .path = "/"}));
  EXPECT_EQ(api.cut_off(), 2u);
}

TEST(StoppableTransport, TheCallersOwnEndCountsAsWell) {
  SlowApiServer api;
  StoppableTransport transport(api);
  std::jthread running([&](std::stop_token stop) { static_cast<void>(transport.send({.method = "POST"}, stop)); });
  ASSERT_TRUE(api.wait_for_writes(1));
  running.request_stop();
  running.join();
  EXPECT_EQ(api.cut_off(), 1u);
}

TEST(WorkerPool, DropsWhatItIsGivenAfterItsEnd) {
  WorkerPool pool(1);
  pool.stop();
  pool.run([] { FAIL() << "nobody is there to run it"; });
}

}  // namespace
}  // namespace rekindle::op
