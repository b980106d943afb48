#include "common/system/signals.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace rekindle {
namespace {

using namespace std::chrono_literals;

TEST(SignalWatcher, ArriveThroughTheDescriptor) {
  const Result<SignalWatcher> signals = SignalWatcher::block({SIGTERM, SIGINT});
  ASSERT_TRUE(signals) << signals.error().message;
  EXPECT_EQ(signals->take(), std::nullopt);
  kill(getpid(), SIGTERM);
  EXPECT_EQ(signals->wait(60s), SIGTERM);
  kill(getpid(), SIGINT);
  EXPECT_EQ(signals->wait(), SIGINT);
  EXPECT_EQ(signals->wait(1ms), std::nullopt);
}

TEST(SignalWatcher, AChildThatRestoredThemDiesOfThem) {
  const Result<SignalWatcher> signals = SignalWatcher::block({SIGTERM, SIGINT});
  ASSERT_TRUE(signals);
  const pid_t child = fork();
  if (child == 0) {
    restore_signals_in_child();
    raise(SIGTERM);
    _exit(7);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
}

}  // namespace
}  // namespace rekindle
