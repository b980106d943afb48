#include <gtest/gtest.h>

#include <filesystem>

#include "common/base/json_fields.h"
#include "tests/support/checkpoint_builder.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/worker-sidecar/cli/run_checkpoint.h"
#include "worker-sidecar/checkpoint/hash.h"
#include "worker-sidecar/checkpoint/safetensors.h"
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
  void flip(const std::string& file, std::size_t place) {
    std::string bytes = read_bytes(folder_ + "/" + file);
    bytes.at(place) = static_cast<char>(bytes.at(place) ^ 1);
    write_bytes(folder_ + "/" + file, bytes);
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

TEST_F(CheckpointCommand, ShowsTensorsStatesAndFiles) {
  const Ran ran = run({"show", folder_});
  EXPECT_EQ(ran.code, 0) << ran.err;
  for (const char* words : {"a1-s184-x", "5 x 3", "scalar", "sampler", "rank-1.safetensors", "pre_stop (digits-worker-0)", "2/2 lived when it was made"}) {
    EXPECT_NE(ran.out.find(words), std::string::npos) << words << "\n" << ran.out;
  }
  const Json json = Json::parse(run({"show", "-o", "json", folder_ + "/a1-s100-x"}).out);
  EXPECT_EQ(json.at("checkpoints").at(0).at("manifest").at("step"), 100);
}

TEST_F(CheckpointCommand, VerifiesWhatIsFine) {
  const Ran ran = run({"verify", folder_});
  EXPECT_EQ(ran.code, 0) << ran.out;
  EXPECT_NE(ran.out.find("a1-s100-x: fine"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("a1-s184-x: fine"), std::string::npos) << ran.out;
}

TEST_F(CheckpointCommand, VerifyNamesTheFileTheRangeAndTheTensors) {
  flip("a1-s184-x/rank-1.safetensors", 350);
  const std::uint64_t bytes = std::filesystem::file_size(folder_ + "/a1-s184-x/rank-1.safetensors");
  const Ran ran = run({"verify", folder_ + "/a1-s184-x"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_NE(ran.out.find("rank-1.safetensors bytes 0 to " + std::to_string(bytes)), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("holds b1"), std::string::npos) << ran.out;
  const Json json = Json::parse(run({"verify", "-o", "json", root_.path()}).out);
  EXPECT_EQ(json.at("checkpoints").at(0).at("fine"), true);
  EXPECT_EQ(json.at("checkpoints").at(1).at("findings").at(0).at("file"), "rank-1.safetensors");
}

TEST_F(CheckpointCommand, AnUnfinishedCheckpointGivenByNameIsAFault) {
  EXPECT_EQ(run({"verify", folder_ + "/a1-s190-x"}).code, 1);
}

TEST_F(CheckpointCommand, ExportsWholeTensors) {
  const std::string target = root_.at("all.safetensors");
  const Ran ran = run({"export", folder_, "--to", target});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const std::string bytes = read_bytes(target);
  const auto header = data_header_bytes(bytes, bytes.size());
  ASSERT_TRUE(header.has_value());
  const auto entries = decode_data_header(bytes.substr(0, *header), bytes.size());
  ASSERT_TRUE(entries.has_value()) << entries.error().message;
  const RankMemory memory = make_memory(184, small_layout());
  ASSERT_EQ(entries->size(), memory.layout.tensors.size());
  for (std::size_t i = 0; i < memory.layout.tensors.size(); ++i) {
    const auto entry = std::ranges::find(*entries, memory.layout.tensors[i].name, &DataEntry::key);
    ASSERT_NE(entry, entries->end()) << memory.layout.tensors[i].name;
    EXPECT_EQ(entry->shape, memory.layout.tensors[i].shape);
    EXPECT_EQ(bytes.substr(entry->begin_byte, entry->end_byte - entry->begin_byte), memory.tensor_bytes_held[i]);
  }
}

TEST_F(CheckpointCommand, EqualTensorsGiveEqualBytesHoweverTheyWereCut) {
  RankMemory memory = make_memory(184, small_layout());
  std::ranges::reverse(memory.layout.tensors);
  std::ranges::reverse(memory.tensor_bytes_held);
  ASSERT_TRUE(save_checkpoint(real_file_system(), folder_, make_job(), {1, 200, "y"}, memory, {}, 5));
  ASSERT_EQ(run({"export", folder_ + "/a1-s184-x", "--to", root_.at("first")}).code, 0);
  ASSERT_EQ(run({"export", folder_ + "/a1-s200-y", "--to", root_.at("second")}).code, 0);
  EXPECT_EQ(hash_of(read_bytes(root_.at("first"))), hash_of(read_bytes(root_.at("second"))));
  EXPECT_EQ(read_bytes(root_.at("first")), read_bytes(root_.at("second")));
}

TEST_F(CheckpointCommand, ExportRefusesDamageAndNeverOverwrites) {
  write_bytes(root_.at("precious"), "mine");
  EXPECT_EQ(run({"export", folder_, "--to", root_.at("precious")}).code, 1);
  EXPECT_EQ(read_bytes(root_.at("precious")), "mine");
  flip("a1-s184-x/rank-0.safetensors", 100);
  const Ran ran = run({"export", folder_, "--to", root_.at("new")});
  EXPECT_EQ(ran.code, 1);
  EXPECT_NE(ran.err.find("nothing was exported: a1-s184-x is damaged"), std::string::npos) << ran.err;
  EXPECT_FALSE(std::filesystem::exists(root_.at("new")));
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
  EXPECT_EQ(ran.code, 1);
  EXPECT_NE(ran.err.find("Give a checkpoint, the folder of a job"), std::string::npos) << ran.err;
  EXPECT_EQ(run({"ls", root_.at("missing")}).code, 1);
}

}  // namespace
}  // namespace rekindle
