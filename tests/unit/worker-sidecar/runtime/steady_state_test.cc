// P8: a step with open gates makes no system call and reads no clock. The kernel is the witness: a
// filter kills the process at the first system call, and the time stamp counter (from which the C
// library reads clocks without a call) raises a signal.
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cstddef>
#include <ctime>

#include "tests/unit/worker-sidecar/runtime/c_session.h"
#include "tests/unit/worker-sidecar/runtime/rank.h"

namespace rekindle::runtime {
namespace {

using testing::CSession;
using testing::ScriptedSidecar;

constexpr int kSteps = 100'000;

// From here on this thread may only end the process.
[[noreturn]] void cannot_watch() { ::_exit(99); }
void allow_nothing_but_the_end() {
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
  };
  const sock_fprog program{.len = sizeof rules / sizeof rules[0], .filter = rules};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) cannot_watch();
#ifdef __x86_64__
  if (::prctl(PR_SET_TSC, PR_TSC_SIGSEGV) != 0) cannot_watch();
#endif
  if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) cannot_watch();
}
[[noreturn]] void end_process(int code) {
  ::syscall(SYS_exit_group, code);
  __builtin_unreachable();
}

TEST(SteadyState, AHundredThousandStepsMakeNoSystemCallAndReadNoClock) {
  ScriptedSidecar sidecar;
  const std::string path = sidecar.socket_path();
  const pid_t child = ::fork();
  if (child == 0) {
    CSession run;
    const rk_options options{.struct_size = sizeof(rk_options),
                             .socket_path = path.c_str(),
                             .checkpoint_dir = nullptr,
                             .job = nullptr,
                             .rank = 0,
                             .world_size = 1};
    if (run.open(options) != RK_OK || run.restore() != RK_OK || run.one_step() != RK_OK) ::_exit(1);
    allow_nothing_but_the_end();
    for (int i = 0; i < kSteps; ++i) {
      if (run.one_step() != RK_OK) end_process(2);
    }
    end_process(0);
  }
  sidecar.welcome();
  sidecar.begin();
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status) << ": a system call (31) or a clock (11)";
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(sidecar.control.word().step, kSteps + 1u);
}

int signal_of_child_that(void (*act)()) {
  const pid_t child = ::fork();
  if (child == 0) {
    allow_nothing_but_the_end();
    act();
    end_process(0);
  }
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

TEST(SteadyState, TheWitnessSeesASystemCall) {
  EXPECT_EQ(signal_of_child_that([] { ::syscall(SYS_getpid); }), SIGSYS);
}

TEST(SteadyState, TheWitnessSeesAClock) {
  EXPECT_NE(signal_of_child_that([] {
              timespec now;
              ::clock_gettime(CLOCK_MONOTONIC, &now);
            }),
            0);
}

}  // namespace
}  // namespace rekindle::runtime
