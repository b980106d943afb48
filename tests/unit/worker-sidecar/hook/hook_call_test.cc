#include "worker-sidecar/hook/hook_call.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <future>
#include <thread>

#include "common/system/file_descriptor.h"
#include "tests/support/scripted_sidecar.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_process.h"

namespace rekindle::hook {
namespace {

using namespace std::chrono_literals;
using runtime::testing::ScriptedSidecar;

// The hook runs while the test plays the sidecar.
std::future<HookResult> call(const std::string& socket_path, Duration connect_limit = 20s) {
  return std::async(std::launch::async, [=] {
    return call_sidecar(
        {.socket_path = socket_path, .container = "main", .connect_limit = connect_limit, .answer_limit = 20s});
  });
}

HookResult answered_with(const HookDoneMessage& done) {
  std::future<HookResult> result;
  ScriptedSidecar sidecar;
  result = call(sidecar.socket_path());
  sidecar.accept();
  EXPECT_EQ(sidecar.expect<HookMessage>("hook").container, "main");
  sidecar.send(done);
  return result.get();
}

// Takes every connection and ends it.
class HangsUp {
 public:
  HangsUp() : listener_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path().c_str(), sizeof address.sun_path - 1);
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(::listen(listener_.get(), 8), 0);
    thread_ = std::thread([this] {
      while (FileDescriptor taken{::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)}) continue;
    });
  }
  ~HangsUp() { stop(); }
  HangsUp(const HangsUp&) = delete;
  HangsUp& operator=(const HangsUp&) = delete;

  std::string path() const { return folder_.at("s.sock"); }
  // Nobody listens there from then on.
  void stop() {
    if (!thread_.joinable()) return;
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
    listener_.reset();
  }

 private:
  TemporaryFolder folder_;
  FileDescriptor listener_;
  std::thread thread_;
};

TEST(HookCall, ADurableStepIsToldInOneLine) {
  const HookResult result =
      answered_with({.outcome = HookOutcome::durable, .step = 184, .path = "a1-s184-x", .milliseconds = 31});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.line, "rekindle-hook: step 184 is durable in a1-s184-x after 31 ms");
}

TEST(HookCall, NothingToSaveIsFine) {
  EXPECT_EQ(answered_with({.outcome = HookOutcome::nothing_to_save, .message = "training has not begun"}).exit_code, 0);
}

TEST(HookCall, AFailedSaveIsAnErrorWithItsReason) {
  const HookResult result = answered_with({.outcome = HookOutcome::failed, .message = "the folder is full"});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.line.find("the folder is full"), std::string::npos);
}

TEST(HookCall, ASidecarThatIsRestartedMeanwhileIsAskedAgain) {
  std::future<HookResult> result;
  ScriptedSidecar sidecar;
  result = call(sidecar.socket_path());
  sidecar.accept();
  sidecar.expect<HookMessage>("hook");
  sidecar.die();
  sidecar.listen();
  sidecar.accept();
  sidecar.expect<HookMessage>("hook");
  sidecar.send(HookDoneMessage{.outcome = HookOutcome::durable, .step = 1});
  EXPECT_EQ(result.get().exit_code, 0);
}

TEST(HookCall, ASidecarThatHangsUpAgainAndAgainIsNotAskedForEver) {
  HangsUp sidecar;
  std::future<HookResult> result = std::async(std::launch::async, [&] {
    return call_sidecar({.socket_path = sidecar.path(), .container = "main", .answer_limit = 300ms});
  });
  EXPECT_EQ(result.wait_for(20s), std::future_status::ready);
  sidecar.stop();
  const HookResult ended = result.get();
  EXPECT_EQ(ended.exit_code, 1);
  EXPECT_NE(ended.line.find("did not answer within"), std::string::npos) << ended.line;
}

// As admission does: it refuses a preStop command of the user's own.
TEST(HookProgram, AWordOfWhichItKnowsNothingIsRefusedWithoutAPromise) {
  TemporaryFolder folder;
  TestProcess run({REKINDLE_HOOK, "my-script"}, {}, folder.at("log"));
  EXPECT_EQ(run.wait(), 2);
  EXPECT_TRUE(run.output().contains("cannot be combined with it in this version")) << run.output();
  EXPECT_FALSE(run.output().contains("from your own script")) << run.output();
}

TEST(HookProgram, TellsItsVersionAndHowItIsCalled) {
  TemporaryFolder folder;
  TestProcess version({REKINDLE_HOOK, "--version"}, {}, folder.at("version"));
  EXPECT_EQ(version.wait(), 0);
  EXPECT_EQ(version.output(), "rekindle-hook " REKINDLE_VERSION "\n");
  TestProcess help({REKINDLE_HOOK, "--help"}, {}, folder.at("help"));
  EXPECT_EQ(help.wait(), 0);
  EXPECT_TRUE(help.output().starts_with("Usage: rekindle-hook")) << help.output();
}

TEST(HookCall, ASidecarThatIsGoneIsNamedWithItsSocket) {
  const HookResult result =
      call_sidecar({.socket_path = "/nonexistent/sidecar.sock", .container = "main", .connect_limit = 0s});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.line.find("/nonexistent/sidecar.sock"), std::string::npos);
  EXPECT_NE(result.line.find("rekindle-sidecar"), std::string::npos);
}

}  // namespace
}  // namespace rekindle::hook
