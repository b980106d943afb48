// Periodic checkpoints of a process without a sidecar, through the C functions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "common/base/format.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/worker-sidecar/runtime/c_session.h"
#include "worker-sidecar/storage/verifier.h"

namespace rekindle::runtime {
namespace {

using testing::CSession;

class ProcessThatSavesByItself : public ::testing::Test {
 protected:
  ProcessThatSavesByItself() { options.checkpoint_dir = root.path().c_str(); }
  ~ProcessThatSavesByItself() override {
    for (const char* name : {"REKINDLE_CHECKPOINT_EVERY", "REKINDLE_KEEP", "REKINDLE_RESUME", "REKINDLE_JOB_UID"})
      ::unsetenv(name);
  }
  void start(CSession& run) {
    ASSERT_EQ(run.open(options), RK_OK) << rk_last_error();
    ASSERT_EQ(run.restore(), RK_OK) << rk_last_error();
  }
  std::vector<std::string> folders() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(root.at("local.local"))) {
      if (entry.path().filename().string().starts_with("a") && entry.path().filename() != "attempts")
        names.push_back(entry.path().filename());
    }
    return names;
  }
  // Steps until a checkpoint is there; the number of steps bounds it, not time.
  void train_until_saved(CSession& run) {
    for (int i = 0; i < 2'000'000 && published() == 0; ++i) ASSERT_EQ(run.one_step(), RK_OK) << rk_last_error();
    ASSERT_GT(published(), 0u);
  }
  std::size_t published() const {
    std::size_t count = 0;
    for (const std::string& name : folders())
      count += std::filesystem::exists(root.at(format("local.local/{}/manifest.json", name)));
    return count;
  }

  TemporaryFolder root;
  rk_options options{.struct_size = sizeof(rk_options)};
};

TEST_F(ProcessThatSavesByItself, ResumesFromAStepThatNobodyAskedToSave) {
  ::setenv("REKINDLE_CHECKPOINT_EVERY", "10 steps", 1);
  {
    CSession run;
    start(run);
    train_until_saved(run);
  }
  CSession again;
  start(again);
  EXPECT_GT(again.position.step, 0u);
  EXPECT_EQ(again.position.step % 10, 0u);
  EXPECT_EQ(again.counter, again.position.step);
  EXPECT_EQ(again.weights[3], static_cast<float>(again.position.step));
  EXPECT_EQ(again.statistics[0], static_cast<double>(again.position.step));
}

TEST_F(ProcessThatSavesByItself, WhatItWroteVerifiesAndIsPeriodic) {
  ::setenv("REKINDLE_CHECKPOINT_EVERY", "10 steps", 1);
  {
    CSession run;
    start(run);
    train_until_saved(run);
  }
  for (const std::string& name : folders()) {
    const Verification verification = verify_checkpoint(real_file_system(), root.at("local.local"), name);
    EXPECT_TRUE(verification.fine()) << verification.findings[0].message;
    EXPECT_EQ(verification.sealed->manifest.kind, CheckpointKind::periodic);
    EXPECT_EQ(verification.sealed->manifest.trigger.detail, "every 10 steps");
  }
}

TEST_F(ProcessThatSavesByItself, KeepsAsManyAsItWasTold) {
  ::setenv("REKINDLE_CHECKPOINT_EVERY", "1 steps", 1);
  ::setenv("REKINDLE_KEEP", "1", 1);
  CSession run;
  start(run);
  train_until_saved(run);
  const std::vector<std::string> first = folders();
  for (int i = 0; i < 2'000'000 && folders() == first; ++i) ASSERT_EQ(run.one_step(), RK_OK);
  run.close();
  EXPECT_EQ(published(), 1u);
}

TEST_F(ProcessThatSavesByItself, ATensorThatAppearsLateIsInTheNextOne) {
  ::setenv("REKINDLE_CHECKPOINT_EVERY", "10 steps", 1);
  std::array<float, 3> late{};
  {
    CSession run;
    start(run);
    ASSERT_EQ(run.one_step(), RK_OK);
    const rk_tensor moments{.struct_size = sizeof(rk_tensor),
                            .name = "moments",
                            .data = late.data(),
                            .dtype = RK_F32,
                            .rank = 1,
                            .shape = {3}};
    ASSERT_EQ(rk_register(run.session, &moments), RK_OK) << rk_last_error();
    train_until_saved(run);
  }
  bool found = false;
  for (const std::string& name : folders()) {
    const Verification verification = verify_checkpoint(real_file_system(), root.at("local.local"), name);
    ASSERT_TRUE(verification.sealed);
    for (const ManifestTensor& tensor : verification.sealed->manifest.tensors)
      found = found || tensor.name == "moments";
  }
  EXPECT_TRUE(found);
}

TEST_F(ProcessThatSavesByItself, AWrongRhythmIsRefusedWhenItOpens) {
  ::setenv("REKINDLE_CHECKPOINT_EVERY", "now and then", 1);
  CSession run;
  EXPECT_EQ(run.open(options), RK_ERROR_ARGUMENT);
  EXPECT_THAT(rk_last_error(), ::testing::HasSubstr("REKINDLE_CHECKPOINT_EVERY=now and then"));
}

TEST_F(ProcessThatSavesByItself, AJobThatResumesFromItsOwnOnlyLeavesThoseOfItsName) {
  ::setenv("REKINDLE_CHECKPOINT_EVERY", "10 steps", 1);
  ::setenv("REKINDLE_JOB_UID", "first", 1);
  {
    CSession run;
    start(run);
    train_until_saved(run);
  }
  ::setenv("REKINDLE_RESUME", "same-job", 1);
  {
    CSession same;
    start(same);
    EXPECT_GT(same.position.step, 0u);
  }
  ::setenv("REKINDLE_JOB_UID", "second", 1);
  CSession other;
  start(other);
  EXPECT_EQ(other.position.step, 0u);
}

}  // namespace
}  // namespace rekindle::runtime
