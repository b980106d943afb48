// `rekindle run` where something stands still: its reader, the kernel, the sidecar inside.
#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/format.h"
#include "common/system/file_descriptor.h"
#include "tests/unit/worker-sidecar/launcher/local_run.h"

namespace rekindle::launcher {
namespace {

// Both outputs go to a pipe that is full and that nobody reads.
class LocalRunUnread : public LocalRun {
 protected:
  std::unique_ptr<TestProcess> start_unread(const std::vector<std::string>& options,
                                            const std::vector<std::string>& program = {REKINDLE_TEST_RANK}) {
    const std::string path = folder_.at("unread");
    EXPECT_EQ(::mkfifo(path.c_str(), 0600), 0);
    reader_ = FileDescriptor(::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
    const std::string block(4096, 'x');
    while (::write(reader_.get(), block.data(), block.size()) > 0) continue;
    std::vector<std::string> words = command(options, kRanks);
    words.pop_back();
    words.insert(words.end(), program.begin(), program.end());
    return std::make_unique<TestProcess>(words, environment_, path);
  }
  FileDescriptor reader_;
};

TEST_F(LocalRunUnread, ADeathIsSavedAndTrainingGoesOn) {
  environment_["TEST_FAULT"] = "1:20:exit3";
  const auto run = start_unread({"--verbose"});
  EXPECT_EQ(run->wait(), 0);
  EXPECT_EQ(events("durable").size(), 1u);
  expect_undisturbed_end();
}

TEST_F(LocalRunUnread, RanksThatPrintALotTrainToTheEnd) {
  const auto run = start_unread({"--tag-output"},
                                {"/bin/sh", "-c", "yes 0123456789 | head -c 2000000; exec \"$0\"", REKINDLE_TEST_RANK});
  EXPECT_EQ(run->wait(), 0);
  expect_undisturbed_end();
}

TEST_F(LocalRun, EveryLineOfRanksThatPrintALotIsThere) {
  TestProcess run({REKINDLE_PROGRAM, "run", "-n", "2", "--tag-output", "--", "/usr/bin/seq", "1", "300000"},
                  environment_, folder_.at("log"));
  EXPECT_EQ(run.wait(), 0);
  std::istringstream lines(run.output());
  int next[] = {1, 1};
  for (std::string line; std::getline(lines, line);) {
    for (const int rank : {0, 1}) next[rank] += line == format("[rank {}] {}", rank, next[rank]) ? 1 : 0;
  }
  EXPECT_EQ(next[0], 300001);
  EXPECT_EQ(next[1], 300001);
}

// It left the group of its rank and prints on when that one is dead.
TEST_F(LocalRun, AProcessThatARankLeftBehindDoesNotHoldTheRunWithWhatItPrints) {
  TestProcess run({REKINDLE_PROGRAM, "run", "--tag-output", "--max-restarts", "0", "--", "/bin/sh", "-c",
                   "for i in 1 2 3 4; do setsid timeout 100 yes & done; until [ -s \"$0\" ]; do :; done; kill -KILL $$",
                   folder_.at("log")},
                  environment_, folder_.at("log"));
  EXPECT_EQ(run.wait(std::chrono::seconds(20)), 137);
}

TEST_F(LocalRun, ARunUnderNohupOutlivesItsTerminal) {
  environment_["TEST_STEP_MICROSECONDS"] = "10000";
  std::vector<std::string> words{"/bin/sh", "-c", "trap '' HUP; exec \"$0\" \"$@\""};
  const std::vector<std::string> under = command({}, kRanks);
  words.insert(words.end(), under.begin(), under.end());
  TestProcess run(words, environment_, folder_.at("log"));
  ASSERT_TRUE(eventually([&] { return number_in("step-0") >= 5; })) << run.output();
  run.signal(SIGHUP);
  EXPECT_EQ(run.wait(), 0) << run.output();
  expect_undisturbed_end();
}

// A traced process that is dead is not gone for its parent, like one that a device holds.
TEST_F(LocalRun, ARankThatTheKernelDoesNotEndEndsTheRun) {
  environment_["TEST_STEP_MICROSECONDS"] = "10000";
  environment_["TEST_STEPS"] = "100000";
  const auto run = start();
  ASSERT_TRUE(eventually([&] { return number_in("step-0") >= 5; })) << run->output();
  const std::vector<pid_t> ranks = ranks_of(*run);
  ASSERT_EQ(ranks.size(), static_cast<std::size_t>(kRanks));
  ASSERT_EQ(::ptrace(PTRACE_SEIZE, ranks[1], 0, 0), 0);
  ::kill(ranks[0], SIGKILL);
  EXPECT_EQ(run->wait(), 137) << run->output();
  EXPECT_TRUE(run->output().contains(format("rank 1 (process {}) does not end", ranks[1]))) << run->output();
  EXPECT_EQ(events("durable").size(), 1u);
  EXPECT_TRUE(events("restart").empty());
}

// Every thread but the one that supervises, as if each stood in a call to a disk that hangs.
class LocalRunStopped : public LocalRun {
 protected:
  void SetUp() override {
    LocalRun::SetUp();
    environment_["TEST_STEP_MICROSECONDS"] = "10000";
    environment_["TEST_STEPS"] = "100000";
    run_ = start({"--deadline", "1"});
    ASSERT_TRUE(eventually([&] { return number_in("step-0") >= 5; })) << run_->output();
    for (const auto& task : std::filesystem::directory_iterator(format("/proc/{}/task", run_->pid()))) {
      const pid_t thread = std::stoi(task.path().filename().string());
      if (thread == run_->pid()) continue;
      ASSERT_EQ(::ptrace(PTRACE_SEIZE, thread, 0, 0), 0);
      ASSERT_EQ(::ptrace(PTRACE_INTERRUPT, thread, 0, 0), 0);
      ASSERT_EQ(::waitpid(thread, nullptr, __WALL), thread);
      stopped_.push_back(thread);
    }
  }
  void TearDown() override {
    run_->signal(SIGKILL);
    ended();
  }
  // A traced thread is gone only when its tracer has looked.
  bool ended() {
    return eventually([&] {
      for (const pid_t thread : stopped_) ::waitpid(thread, nullptr, __WALL | WNOHANG);
      return !run_->running();
    });
  }

  std::unique_ptr<TestProcess> run_;
  std::vector<pid_t> stopped_;
};

TEST_F(LocalRunStopped, ASignalEndsTheRun) {
  run_->signal(SIGTERM);
  EXPECT_TRUE(ended());
  EXPECT_EQ(run_->wait(), 143);
}

TEST_F(LocalRunStopped, TheNextLifeWaitsForTheStorageAndASignalEndsTheWait) {
  ::kill(ranks_of(*run_)[0], SIGKILL);
  EXPECT_TRUE(eventually([&] { return run_->output().contains("when the storage of"); })) << run_->output();
  EXPECT_FALSE(run_->output().contains("restart 1 of")) << run_->output();
  run_->signal(SIGTERM);
  EXPECT_TRUE(ended());
  EXPECT_EQ(run_->wait(), 143);
  EXPECT_TRUE(run_->output().contains("ended by a signal")) << run_->output();
}

}  // namespace
}  // namespace rekindle::launcher
