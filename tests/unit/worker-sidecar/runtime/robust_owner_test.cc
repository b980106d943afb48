#include "worker-sidecar/runtime/src/robust_owner.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdlib>
#include <thread>

#include "common/base/format.h"
#include "tests/support/scripted_sidecar.h"

namespace rekindle::runtime {
namespace {

using testing::ControlMemory;

// What the sidecar's watch does: ask to be woken, sleep, look.
bool sees_death(ControlBlock& block) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(testing::kPatienceMilliseconds);
  while (std::chrono::steady_clock::now() < until) {
    std::uint32_t value = block.owner.load();
    if ((value & kFutexOwnerDied) != 0) return true;
    if ((value & kFutexWaiters) == 0) {
      block.owner.compare_exchange_strong(value, value | kFutexWaiters);
      continue;
    }
    const timespec timeout{.tv_sec = 1, .tv_nsec = 0};
    ::syscall(SYS_futex, &block.owner, FUTEX_WAIT, value, &timeout, nullptr, 0);
  }
  return false;
}

// A process whose library thread holds the futex, with a worker forked from it that stays.
pid_t start_holder(ControlMemory& control, int worker_pid_pipe) {
  const pid_t child = ::fork();
  if (child != 0) return child;
  static RobustOwner owner;
  std::thread library_thread([&] {
    if (!owner.hold(control->owner, control->owner_ready)) ::_exit(3);
    for (;;) ::pause();
  });
  testing::wait_until([&] { return control->owner_ready.load() == 1; }, "the futex is held");
  const pid_t worker = ::fork();
  if (worker == 0) {
    for (;;) ::pause();
  }
  [[maybe_unused]] const ssize_t written = ::write(worker_pid_pipe, &worker, sizeof worker);
  for (;;) ::pause();
}

TEST(RobustOwner, AKilledProcessIsSeenAlsoWhileItsForkedWorkersLive) {
  ControlMemory control;
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  const pid_t holder = start_holder(control, pipe[1]);
  pid_t worker = 0;
  ASSERT_EQ(::read(pipe[0], &worker, sizeof worker), static_cast<ssize_t>(sizeof worker));
  EXPECT_NE(control->owner.load(), 0u);
  ASSERT_EQ(::kill(holder, SIGKILL), 0);
  EXPECT_TRUE(sees_death(*control));
  EXPECT_EQ(::kill(worker, 0), 0) << "the worker was to outlive its parent";
  ::kill(worker, SIGKILL);
  ::waitpid(holder, nullptr, 0);
  ::close(pipe[0]);
  ::close(pipe[1]);
}

TEST(RobustOwner, TheEndOfAForkedWorkerIsNoDeath) {
  ControlMemory control;
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  const pid_t holder = start_holder(control, pipe[1]);
  pid_t worker = 0;
  ASSERT_EQ(::read(pipe[0], &worker, sizeof worker), static_cast<ssize_t>(sizeof worker));
  const int worker_handle = static_cast<int>(::syscall(SYS_pidfd_open, worker, 0));
  ASSERT_EQ(::kill(worker, SIGKILL), 0);
  pollfd ended{.fd = worker_handle, .events = POLLIN, .revents = 0};
  ASSERT_EQ(::poll(&ended, 1, testing::kPatienceMilliseconds), 1);
  EXPECT_EQ(control->owner.load() & kFutexOwnerDied, 0u);
  ::kill(holder, SIGKILL);
  ::waitpid(holder, nullptr, 0);
  ::close(worker_handle);
  ::close(pipe[0]);
  ::close(pipe[1]);
}

TEST(RobustOwner, HoldsAcrossPidNamespaces) {
  ControlMemory control;
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t outer = ::fork();
  if (outer == 0) {
    // As in a pod: the thread id that the futex holds means nothing in the sidecar's namespace.
    if (::unshare(CLONE_NEWPID) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) ::_exit(42);
    const pid_t inner = start_holder(control, ready[1]);
    ::waitpid(inner, nullptr, 0);
    ::_exit(0);
  }
  ::close(ready[1]);
  pid_t worker = 0;
  if (::read(ready[0], &worker, sizeof worker) != static_cast<ssize_t>(sizeof worker)) {
    int status = 0;
    ::waitpid(outer, &status, 0);
    ::close(ready[0]);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 42)
      GTEST_SKIP() << "this machine does not let the test make a PID namespace";
    FAIL() << "the holder did not start";
  }
  EXPECT_LT(control->owner.load(), 16u) << "a thread id of the inner namespace";
  // The first child of a new namespace is its pid 1, the only child of `outer`.
  const std::string children = format("/proc/{}/task/{}/children", outer, outer);
  FILE* const file = ::fopen(children.c_str(), "r");
  ASSERT_NE(file, nullptr);
  int holder = 0;
  ASSERT_EQ(::fscanf(file, "%d", &holder), 1);
  ::fclose(file);
  ASSERT_EQ(::kill(holder, SIGKILL), 0);
  EXPECT_TRUE(sees_death(*control));
  ::waitpid(outer, nullptr, 0);
  ::close(ready[0]);
}

TEST(RobustOwner, AnOrderlyReleaseTellsNobodyOfADeath) {
  ControlMemory control;
  RobustOwner owner;
  std::thread thread([&] {
    ASSERT_TRUE(owner.hold(control->owner, control->owner_ready));
    EXPECT_EQ(control->owner.load(), static_cast<std::uint32_t>(::syscall(SYS_gettid)));
    owner.release();
  });
  thread.join();
  EXPECT_EQ(control->owner.load(), 0u);
  EXPECT_EQ(control->owner_ready.load(), 0u);
}

TEST(RobustOwner, AThreadThatEndsWithoutReleaseIsSeen) {
  ControlMemory control;
  RobustOwner owner;
  std::thread([&] { ASSERT_TRUE(owner.hold(control->owner, control->owner_ready)); }).join();
  EXPECT_TRUE(sees_death(*control));
}

}  // namespace
}  // namespace rekindle::runtime
