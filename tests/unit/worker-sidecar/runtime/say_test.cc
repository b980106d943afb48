#include "worker-sidecar/runtime/src/say.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <functional>
#include <string>

namespace rekindle::runtime {
namespace {

// How a process ends that does this with standard error at the write end of a pipe.
int status_of_child(const std::array<int, 2>& pipe, const std::function<void()>& talk) {
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGPIPE, SIG_DFL);
    dup2(pipe[1], STDERR_FILENO);
    close(pipe[0]);
    talk();
    _exit(7);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

class Say : public ::testing::Test {
 protected:
  Say() {
    if (::pipe(ends.data()) != 0) throw std::runtime_error("no pipe");
  }
  std::array<int, 2> ends{};
};

TEST_F(Say, WritesOneLineWithTheNameOfTheLibrary) {
  const int status = status_of_child(ends, [] { say("a checkpoint is late"); });
  EXPECT_EQ(WEXITSTATUS(status), 7);
  std::array<char, 100> heard{};
  const ssize_t bytes = read(ends[0], heard.data(), heard.size());
  EXPECT_EQ(std::string(heard.data(), static_cast<std::size_t>(bytes)), "rekindle: a checkpoint is late\n");
}

TEST_F(Say, AReaderThatHasGoneDoesNotEndTheProgram) {
  close(ends[0]);
  const int status = status_of_child({ends[1], ends[1]}, [] {
    // Standard error is what the pipe's write end was copied to.
    say("a checkpoint is late");
    say("another one");
  });
  EXPECT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 7);
}

TEST_F(Say, ASignalThatTheProgramIsStillToGetStaysPending) {
  close(ends[0]);
  const int status = status_of_child({ends[1], ends[1]}, [] {
    sigset_t pipe_signal;
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    ::sigprocmask(SIG_BLOCK, &pipe_signal, nullptr);
    raise(SIGPIPE);
    say("a checkpoint is late");
    ::sigprocmask(SIG_UNBLOCK, &pipe_signal, nullptr);
  });
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGPIPE);
}

}  // namespace
}  // namespace rekindle::runtime
