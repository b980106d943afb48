// The same calls in a process that has no sidecar, through the C functions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/format.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/worker-sidecar/runtime/c_session.h"
#include "worker-sidecar/storage/verifier.h"

namespace rekindle::runtime {
namespace {

using testing::CSession;
using ::testing::HasSubstr;

class StandAloneProcess : public ::testing::Test {
 protected:
  StandAloneProcess() { options.checkpoint_dir = root.path().c_str(); }
  void start(CSession& run) {
    ASSERT_EQ(run.open(options), RK_OK) << rk_last_error();
    ASSERT_EQ(run.restore(), RK_OK) << rk_last_error();
  }
  std::string job_folder() const { return root.at("local.local"); }
  // Trains to `step` and leaves a checkpoint there.
  std::string leave_checkpoint_at(std::uint64_t step) {
    CSession run;
    start(run);
    while (run.counter < step) EXPECT_EQ(run.one_step(), RK_OK);
    EXPECT_EQ(rk_checkpoint(run.session), RK_OK) << rk_last_error();
    run.close();
    for (const auto& entry : std::filesystem::directory_iterator(job_folder())) {
      const std::string name = entry.path().filename();
      if (name.find(format("-s{}-", step)) != std::string::npos) return name;
    }
    ADD_FAILURE() << "no checkpoint of step " << step;
    return "";
  }

  TemporaryFolder root;
  rk_options options{.struct_size = sizeof(rk_options)};
};

TEST_F(StandAloneProcess, ResumesWhereItsCheckpointWasMade) {
  const std::string name = leave_checkpoint_at(7);
  const Verification verification = verify_checkpoint(real_file_system(), job_folder(), name);
  EXPECT_TRUE(verification.fine()) << (verification.findings.empty() ? "" : verification.findings[0].message);
  EXPECT_EQ(verification.sealed->manifest.kind, CheckpointKind::periodic);
  // With microseconds, as a sidecar writes it.
  EXPECT_EQ(verification.sealed->manifest.time.size(), std::size("2026-01-31T12:00:00.123456Z") - 1);
  CSession run;
  start(run);
  EXPECT_EQ(run.position.step, 7u);
  EXPECT_EQ(run.position.attempt, 2u);
  EXPECT_EQ(run.position.path, format("{}/{}", job_folder(), name));
  EXPECT_EQ(run.counter, 7u);
  EXPECT_EQ(run.weights[5], 7.0f);
  EXPECT_EQ(run.statistics[1], 7.0);
  EXPECT_EQ(run.one_step(), RK_OK);
  EXPECT_EQ(run.close(), 0);
}

TEST_F(StandAloneProcess, ACheckpointHoldsTheCommitNotWhatTheForwardPassChanged) {
  {
    CSession run;
    start(run);
    ASSERT_EQ(run.one_step(), RK_OK);
    run.statistics.fill(-1);
    ASSERT_EQ(rk_checkpoint(run.session), RK_OK);
  }
  CSession again;
  start(again);
  EXPECT_EQ(again.statistics[0], 1.0);
}

TEST_F(StandAloneProcess, AnAbandonedLineIsNotContinuedAlthoughItsStepIsHigher) {
  const std::string first = leave_checkpoint_at(3);
  const std::string abandoned = leave_checkpoint_at(9);
  // Somebody takes the newer one away, trains on from the older one, and puts it back.
  std::filesystem::rename(format("{}/{}", job_folder(), abandoned), root.at("aside"));
  leave_checkpoint_at(5);
  std::filesystem::rename(root.at("aside"), format("{}/{}", job_folder(), abandoned));
  CSession run;
  start(run);
  EXPECT_EQ(run.position.step, 5u);
}

TEST_F(StandAloneProcess, ADamagedNewestCheckpointGivesWayToTheOneBefore) {
  leave_checkpoint_at(3);
  const std::string newest = leave_checkpoint_at(6);
  const std::string file = format("{}/{}/rank-0.safetensors", job_folder(), newest);
  std::string bytes = read_bytes(file);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  write_bytes(file, bytes);
  ::testing::internal::CaptureStderr();
  CSession run;
  start(run);
  EXPECT_EQ(run.position.step, 3u);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr(newest));
}

TEST_F(StandAloneProcess, OnlyDamagedCheckpointsAreNoReasonToBeginAtZero) {
  const std::string name = leave_checkpoint_at(3);
  const std::string manifest = format("{}/{}/manifest.json", job_folder(), name);
  write_bytes(manifest, read_bytes(manifest).substr(0, 50));
  CSession run;
  ASSERT_EQ(run.open(options), RK_OK);
  EXPECT_EQ(run.restore(), RK_ERROR_CORRUPT);
  EXPECT_THAT(rk_last_error(), HasSubstr(name));
  EXPECT_EQ(run.close(), 1);
}

TEST_F(StandAloneProcess, AChangedProgramIsToldTheDifferences) {
  leave_checkpoint_at(3);
  CSession run;
  ASSERT_EQ(run.open(options), RK_OK);
  std::array<float, 2> more{};
  const rk_tensor bias{
      .struct_size = sizeof(rk_tensor), .name = "bias", .data = more.data(), .dtype = RK_F32, .rank = 1, .shape = {2}};
  ASSERT_EQ(rk_register(run.session, &bias), RK_OK);
  EXPECT_EQ(run.restore(), RK_ERROR_MISMATCH);
  EXPECT_THAT(rk_last_error(), HasSubstr("bias"));
}

TEST_F(StandAloneProcess, KeepsTheThreeNewestCheckpoints) {
  CSession run;
  start(run);
  for (int i = 0; i < 5; ++i) {
    ASSERT_EQ(run.one_step(), RK_OK);
    ASSERT_EQ(rk_checkpoint(run.session), RK_OK) << rk_last_error();
  }
  int folders = 0;
  for (const auto& entry : std::filesystem::directory_iterator(job_folder()))
    folders += entry.path().filename().string().starts_with("a1-s");
  EXPECT_EQ(folders, 3);
}

TEST_F(StandAloneProcess, TrainsWithoutAFolderAndSaysWhatACheckpointNeeds) {
  options.checkpoint_dir = "";
  CSession run;
  start(run);
  ASSERT_EQ(run.one_step(), RK_OK);
  EXPECT_EQ(rk_checkpoint(run.session), RK_ERROR_STATE);
  EXPECT_THAT(rk_last_error(), HasSubstr("REKINDLE_CHECKPOINT_DIR"));
}

TEST_F(StandAloneProcess, AFolderThatCannotBeUsedIsRefusedAtOpenWithItsName) {
  write_bytes(root.at("file"), "this is a file");
  const std::string file = root.at("file");
  options.checkpoint_dir = file.c_str();
  CSession run;
  EXPECT_EQ(run.open(options), RK_ERROR_STORAGE);
  EXPECT_THAT(rk_last_error(), HasSubstr(file));
}

TEST_F(StandAloneProcess, AJobNameThatIsNoFolderNameIsAnArgumentError) {
  options.job = "../up";
  CSession run;
  EXPECT_EQ(run.open(options), RK_ERROR_ARGUMENT);
}

TEST_F(StandAloneProcess, AProcessHasOneSession) {
  CSession first;
  start(first);
  CSession second;
  EXPECT_EQ(second.open(options), RK_ERROR_STATE);
  EXPECT_THAT(rk_last_error(), HasSubstr("a session is open already"));
}

TEST_F(StandAloneProcess, HandlesThatAreNoneAreRefused) {
  EXPECT_EQ(rk_step_begin(nullptr, 1), RK_ERROR_ARGUMENT);
  EXPECT_THAT(rk_last_error(), HasSubstr("the session is NULL"));
  EXPECT_EQ(rk_open(&options, nullptr), RK_ERROR_ARGUMENT);
  EXPECT_EQ(rk_close(nullptr), 0);
  CSession run;
  start(run);
  rk_session* const closed = run.session;
  run.close();
  EXPECT_EQ(rk_step_begin(closed, 1), RK_ERROR_ARGUMENT);
  EXPECT_THAT(rk_last_error(), HasSubstr("not open"));
}

TEST_F(StandAloneProcess, NullArgumentsAreNamed) {
  CSession run;
  start(run);
  EXPECT_EQ(rk_register(run.session, nullptr), RK_ERROR_ARGUMENT);
  EXPECT_THAT(rk_last_error(), HasSubstr("tensor is NULL"));
  EXPECT_EQ(rk_restore(run.session, nullptr), RK_ERROR_ARGUMENT);
  EXPECT_THAT(rk_last_error(), HasSubstr("position is NULL"));
  EXPECT_EQ(rk_register_state(run.session, nullptr, nullptr, 0), RK_ERROR_ARGUMENT);
  EXPECT_EQ(rk_move(run.session, nullptr, nullptr), RK_ERROR_ARGUMENT);
  EXPECT_EQ(rk_unregister(run.session, nullptr), RK_ERROR_ARGUMENT);
}

}  // namespace
}  // namespace rekindle::runtime
