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

// `nohup`, and a shell's `&`: who started the program wants it to live on.
TEST(SignalWatcher, WhatTheProgramWasStartedToIgnoreStaysIgnored) {
  std::signal(SIGHUP, SIG_IGN);
  const Result<SignalWatcher> signals = SignalWatcher::block({SIGHUP, SIGUSR2});
  ASSERT_TRUE(signals);
  kill(getpid(), SIGHUP);
  kill(getpid(), SIGUSR2);
  EXPECT_EQ(signals->wait(), SIGUSR2);
  EXPECT_EQ(signals->take(), std::nullopt);
  std::signal(SIGHUP, SIG_DFL);
}

// Ignored children leave no exit code behind.
TEST(SignalWatcher, TheEndsOfChildrenAreWatchedThoughTheyWereIgnored) {
  std::signal(SIGCHLD, SIG_IGN);
  const Result<SignalWatcher> signals = SignalWatcher::block({SIGCHLD});
  ASSERT_TRUE(signals);
  const pid_t child = fork();
  if (child == 0) _exit(7);
  EXPECT_EQ(signals->wait(60s), SIGCHLD);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 7);
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

// A library's thread leaves signals to the program, but the program's crash handler runs where the
// crash is.
TEST(AllSignalsBlocked, LeavesFaultsOfTheThreadItself) {
  sigset_t before;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &before);
  sigset_t blocked;
  {
    const AllSignalsBlocked all;
    ASSERT_EQ(::pthread_sigmask(SIG_SETMASK, nullptr, &blocked), 0);
  }
  for (const int sent : {SIGTERM, SIGINT, SIGALRM, SIGCHLD, SIGPIPE, SIGUSR1})
    EXPECT_EQ(sigismember(&blocked, sent), 1) << sent;
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT})
    EXPECT_EQ(sigismember(&blocked, fault), 0) << fault;
  sigset_t after;
  ::pthread_sigmask(SIG_SETMASK, nullptr, &after);
  EXPECT_EQ(sigismember(&after, SIGALRM), sigismember(&before, SIGALRM));
}

}  // namespace
}  // namespace rekindle
