// What a forked child of a training process may do with the session of its parent: nothing, and
// nothing of it is seen outside.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <set>

#include "tests/unit/worker-sidecar/runtime/c_session.h"
#include "tests/unit/worker-sidecar/runtime/rank.h"

namespace rekindle::runtime {
namespace {

using testing::CSession;
using testing::ScriptedSidecar;

int exit_code_of(pid_t child) {
  int status = 0;
  if (::waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

class ForkedChild : public ::testing::Test {
 protected:
  void SetUp() override {
    path = sidecar.socket_path();
    const rk_options options{.struct_size = sizeof(rk_options),
                             .socket_path = path.c_str(),
                             .checkpoint_dir = nullptr,
                             .job = nullptr,
                             .rank = 0,
                             .world_size = 1};
    auto started = std::async(std::launch::async, [&] {
      if (run.open(options) != RK_OK || run.restore() != RK_OK) throw std::runtime_error(rk_last_error());
    });
    sidecar.welcome();
    sidecar.begin();
    started.get();
  }

  std::string path;
  CSession run;
  ScriptedSidecar sidecar;
};

TEST_F(ForkedChild, GetsAnErrorFromEveryCall) {
  const pid_t child = ::fork();
  if (child == 0) {
    rk_session* another = nullptr;
    rk_position position{.struct_size = sizeof(rk_position)};
    const rk_tensor tensor{.struct_size = sizeof(rk_tensor), .name = "t"};
    const rk_status answers[] = {rk_open(nullptr, &another),
                                 rk_register(run.session, &tensor),
                                 rk_move(run.session, "weights", nullptr),
                                 rk_unregister(run.session, "weights"),
                                 rk_register_state(run.session, "s", nullptr, 0),
                                 rk_restore(run.session, &position),
                                 rk_step_begin(run.session, 1),
                                 rk_update_begin(run.session),
                                 rk_update_end(run.session),
                                 rk_update_skip(run.session),
                                 rk_step_end(run.session),
                                 rk_collective_failed(run.session, "x"),
                                 rk_checkpoint(run.session),
                                 rk_set_phase(run.session, RK_EVALUATING),
                                 static_cast<rk_status>(rk_close(run.session))};
    for (const rk_status answer : answers) {
      if (answer != RK_ERROR_STATE) ::_exit(1);
    }
    ::_exit(std::string(rk_last_error()).find("forked") == std::string::npos ? 2 : 0);
  }
  EXPECT_EQ(exit_code_of(child), 0);
  EXPECT_EQ(run.one_step(), RK_OK) << "the parent goes on";
  EXPECT_EQ(sidecar.control.word().step, 1u);
}

TEST_F(ForkedChild, ItsEndIsNotTheEndOfTheRank) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  EXPECT_EQ(exit_code_of(child), 0);
  EXPECT_EQ(sidecar.control->owner.load() & kFutexOwnerDied, 0u);
  EXPECT_EQ(rk_checkpoint(run.session), RK_OK);
  sidecar.expect<CheckpointWantedMessage>("checkpoint_wanted");
  sidecar.send(CheckpointDoneMessage{.requested = 0, .outcome = HookOutcome::nothing_to_save});
}

TEST(Descriptors, NoneOfTheLibraryGoesIntoAProgramThatIsExecuted) {
  const auto open_ones = [] {
    std::set<int> found;
    for (int descriptor = 0; descriptor < 1024; ++descriptor) {
      if (::fcntl(descriptor, F_GETFD) >= 0) found.insert(descriptor);
    }
    return found;
  };
  ScriptedSidecar sidecar;
  testing::Rank rank(sidecar.socket_path());
  const std::set<int> before = open_ones();
  auto opened = std::async(std::launch::async, [&] { return rank.open(); });
  sidecar.welcome();
  ASSERT_TRUE(opened.get());
  int added = 0;
  for (const int descriptor : open_ones()) {
    if (before.contains(descriptor)) continue;
    ++added;
    EXPECT_TRUE((::fcntl(descriptor, F_GETFD) & FD_CLOEXEC) != 0) << "descriptor " << descriptor;
  }
  EXPECT_GE(added, 3) << "socket, eventfd and pidfd at least";
}

}  // namespace
}  // namespace rekindle::runtime
