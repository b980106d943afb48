#include "worker-sidecar/hook/hook_call.h"

#include <gtest/gtest.h>

#include <future>

#include "tests/support/scripted_sidecar.h"

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

TEST(HookCall, ASidecarThatIsGoneIsNamedWithItsSocket) {
  const HookResult result =
      call_sidecar({.socket_path = "/nonexistent/sidecar.sock", .container = "main", .connect_limit = 0s});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_NE(result.line.find("/nonexistent/sidecar.sock"), std::string::npos);
  EXPECT_NE(result.line.find("rekindle-sidecar"), std::string::npos);
}

}  // namespace
}  // namespace rekindle::hook
