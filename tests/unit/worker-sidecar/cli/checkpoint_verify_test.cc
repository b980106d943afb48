#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "common/base/format.h"
#include "common/base/json_fields.h"
#include "tests/unit/worker-sidecar/cli/run_checkpoint.h"
#include "tests/unit/worker-sidecar/cli/saved_job.h"

namespace rekindle::cli {
namespace {

using testing::HasSubstr;

class CheckpointVerify : public SavedJob {};

TEST_F(CheckpointVerify, WhatIsFineIsSaidToBe) {
  const Ran ran = run({"verify", folder_});
  EXPECT_EQ(ran.code, 0) << ran.out;
  EXPECT_NE(ran.out.find("a1-s100-x: fine"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("a1-s184-x: fine"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("a restart of team-a/digits restores a1-s184-x, step 184\n"), std::string::npos) << ran.out;
}

TEST_F(CheckpointVerify, NamesTheFileTheRangeAndTheTensors) {
  flip("a1-s184-x/rank-1.safetensors", 350);
  const std::uint64_t bytes = std::filesystem::file_size(folder_ + "/a1-s184-x/rank-1.safetensors");
  const Ran ran = run({"verify", folder_ + "/a1-s184-x"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_NE(ran.out.find(format("rank-1.safetensors bytes 0 to {}", bytes)), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("holds b1"), std::string::npos) << ran.out;
  const Json json = Json::parse(run({"verify", "-o", "json", root_.path()}).out);
  EXPECT_EQ(json.at("checkpoints").at(0).at("fine"), true);
  EXPECT_EQ(json.at("checkpoints").at(1).at("findings").at(0).at("file"), "rank-1.safetensors");
}

TEST_F(CheckpointVerify, SaysWhatOfADamagedOneIsWholeAndWhatARestartTakes) {
  flip("a1-s184-x/rank-1.safetensors", 350);
  const Ran ran = run({"verify", folder_ + "/a1-s184-x"});
  EXPECT_NE(ran.out.find("  whole: 1 of 5 tensors, 2 of 3 files\n"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("  no other checkpoint of the job has a copy of rank-1.safetensors\n"), std::string::npos)
      << ran.out;
  EXPECT_NE(ran.out.find("a restart of team-a/digits restores a1-s100-x, step 100\n"), std::string::npos) << ran.out;
  const Json json = Json::parse(run({"verify", "-o", "json", folder_ + "/a1-s184-x"}).out);
  EXPECT_EQ(json.at("restorable").at(0).at("checkpoint"), "a1-s100-x");
  EXPECT_EQ(json.at("checkpoints").at(0).at("remains").at("whole_files"),
            Json::parse(R"(["rank-0.safetensors","state-0.safetensors"])"));
}

TEST_F(CheckpointVerify, AnEqualFileOfAnotherCheckpointIsPointedOut) {
  save({1, 185, "y"}, make_memory(184, small_layout()));
  flip("a1-s184-x/rank-1.safetensors", 350);
  const Ran ran = run({"verify", folder_ + "/a1-s184-x"});
  EXPECT_NE(ran.out.find("  a1-s185-y/rank-1.safetensors is said to be the same file as rank-1.safetensors\n"),
            std::string::npos)
      << ran.out;
}

TEST_F(CheckpointVerify, DamagedSmallStateIsNamedByItsRanks) {
  flip("a1-s184-x/state-0.safetensors", 199);
  const Ran ran = run({"verify", folder_ + "/a1-s184-x"});
  EXPECT_NE(ran.out.find("  whole: 5 of 5 tensors, 2 of 3 files\n"), std::string::npos) << ran.out;
  for (const char* line : {"  the small state of rank 0 is damaged\n", "  the small state of rank 1 is damaged\n"}) {
    EXPECT_NE(ran.out.find(line), std::string::npos) << ran.out;
  }
}

TEST_F(CheckpointVerify, WhenNothingIsLeftItSaysSo) {
  flip("a1-s100-x/rank-0.safetensors", 100);
  flip("a1-s184-x/rank-0.safetensors", 100);
  const Ran ran = run({"verify", folder_});
  EXPECT_EQ(ran.code, 1);
  EXPECT_THAT(ran.out,
              HasSubstr("nothing of team-a/digits can be restored: every usable one is damaged, as said above\n"));
  EXPECT_TRUE(
      Json::parse(run({"verify", "-o", "json", folder_}).out).at("restorable").at(0).at("checkpoint").is_null());
}

TEST_F(CheckpointVerify, WhenNothingIsLeftItNamesTheCommandThatKnowsWhy) {
  flip("a1-s100-x/rank-0.safetensors", 100);
  flip("a1-s184-x/rank-0.safetensors", 100);
  EXPECT_THAT(run({"verify", folder_ + "/a1-s184-x"}).out,
              HasSubstr(format("`rekindle checkpoint verify {}` says where\n", folder_)));
  for (const char* name : {"a1-s100-x", "a1-s184-x"}) write_bytes(format("{}/{}/manifest.json", folder_, name), "{");
  EXPECT_THAT(run({"verify", folder_}).out, HasSubstr(format("`rekindle checkpoint ls {}` says why\n", folder_)));
}

TEST_F(CheckpointVerify, AnUnfinishedCheckpointGivenByNameIsAFault) {
  std::filesystem::create_directory(folder_ + "/a1-s190-x");
  EXPECT_EQ(run({"verify", folder_ + "/a1-s190-x"}).code, 1);
}

TEST_F(CheckpointVerify, SaysHowFarItIsWhenAsked) {
  EXPECT_EQ(run({"verify", folder_}).err, "");
  EXPECT_NE(run({"verify", "--progress", folder_}).err.find("verifying a1-s100-x: "), std::string::npos);
}

}  // namespace
}  // namespace rekindle::cli
