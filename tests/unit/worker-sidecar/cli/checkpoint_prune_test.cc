#include <gtest/gtest.h>

#include <filesystem>

#include "common/base/format.h"
#include "common/base/json_fields.h"
#include "tests/support/checkpoint_builder.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/worker-sidecar/cli/run_checkpoint.h"
#include "worker-sidecar/storage/attempt_store.h"

namespace rekindle::cli {
namespace {

class CheckpointPrune : public testing::Test {
 protected:
  CheckpointPrune()
      : folder_(open_job_folder(real_file_system(), {.root = root_.path(), .job = make_job(), .nonce = "n0"})->path) {
    EXPECT_TRUE(claim_attempt(real_file_system(), folder_, {}, "n1"));
    for (const std::uint64_t step : {1, 2, 3, 4, 5}) {
      EXPECT_TRUE(
          save_checkpoint(real_file_system(), folder_, make_job(), {1, step, "x"}, make_memory(step, small_layout())));
    }
  }
  bool is_there(const std::string& name) const { return std::filesystem::exists(format("{}/{}", folder_, name)); }

  TemporaryFolder root_;
  const std::string folder_;
};

TEST_F(CheckpointPrune, KeepsTheNewestAndSaysWhatItRemoved) {
  const Ran ran = run({"prune", "--keep", "2", folder_});
  EXPECT_EQ(ran.code, 0) << ran.err;
  for (const char* name : {"a1-s1-x", "a1-s2-x", "a1-s3-x"}) {
    EXPECT_NE(ran.out.find(std::string("removed ") + name), std::string::npos) << ran.out;
    EXPECT_FALSE(is_there(name));
  }
  EXPECT_TRUE(is_there("a1-s4-x"));
  EXPECT_TRUE(is_there("a1-s5-x"));
  EXPECT_NE(run({"prune", "--keep", "2", folder_}).out.find("nothing to remove"), std::string::npos);
}

TEST_F(CheckpointPrune, ADryRunRemovesNothing) {
  const Ran ran = run({"prune", "--dry-run", folder_});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.out.find("would remove a1-s2-x"), std::string::npos) << ran.out;
  EXPECT_TRUE(is_there("a1-s1-x"));
  const Json json = Json::parse(run({"prune", "--dry-run", "-o", "json", folder_}).out);
  EXPECT_EQ(json.at("removed").size(), 2u);
}

TEST_F(CheckpointPrune, WhatMayBeInTheMakingStays) {
  std::filesystem::create_directory(folder_ + "/a1-s6-y");
  EXPECT_EQ(run({"prune", "--keep", "1", folder_}).code, 0);
  EXPECT_TRUE(is_there("a1-s6-y"));
}

TEST_F(CheckpointPrune, OnlyTheFolderOfAJobIsPruned) {
  const Ran ran = run({"prune", folder_ + "/a1-s5-x"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_NE(ran.err.find("is not the folder of one job"), std::string::npos) << ran.err;
  EXPECT_EQ(run({"prune", "--keep", "0", folder_}).code, 2);
  EXPECT_TRUE(is_there("a1-s1-x"));
}

}  // namespace
}  // namespace rekindle::cli
