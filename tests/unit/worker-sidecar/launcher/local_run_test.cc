// `rekindle run` outside a pod, with real processes that train, die and come back.
#include "tests/unit/worker-sidecar/launcher/local_run.h"

#include "common/base/format.h"

namespace rekindle::launcher {
namespace {

namespace fs = std::filesystem;

TEST_F(LocalRun, UndisturbedRanksEndWithZeroAndLeaveNoCheckpoint) {
  const auto run = start();
  EXPECT_EQ(run->wait(), 0) << run->output();
  expect_undisturbed_end();
  EXPECT_TRUE(events("durable").empty());
  EXPECT_EQ(events("finished").size(), 1u);
}

struct Kill {
  const char* name;
  const char* fault;    // TEST_FAULT
  std::uint64_t saved;  // the step that has to be saved
};

class LocalRunKilled : public LocalRun, public testing::WithParamInterface<Kill> {};

TEST_P(LocalRunKilled, GoesOnWithTheNextStepAndEndsAsIfNothingHadHappened) {
  environment_["TEST_FAULT"] = GetParam().fault;
  const auto run = start();
  EXPECT_EQ(run->wait(), 0) << run->output();
  expect_undisturbed_end();
  ASSERT_EQ(events("durable").size(), 1u) << run->output();
  EXPECT_EQ(events("durable")[0]["step"], GetParam().saved);
  EXPECT_EQ(events("rank_died").size(), 1u);
  EXPECT_EQ(number_in("first-0-2"), GetParam().saved + 1);
  EXPECT_EQ(number_in("first-1-2"), GetParam().saved + 1);
}

INSTANTIATE_TEST_SUITE_P(Moments, LocalRunKilled,
                         testing::Values(Kill{"Computing", "1:20:computing", 19}, Kill{"Updating", "0:20:updating", 20},
                                         Kill{"AfterTheCommit", "2:20:committed", 20},
                                         Kill{"ByExitCode", "1:9:exit3", 8}),
                         [](const auto& kill) { return kill.param.name; });

TEST_F(LocalRun, ADeathBeforeTrainingBeganIsRestartedWithNothingLost) {
  environment_["TEST_FAULT"] = "1:0:before_open";
  const auto run = start();
  EXPECT_EQ(run->wait(), 0) << run->output();
  expect_undisturbed_end();
}

TEST_F(LocalRun, WithoutRestartsTheExitCodeIsThatOfTheRankThatFailedFirst) {
  environment_["TEST_FAULT"] = "1:20:exit3";
  const auto run = start({"--max-restarts", "0"});
  EXPECT_EQ(run->wait(), 3) << run->output();
  EXPECT_EQ(events("durable").size(), 1u);
}

TEST_F(LocalRun, SigtermSavesThenEndsWith143AndTheNextRunGoesOn) {
  environment_["TEST_STEP_MICROSECONDS"] = "10000";
  {
    const auto run = start();
    ASSERT_TRUE(eventually([&] { return number_in("step-0") >= 5; })) << run->output();
    run->signal(SIGTERM);
    EXPECT_EQ(run->wait(), 143) << run->output();
  }
  ASSERT_EQ(events("durable").size(), 1u);
  const std::uint64_t saved = events("durable")[0]["step"];
  environment_["TEST_STEP_MICROSECONDS"] = "100";
  const auto run = start();
  EXPECT_EQ(run->wait(), 0) << run->output();
  EXPECT_EQ(number_in("first-0-2"), saved + 1);
  expect_undisturbed_end();
}

// It was lost in three of five runs: rk_close freed what was still to be read.
TEST_F(LocalRun, TheCheckpointOfTheLastStepIsThereWhenTheProgramHasEnded) {
  environment_["TEST_ASK_STEP"] = environment_.at("TEST_STEPS");
  const auto run = start();
  EXPECT_EQ(run->wait(), 0) << run->output();
  ASSERT_EQ(events("durable").size(), 1u) << run->output();
  EXPECT_EQ(std::to_string(events("durable")[0]["step"].get<std::uint64_t>()), environment_.at("TEST_STEPS"));
}

TEST_F(LocalRun, Sigusr1SavesAndTrainingGoesOn) {
  environment_["TEST_STEP_MICROSECONDS"] = "10000";
  const auto run = start();
  ASSERT_TRUE(eventually([&] { return number_in("step-0") >= 5; })) << run->output();
  run->signal(SIGUSR1);
  EXPECT_EQ(run->wait(), 0) << run->output();
  EXPECT_EQ(events("durable").size(), 1u);
  EXPECT_TRUE(events("restart").empty());
  expect_undisturbed_end();
}

TEST_F(LocalRun, AKilledLauncherTakesItsRanksAlong) {
  environment_["TEST_STEP_MICROSECONDS"] = "10000";
  const auto run = start();
  ASSERT_TRUE(eventually([&] { return number_in("step-0") >= 3; })) << run->output();
  const std::vector<pid_t> ranks = ranks_of(*run);
  ASSERT_EQ(ranks.size(), static_cast<std::size_t>(kRanks));
  run->signal(SIGKILL);
  EXPECT_EQ(run->wait(), 137);
  for (const pid_t rank : ranks)
    EXPECT_TRUE(eventually([&] {
      return !fs::exists(format("/proc/{}", rank)) || read_bytes(format("/proc/{}/stat", rank)).contains(") Z");
    }));
}

TEST_F(LocalRun, ASecondRunOfTheSameJobInTheSameFolderIsRefusedByName) {
  environment_["TEST_STEP_MICROSECONDS"] = "10000";
  const auto first = start();
  ASSERT_TRUE(eventually([&] { return number_in("step-0") >= 3; })) << first->output();
  TestProcess second({REKINDLE_PROGRAM, "run", "--", REKINDLE_TEST_RANK}, environment_, folder_.at("second"));
  EXPECT_EQ(second.wait(), 1);
  EXPECT_TRUE(second.output().contains(folder_.at("checkpoints"))) << second.output();
  EXPECT_TRUE(second.output().contains("--job")) << second.output();
  EXPECT_EQ(first->wait(), 0) << first->output();
}

TEST_F(LocalRun, AFolderThatCannotBeUsedEndsTheRunBeforeTrainingAndOnce) {
  fs::create_directory(folder_.at("checkpoints"));
  write_bytes(folder_.at("checkpoints/local.local"), "in the way");
  const auto run = start();
  EXPECT_EQ(run->wait(), 8) << run->output();  // the ranks' own: rk_open failed
  EXPECT_TRUE(run->output().contains(folder_.at("checkpoints"))) << run->output();
  EXPECT_TRUE(events("restart").empty());
  EXPECT_EQ(number_in("step-0"), 0u);
}

TEST_F(LocalRun, AFolderThatCannotBeMadeEndsTheRunBeforeAnyRankStarts) {
  write_bytes(folder_.at("file"), "in the way");
  environment_["REKINDLE_CHECKPOINT_DIR"] = folder_.at("file/checkpoints");
  const auto run = start();
  EXPECT_EQ(run->wait(), 1) << run->output();
  EXPECT_TRUE(run->output().contains(folder_.at("file/checkpoints"))) << run->output();
  EXPECT_TRUE(events().empty());
}

TEST_F(LocalRun, ADamagedLastCheckpointStopsTheRunInsteadOfStartingAfresh) {
  environment_["TEST_FAULT"] = "1:20:exit3";
  EXPECT_EQ(start({"--max-restarts", "0"})->wait(), 3);
  std::string path = events("durable")[0]["path"];
  const std::string manifest = folder_.at(format("checkpoints/local.local/{}/manifest.json", path));
  fs::resize_file(manifest, fs::file_size(manifest) / 2);
  const auto run = start({"--max-restarts", "0"});
  EXPECT_EQ(run->wait(), 8) << run->output();  // the ranks' own: rk_restore failed
  EXPECT_TRUE(run->output().contains(path)) << run->output();
  EXPECT_FALSE(fs::exists(folder_.at("out/first-0-2")));
}

TEST_F(LocalRun, WhatIsWrongWithACheckpointIsSaidOnceHoweverManyRanksAreRefused) {
  environment_["TEST_FAULT"] = "1:20:exit3";
  EXPECT_EQ(start({"--max-restarts", "0"})->wait(), 3);
  const std::string path = events("durable")[0]["path"];
  for (const auto& entry : fs::directory_iterator(folder_.at(format("checkpoints/local.local/{}", path)))) {
    if (entry.path().filename() != "manifest.json") fs::resize_file(entry.path(), fs::file_size(entry.path()) / 2);
  }
  const auto run = start({"--max-restarts", "0"});
  EXPECT_EQ(run->wait(), 8) << run->output();
  std::istringstream lines(run->output());
  int said = 0;
  for (std::string line; std::getline(lines, line);)
    said += line.starts_with("rekindle: ") && line.contains("none can be used") ? 1 : 0;
  EXPECT_EQ(said, 1) << run->output();
}

TEST_F(LocalRun, AWrongSettingIsCalledAsItWasGiven) {
  const auto by_option = start({"--keep", "0"});
  EXPECT_EQ(by_option->wait(), 2);
  EXPECT_TRUE(by_option->output().contains("rekindle: --keep=0 is not")) << by_option->output();
  environment_["REKINDLE_KEEP"] = "0";
  TestProcess by_variable(command({}, kRanks), environment_, folder_.at("by-variable"));
  EXPECT_EQ(by_variable.wait(), 2);
  EXPECT_TRUE(by_variable.output().contains("rekindle: REKINDLE_KEEP=0 is not")) << by_variable.output();
}

TEST_F(LocalRun, OutputIsTaggedLineByLine) {
  TestProcess run(
      {REKINDLE_PROGRAM, "run", "-n", "2", "--tag-output", "--", "/bin/sh", "-c", "echo one; printf two; echo err >&2"},
      environment_, folder_.at("log"));
  EXPECT_EQ(run.wait(), 0);
  for (const char* line : {"[rank 0] one\n", "[rank 1] one\n", "[rank 0] two\n", "[rank 1] err\n"})
    EXPECT_TRUE(run.output().contains(line)) << run.output();
}

TEST_F(LocalRun, ACommandThatDoesNotExistIsNotTriedTenTimes) {
  TestProcess run({REKINDLE_PROGRAM, "run", "--", "no-such-program"}, environment_, folder_.at("log"));
  EXPECT_EQ(run.wait(), 127);
  EXPECT_TRUE(run.output().contains("no-such-program")) << run.output();
}

TEST_F(LocalRun, RanksKnowTheirPlaceAndTheMaster) {
  environment_["VC_WORKER_HOSTS"] = "digits-worker-0.digits,digits-worker-1.digits";
  TestProcess run({REKINDLE_PROGRAM, "run", "-n", "2", "--", "/bin/sh", "-c",
                   "echo $REKINDLE_RANK/$REKINDLE_WORLD_SIZE $RANK_ID/$RANK_SIZE $LOCAL_RANK $MASTER_ADDR"},
                  environment_, folder_.at("log"));
  EXPECT_EQ(run.wait(), 0);
  EXPECT_TRUE(run.output().contains("1/2 1/2 1 digits-worker-0.digits\n")) << run.output();
}

}  // namespace
}  // namespace rekindle::launcher
