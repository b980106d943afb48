// The host between its socket, the machines and whoever observes it.
#include "worker-sidecar/sidecar/host.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <asio/io_context.hpp>
#include <filesystem>
#include <functional>
#include <map>

#include "socket_client.h"
#include "tests/support/temporary_folder.h"

namespace rekindle::sidecar {
namespace {

using namespace std::chrono_literals;

class Watcher final : public HostObserver {
 public:
  void log(Severity, std::string_view message, const Facts&) override {
    if (const auto found = when_logged.find(message); found != when_logged.end()) found->second();
  }
  void attempt_begun(const AttemptBegun& begun, Instant) override { attempt = begun.attempt; }
  void problem(const std::string& code, const std::string&) override { problems.push_back(code); }
  void problem_over(const std::string& code) override { std::erase(problems, code); }

  std::map<std::string, std::function<void()>, std::less<>> when_logged;
  std::vector<std::string> problems;
  std::uint64_t attempt = 0;
};

// The frames of one connection, one behind the other.
class Words {
 public:
  std::string of(const LocalMessage& message) {
    const EncodedMessage encoded = encode_local_message(message);
    return *encoder_.encode(encoded.kind, 0, encoded.body);
  }

 private:
  FrameEncoder encoder_;
};

class HostTest : public testing::Test {
 protected:
  void start() {
    HostSettings settings;
    settings.socket_path = folder_.at("s.sock");
    settings.run_folder = folder_.path();
    settings.checkpoint_folder = folder_.at("checkpoints");
    auto host =
        Host::start(loop_, {.settings = settings, .coordination = {.wait_for_go = false}, .observer = &watcher_});
    ASSERT_TRUE(host) << host.error().message;
    host_ = std::move(*host);
  }
  template <typename Condition>
  bool until(Condition holds) {
    const auto limit = std::chrono::steady_clock::now() + 30s;
    while (!holds() && std::chrono::steady_clock::now() < limit) loop_.run_one_for(5ms);
    return holds();
  }
  bool has_problem(const std::string& code) {
    return std::ranges::find(watcher_.problems, code) != watcher_.problems.end();
  }

  TemporaryFolder folder_;
  asio::io_context loop_;
  Watcher watcher_;
  std::unique_ptr<Host> host_;
};

// Such a process ignores SIGTERM where it is the first of its container, and the pod stayed for its
// whole grace.
TEST_F(HostTest, AProcessThatCameTooLateForTheAttemptIsRefusedWhenThePodEnds) {
  std::filesystem::create_directory(folder_.at("checkpoints"));
  start();
  {
    Client rank(folder_.at("s.sock"));
    Words words;
    rank.send(words.of(HelloMessage{.rank = 0, .world_size = 1}));
    ASSERT_TRUE(until([&] { return host_->status().live_ranks == 1; }));
    rank.send(words.of(RegisteredMessage{}));
    // What comes before the offer says nothing yet.
    ASSERT_TRUE(until([&] {
      rank.send(words.of(LoadedMessage{.ok = true}));
      return watcher_.attempt == 1;
    }));
  }
  ASSERT_TRUE(until([&] { return host_->status().live_ranks == 0; }));
  Client late(folder_.at("s.sock"));
  bool waits = false;
  watcher_
      .when_logged["a new process came for a rank of an attempt that has begun; it waits until the job is restarted"] =
      [&] { waits = true; };
  late.send(framed(HelloMessage{.rank = 0, .world_size = 1}));
  ASSERT_TRUE(until([&] { return waits; }));
  EXPECT_FALSE(late.hears(0ms));
  host_->handle(Terminating{10});
  EXPECT_TRUE(until([&] { return late.ended(); }));
}

// Whoever reads the log may be slow, and what is to be done about a death may not wait for that.
TEST_F(HostTest, ADeathIsHandledBeforeItIsLogged) {
  std::filesystem::create_directory(folder_.at("checkpoints"));
  start();
  bool logged = false;
  std::uint32_t known_to_live = 7;
  watcher_.when_logged["a rank died"] = [&] {
    logged = true;
    known_to_live = host_->status().live_ranks;
  };
  {
    Client rank(folder_.at("s.sock"));
    rank.send(framed(HelloMessage{.rank = 0, .world_size = 1}));
    ASSERT_TRUE(until([&] { return host_->status().live_ranks == 1; }));
  }
  ASSERT_TRUE(until([&] { return logged; }));
  EXPECT_EQ(known_to_live, 0u);
}

TEST_F(HostTest, AFolderThatIsRepairedIsNoProblemAnyMore) {
  start();
  ASSERT_TRUE(until([&] { return has_problem("storage"); }));
  std::filesystem::create_directory(folder_.at("checkpoints"));
  Client rank(folder_.at("s.sock"));
  rank.send(framed(HelloMessage{.rank = 0, .world_size = 1}));
  EXPECT_TRUE(until([&] { return !has_problem("storage"); }));
}

TEST_F(HostTest, WhatOthersPutInPlaceOfTheMemoryIsAProblemAndNoObstacle) {
  std::filesystem::create_symlink("/dev/null", folder_.at("job-layout"));
  start();
  EXPECT_TRUE(has_problem("job_memory"));
}

}  // namespace
}  // namespace rekindle::sidecar
