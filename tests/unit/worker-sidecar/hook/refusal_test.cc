// A sidecar that answers, and not what the hook hopes for.
#include <gtest/gtest.h>

#include <future>

#include "tests/support/scripted_sidecar.h"
#include "worker-sidecar/hook/hook_call.h"

namespace rekindle::hook {
namespace {

// Whatever its reason is: only a sidecar that is gone, and may come back, is asked again.
TEST(HookRefusal, ARefusalIsToldWithItsReasonAndNotAskedForAgain) {
  std::future<HookResult> result;
  runtime::testing::ScriptedSidecar sidecar;
  result = std::async(std::launch::async, [path = sidecar.socket_path()] {
    return call_sidecar({.socket_path = path, .container = "main", .answer_limit = std::chrono::seconds(20)});
  });
  sidecar.accept();
  sidecar.expect<HookMessage>("hook");
  sidecar.send(RefusedMessage{.error = {ErrorCode::io, "the disk is broken", Retry::no}});
  const HookResult told = result.get();
  EXPECT_EQ(told.exit_code, 1);
  EXPECT_NE(told.line.find("the disk is broken"), std::string::npos) << told.line;
}

}  // namespace
}  // namespace rekindle::hook
