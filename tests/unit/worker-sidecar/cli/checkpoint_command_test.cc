#include <gtest/gtest.h>

#include <filesystem>

#include "common/base/json_fields.h"
#include "tests/support/checkpoint_builder.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/worker-sidecar/cli/run_checkpoint.h"
#include "worker-sidecar/storage/attempt_store.h"

namespace rekindle::cli {
namespace {

class CheckpointCommand : public testing::Test {
 protected:
  CheckpointCommand()
      : folder_(open_job_folder(real_file_system(), {.root = root_.path(), .job = make_job(), .nonce = "n0"})->path) {
    EXPECT_TRUE(claim_attempt(real_file_system(), folder_, {}, "n1"));
    for (const std::uint64_t step : {100, 184}) {
      EXPECT_TRUE(
          save_checkpoint(real_file_system(), folder_, make_job(), {1, step, "x"}, make_memory(step, small_layout())));
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
  EXPECT_NE(ran.out.find("note: \"old stuff\" is no name that a checkpoint has, and is left alone"), std::string::npos)
      << ran.out;
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

TEST_F(CheckpointCommand, AJobThatLostItsRecordsIsStillFound) {
  std::filesystem::remove_all(folder_ + "/attempts");
  std::filesystem::remove(folder_ + "/job.json");
  for (const std::string& directory : {folder_, root_.path()}) {
    const Ran ran = run({"ls", directory});
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_NE(ran.out.find("a1-s184-x"), std::string::npos) << ran.out;
  }
}

TEST_F(CheckpointCommand, ExitCodesAreFineWrongAndCannot) {
  const std::string fine = folder_ + "/a1-s100-x";
  const std::string damaged = folder_ + "/a1-s184-x";
  const std::string missing = root_.at("missing");
  std::string bytes = read_bytes(damaged + "/rank-0.safetensors");
  bytes.back() ^= 1;
  write_bytes(damaged + "/rank-0.safetensors", bytes);
  const std::string model = root_.at("model.ckpt");
  write_bytes(model, "no such file");
  const struct {
    std::vector<std::string> arguments;
    int code;
  } cases[] = {
      {{"ls", folder_}, 0},
      {{"ls", missing}, 2},
      {{"show", fine}, 0},
      {{"show", missing}, 2},
      {{"show", folder_ + "/a1-s190-x"}, 2},
      {{"verify", fine}, 0},
      {{"verify", damaged}, 1},
      {{"verify", missing}, 2},
      {{"diff", fine, fine}, 0},
      {{"diff", fine, damaged}, 1},
      {{"diff", fine, missing}, 2},
      {{"export", fine, root_.at("exported")}, 0},
      {{"export", damaged, root_.at("other")}, 1},
      {{"export", missing, root_.at("other")}, 2},
      {{"import", root_.at("exported"), "--root", root_.path(), "--job", "a.b", "--step", "1"}, 0},
      {{"import", model, "--root", root_.path(), "--job", "a.c", "--step", "1"}, 1},
      {{"import", missing, "--root", root_.path(), "--job", "a.c", "--step", "1"}, 2},
      {{"prune", "--dry-run", folder_}, 0},
      {{"prune", missing}, 2},
      {{"groups", missing}, 2},
      {{"verify", "--frobnicate", fine}, 2},
  };
  for (const auto& [arguments, code] : cases) {
    const Ran ran = run(arguments);
    EXPECT_EQ(ran.code, code) << testing::PrintToString(arguments) << ": " << ran.out << ran.err;
    EXPECT_TRUE(code == 0 || !ran.err.empty() || !ran.out.empty())
        << testing::PrintToString(arguments) << " says nothing";
  }
}

TEST_F(CheckpointCommand, ShowsTensorsStatesAndFiles) {
  const Ran ran = run({"show", folder_});
  EXPECT_EQ(ran.code, 0) << ran.err;
  for (const char* words : {"a1-s184-x", "[5, 3]", "[]", "sampler", "rank-1.safetensors", "pre_stop (digits-worker-0)",
                            "2/2 lived when it was made"}) {
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
}  // namespace rekindle::cli
