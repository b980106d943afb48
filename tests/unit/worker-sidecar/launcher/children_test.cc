#include "worker-sidecar/launcher/children.h"

#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <fstream>
#include <string>

#include "common/base/format.h"
#include "worker-sidecar/launcher/environment.h"

namespace rekindle::launcher {
namespace {

// A process besides this one that holds the end of another back, as the kernel does for one that
// waits for a device: nobody but its tracer learns that a traced process has ended.
class EndHeldBack {
 public:
  explicit EndHeldBack(pid_t process) {
    std::array<int, 2> ready{};
    EXPECT_EQ(::pipe(ready.data()), 0);
    tracer_ = ::fork();
    if (tracer_ == 0) {
      const bool traced = ::ptrace(PTRACE_SEIZE, process, 0, 0) == 0;
      [[maybe_unused]] const ssize_t told = ::write(ready[1], traced ? "1" : "0", 1);
      while (true) ::pause();
    }
    char traced = '0';
    EXPECT_EQ(::read(ready[0], &traced, 1), 1);
    EXPECT_EQ(traced, '1') << "this test has to be allowed to trace a process";
    ::close(ready[0]);
    ::close(ready[1]);
  }
  ~EndHeldBack() {
    ::kill(tracer_, SIGKILL);
    ::waitpid(tracer_, nullptr, 0);
  }
  EndHeldBack(const EndHeldBack&) = delete;
  EndHeldBack& operator=(const EndHeldBack&) = delete;

 private:
  pid_t tracer_ = -1;
};

TEST(Children, AllAreEndedThoughTheyDoNotWantTo) {
  Children children({.command = {"/bin/sh", "-c", "trap '' TERM; while true; do sleep 100; done"}});
  ASSERT_TRUE(children.start(0, own_environment()));
  ASSERT_TRUE(children.start(1, own_environment()));
  EXPECT_TRUE(children.end_all().empty());
  EXPECT_EQ(children.running(), 0u);
}

TEST(Children, OneThatTheKernelDoesNotEndIsNamedAndNotWaitedForEver) {
  Children children({.command = {"/bin/sleep", "100"}});
  ASSERT_TRUE(children.start(3, own_environment()));
  const std::string process = std::to_string(::getpid());
  const pid_t rank = [&] {
    std::ifstream file(format("/proc/{}/task/{}/children", process, process));
    pid_t first = -1;
    file >> first;
    return first;
  }();
  {
    const EndHeldBack held(rank);
    const std::vector<Child> left = children.end_all();
    ASSERT_EQ(left.size(), 1u);
    EXPECT_EQ(left[0].rank, 3u);
    EXPECT_EQ(left[0].pid, rank);
  }
  EXPECT_TRUE(children.end_all().empty());
}

}  // namespace
}  // namespace rekindle::launcher
