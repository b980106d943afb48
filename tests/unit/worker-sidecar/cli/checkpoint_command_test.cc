#include <gtest/gtest.h>

#include <filesystem>

#include "common/base/json_fields.h"
#include "tests/support/checkpoint_builder.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/worker-sidecar/cli/run_checkpoint.h"
#include "worker-sidecar/storage/attempt_store.h"

namespace rekindle {
namespace {

class CheckpointCommand : public testing::Test {
 protected:
  CheckpointCommand() : folder_(open_job_folder(real_file_system(), {.root = root_.path(), .job = make_job(), .nonce = "n0"})->path) {
    EXPECT_TRUE(claim_attempt(real_file_system(), folder_, {}, "n1"));
    for (const std::uint64_t step : {100, 184}) {
      EXPECT_TRUE(save_checkpoint(real_file_system(), folder_, make_job(), {1, step, "x"}, make_memory(step, small_layout())));
    }
    std::filesystem::create_directory(folder_ + "/a1-s190-x");
  }

  TemporaryFolder root_;
  const std::string folder_;
};

TEST_F(CheckpointCommand, ListsInTheOrderOfARestoreWithReasons) {
  const Ran ran = run({"ls", root_.path()});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out.substr(0, ran.out.find('\n')), "team-a/digits in " + std::filesystem::canonical(folder_).string());
  const std::size_t next = ran.out.find("a1-s184-x");
  const std::size_t older = ran.out.find("a1-s100-x");
  ASSERT_NE(next, std::string::npos) << ran.out;
  EXPECT_LT(next, older);
  EXPECT_NE(ran.out.find("incomplete: it has no manifest"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("2/2"), std::string::npos) << "the ranks: " << ran.out;
}

TEST_F(CheckpointCommand, ListsAsJson) {
  const Ran ran = run({"ls", "-o", "json", folder_});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json json = Json::parse(ran.out);
  const Json& checkpoints = json.at("jobs").at(0).at("checkpoints");
  ASSERT_EQ(checkpoints.size(), 3u);
  EXPECT_EQ(checkpoints[0].at("checkpoint"), "a1-s184-x");
  EXPECT_EQ(checkpoints[0].at("state"), "next");
  EXPECT_EQ(checkpoints[0].at("live_ranks"), 2);
  EXPECT_EQ(checkpoints[1].at("state"), "usable");
  EXPECT_EQ(checkpoints[2].at("state"), "incomplete");
}

TEST_F(CheckpointCommand, WhatIsNoneOfOursIsListedAndLeftAlone) {
  std::filesystem::create_directory(folder_ + "/old stuff");
  write_bytes(folder_ + "/a1-s184-x/manifest.json", "{");
  const Ran ran = run({"ls", folder_});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.out.find("note: \"old stuff\" is no name that a checkpoint has, and is left alone"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("refused: "), std::string::npos) << ran.out;
}

TEST_F(CheckpointCommand, ABrokenJobIsReportedAndTheOthersAreListed) {
  std::filesystem::create_directories(root_.at("team-b.broken/attempts"));
  write_bytes(root_.at("team-b.broken/job.json"), "{");
  const Ran ran = run({"ls", root_.path()});
  EXPECT_EQ(ran.code, 1);
  EXPECT_NE(ran.err.find("team-b.broken/job.json"), std::string::npos) << ran.err;
  EXPECT_NE(ran.out.find("a1-s184-x"), std::string::npos) << ran.out;
}

TEST_F(CheckpointCommand, ShowsTensorsStatesAndFiles) {
  const Ran ran = run({"show", folder_});
  EXPECT_EQ(ran.code, 0) << ran.err;
  for (const char* words : {"a1-s184-x", "[5, 3]", "[]", "sampler", "rank-1.safetensors", "pre_stop (digits-worker-0)", "2/2 lived when it was made"}) {
    EXPECT_NE(ran.out.find(words), std::string::npos) << words << "\n" << ran.out;
  }
  const Json json = Json::parse(run({"show", "-o", "json", folder_ + "/a1-s100-x"}).out);
  EXPECT_EQ(json.at("checkpoints").at(0).at("manifest").at("step"), 100);
}

TEST_F(CheckpointCommand, AWrongCommandLineIsTwoAndHelpIsNoMistake) {
  EXPECT_EQ(run({}).code, 2);
  EXPECT_EQ(run({"frobnicate"}).code, 2);
  EXPECT_EQ(run({"ls"}).code, 2);
  EXPECT_EQ(run({"ls", "-o", "xml", folder_}).code, 2);
  EXPECT_EQ(run({"export", folder_}).code, 2);
  EXPECT_EQ(run({"--help"}).code, 0);
}

TEST_F(CheckpointCommand, AFolderWithoutCheckpointsSaysWhatToGive) {
  std::filesystem::create_directory(root_.at("elsewhere"));
  const Ran ran = run({"ls", root_.at("elsewhere")});
  EXPECT_EQ(ran.code, 2);
  EXPECT_NE(ran.err.find("Give a checkpoint, the folder of a job"), std::string::npos) << ran.err;
  EXPECT_EQ(run({"ls", root_.at("missing")}).code, 2);
}

}  // namespace
}  // namespace rekindle
