// A watch against a server over real HTTP. The machine's decisions have their own tests in virtual
// time; these show that the thread performs them.
#include "operator/io/watch_thread.h"

#include <gtest/gtest.h>

#include <future>

#include "common/base/format.h"
#include "common/system/clock.h"
#include "operator/controller/store.h"
#include "operator/io/api_client.h"
#include "tests/support/certificates.h"
#include "tests/support/fake_api_server.h"
#include "tests/support/temporary_folder.h"

namespace rekindle::op {
namespace {

using namespace std::chrono_literals;

const std::string kAllPods = "/api/v1/pods";

struct Pod {
  std::string name;
  std::int64_t generation = 0;
};

Result<Pod> decode_pod(const Json& object) {
  JsonFields in(object, "pod");
  JsonFields metadata(in.object("metadata"), "pod metadata");
  Pod pod{metadata.text("name"), metadata.integer_or("generation", 0)};
  if (Status status = metadata.finish(); !status) return std::unexpected(status.error());
  return pod;
}

Json pod(const std::string& name, Json generation = 1) {
  return {{"metadata", {{"namespace", "team-a"}, {"name", name}, {"generation", std::move(generation)}}}};
}

class WatchThreadTest : public testing::Test {
 protected:
  void SetUp() override {
    write_bytes(folder.at("ca.crt"), authority.pem());
    write_bytes(folder.at("config"),
                format("current-context: x\ncontexts: [{{name: x, context: {{cluster: c}}}}]\nclusters: [{{name: "
                       "c, cluster: {{server: 'https://127.0.0.1:{}', certificate-authority: ca.crt}}}}]\n",
                       server.port()));
    client = std::make_unique<ApiClient>(Credentials::from_kubeconfig({folder.at("config")}).value());
  }

  void TearDown() override {
    mailbox.close();
    thread.reset();
  }

  void start(WatchSettings settings = {}) {
    settings.backoff = {.first = 1ms, .max = 20ms};
    thread = std::make_unique<WatchThread>(
        *client, WatchThread::Job{.resource = kPods, .settings = settings},
        deliver_decoded<Pod>(mailbox, &decode_pod,
                             [this](const ObjectKey& key, const Error&) {
                               const std::lock_guard lock(mutex);
                               unreadable.push_back(to_text(key));
                             }),
        [this](const WatchThread::Job&, const Error& error, const std::string& next) {
          const std::lock_guard lock(mutex);
          troubles.push_back(format("{}; {}", error.message, next));
        },
        20261121);
  }

  // Feeds the store until it shows these pods ("a:1 b:2"), at most a minute.
  void expect_pods(const std::string& expected) {
    const Instant limit = monotonic_now() + 1min;
    std::string shown;
    while (monotonic_now() < limit) {
      for (StoreEvent<Pod>& event : mailbox.take_all(10ms)) {
        for (const StoreChange<Pod>& change : writer.apply(std::move(event))) {
          if (!change.after) gone.push_back(change.key.name);
        }
      }
      shown = reader.ready() ? "" : "not ready";
      for (const std::shared_ptr<const Pod>& one : reader.all()) {
        shown += format("{}{}:{}", shown.empty() ? "" : " ", one->name, one->generation);
      }
      if (shown == expected) return;
    }
    FAIL() << "the store shows '" << shown << "' and not '" << expected << "'";
  }

  bool wait_for_watches(std::size_t count) {
    return server.wait_until([&](const FakeApiServer& seen) { return seen.open_watches() == count; });
  }

  std::size_t requests_with(const std::string& part) const {
    std::size_t count = 0;
    for (const std::string& request : server.requests()) count += request.find(part) != std::string::npos ? 1 : 0;
    return count;
  }

  TestAuthority authority;
  TemporaryFolder folder;
  FakeApiServer server{{.tls = authority.server({.ip = {"127.0.0.1"}})}};
  std::unique_ptr<ApiClient> client;
  Mailbox<StoreEvent<Pod>> mailbox{64};
  StoreWriter<Pod> writer;
  StoreReader<Pod> reader = writer.reader();
  std::vector<std::string> gone;
  std::mutex mutex;
  std::vector<std::string> unreadable;  // guarded by mutex
  std::vector<std::string> troubles;    // guarded by mutex
  std::unique_ptr<WatchThread> thread;
};

TEST_F(WatchThreadTest, ListsByPagesAndFollowsChanges) {
  for (const char* name : {"a", "b", "c", "d", "e"}) server.put(kAllPods, pod(name));
  start({.page_limit = 2});
  expect_pods("a:1 b:1 c:1 d:1 e:1");
  EXPECT_EQ(requests_with("limit=2"), 3u);
  server.put(kAllPods, pod("b", 2));
  server.remove(kAllPods, "d");
  server.put(kAllPods, pod("f"));
  expect_pods("a:1 b:2 c:1 e:1 f:1");
  EXPECT_EQ(gone, (std::vector<std::string>{"d"}));
}

TEST_F(WatchThreadTest, AStreamThatTheServerClosesIsResumedWithoutAList) {
  server.put(kAllPods, pod("a"));
  start();
  expect_pods("a:1");
  for (int i = 2; i < 6; ++i) {
    ASSERT_TRUE(wait_for_watches(1));
    server.close_watches();
    server.put(kAllPods, pod("a", i));
    expect_pods(format("a:{}", i));
  }
  EXPECT_EQ(requests_with("limit="), 1u);
}

TEST_F(WatchThreadTest, AStreamThatBreaksIsResumedWithoutAList) {
  server.put(kAllPods, pod("a"));
  start();
  expect_pods("a:1");
  ASSERT_TRUE(wait_for_watches(1));
  server.break_watches();
  server.put(kAllPods, pod("a", 2));
  expect_pods("a:2");
  EXPECT_EQ(requests_with("limit="), 1u);
}

TEST_F(WatchThreadTest, WhatVanishedDuringAGapIsNoticed) {
  server.put(kAllPods, pod("a"));
  server.put(kAllPods, pod("b"));
  start();
  expect_pods("a:1 b:1");
  ASSERT_TRUE(wait_for_watches(1));
  server.answer_next({.status = 503, .body = "gone fishing"});
  server.break_watches();
  ASSERT_TRUE(wait_for_watches(0));
  server.remove(kAllPods, "a");
  server.compact();
  expect_pods("b:1");
  EXPECT_EQ(gone, (std::vector<std::string>{"a"}));
  EXPECT_GE(requests_with("limit="), 2u);
}

TEST_F(WatchThreadTest, GoneInTheStreamListsAnew) {
  server.put(kAllPods, pod("a"));
  start();
  expect_pods("a:1");
  ASSERT_TRUE(wait_for_watches(1));
  server.say_in_watches(R"({"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}})");
  ASSERT_TRUE(server.wait_until([this](const FakeApiServer&) { return requests_with("limit=") == 2; }));
  server.put(kAllPods, pod("b"));
  expect_pods("a:1 b:1");
}

TEST_F(WatchThreadTest, AnExpiredPageListsAnewInOnePiece) {
  for (const char* name : {"a", "b", "c"}) server.put(kAllPods, pod(name));
  server.answer_next({.status = 200, .body = R"({"metadata":{"resourceVersion":"1","continue":"1/a"},"items":[]})"});
  server.compact();
  start({.page_limit = 2});
  expect_pods("a:1 b:1 c:1");
  EXPECT_EQ(server.requests().at(2), "GET /api/v1/pods");
}

TEST_F(WatchThreadTest, ABookmarkMovesTheVersionOfTheNextWatch) {
  server.put(kAllPods, pod("a"));
  start();
  expect_pods("a:1");
  ASSERT_TRUE(wait_for_watches(1));
  server.bookmark();
  server.put(kAllPods, pod("a", 2));
  expect_pods("a:2");
  server.close_watches();
  server.put(kAllPods, pod("a", 3));
  expect_pods("a:3");
  EXPECT_EQ(requests_with("limit="), 1u);
}

TEST_F(WatchThreadTest, ASilentStreamIsOpenedAgain) {
  server.put(kAllPods, pod("a"));
  start({.idle_limit = 40ms});
  expect_pods("a:1");
  ASSERT_TRUE(server.wait_until([this](const FakeApiServer&) { return requests_with("watch=true") >= 3; }));
  EXPECT_EQ(requests_with("limit="), 1u);
}

TEST_F(WatchThreadTest, RubbishInTheStreamListsAnew) {
  server.put(kAllPods, pod("a"));
  start();
  expect_pods("a:1");
  ASSERT_TRUE(wait_for_watches(1));
  server.say_in_watches("<html>");
  ASSERT_TRUE(server.wait_until([this](const FakeApiServer&) { return requests_with("limit=") == 2; }));
  server.put(kAllPods, pod("a", 2));
  expect_pods("a:2");
}

TEST_F(WatchThreadTest, AnUnreadableObjectIsReportedAndKeepsItsLastState) {
  server.put(kAllPods, pod("a"));
  start();
  expect_pods("a:1");
  server.put(kAllPods, pod("a", "many"));
  server.put(kAllPods, pod("b"));
  expect_pods("a:1 b:1");
  const std::lock_guard lock(mutex);
  EXPECT_EQ(unreadable, (std::vector<std::string>{"team-a/a"}));
}

TEST_F(WatchThreadTest, RefusalsAreToldAndTriedAgain) {
  server.put(kAllPods, pod("a"));
  server.answer_next(
      {.status = 403, .body = R"({"kind":"Status","code":403,"reason":"Forbidden","message":"no list"})"});
  start();
  expect_pods("a:1");
  const std::lock_guard lock(mutex);
  ASSERT_EQ(troubles.size(), 1u);
  EXPECT_TRUE(troubles[0].starts_with(
      "watching pods: listing pods: the API server answered 403 Forbidden: no list; lists again in"))
      << troubles[0];
}

TEST_F(WatchThreadTest, StopsWhileAStreamIsOpen) {
  server.put(kAllPods, pod("a"));
  start();
  expect_pods("a:1");
  ASSERT_TRUE(wait_for_watches(1));
  thread->stop();
  thread->stop();
}

TEST_F(WatchThreadTest, StopsWhileTheMailboxIsFull) {
  server.put(kAllPods, pod("a"));
  while (mailbox.try_push(StoreEvent<Pod>(Init{}))) {
  }
  start();
  ASSERT_TRUE(server.wait_until([](const FakeApiServer& seen) { return !seen.requests().empty(); }));
  thread->stop();
}

// Many times, since it may be told just before it begins to wait as well as behind that.
TEST_F(WatchThreadTest, StopsWhileItWaitsToTryAgain) {
  for (std::size_t round = 1; round <= 20; ++round) {
    server.answer_next({.status = 500});
    std::promise<std::string> told;
    thread = std::make_unique<WatchThread>(
        *client, WatchThread::Job{.resource = kPods, .settings = {.backoff = {.first = 40s, .max = 40s, .jitter = 0}}},
        [](StoreEvent<Json>, std::stop_token) { return true; },
        [&](const WatchThread::Job&, const Error&, const std::string& next) { told.set_value(next); }, round);
    EXPECT_EQ(told.get_future().get(), "lists again in 40.0 s");
    const Instant begin = monotonic_now();
    thread->stop();
    ASSERT_LT(monotonic_now() - begin, 20s) << "it waited to the end";
    EXPECT_EQ(server.requests().size(), round) << "it tried again";
  }
}

TEST_F(WatchThreadTest, AClosedMailboxEndsTheThread) {
  server.put(kAllPods, pod("a"));
  mailbox.close();
  start();
  ASSERT_TRUE(server.wait_until([](const FakeApiServer& seen) { return seen.requests().size() == 1; }));
  thread->stop();
  EXPECT_EQ(requests_with("watch=true"), 0u);
}

}  // namespace
}  // namespace rekindle::op
