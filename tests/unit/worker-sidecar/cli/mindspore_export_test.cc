#include "worker-sidecar/cli/mindspore_export.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "common/base/format.h"
#include "common/base/json_fields.h"
#include "tests/unit/worker-sidecar/cli/run_checkpoint.h"
#include "tests/unit/worker-sidecar/cli/saved_job.h"
#include "worker-sidecar/mindspore/checkpoint.pb.h"

namespace rekindle::cli {
namespace {

using mindspore::checkpoint::Checkpoint;

class MindSporeExport : public SavedJob {
 protected:
  MindSporeExport() { std::filesystem::create_directory(root_.at("to")); }
  Ran run_export(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"export", folder_, root_.at("to"), "--format", "mindspore"});
    return run(arguments);
  }
  // By protobuf's own reader.
  std::map<std::string, mindspore::checkpoint::TensorProto> read(const std::string& file) {
    Checkpoint checkpoint;
    EXPECT_TRUE(checkpoint.ParseFromString(read_bytes(root_.at("to/" + file)))) << file;
    std::map<std::string, mindspore::checkpoint::TensorProto> tensors;
    for (const auto& value : checkpoint.value()) tensors[value.tag()] = value.tensor();
    return tensors;
  }
  static std::uint64_t number(const mindspore::checkpoint::TensorProto& tensor) {
    EXPECT_EQ(tensor.tensor_type(), "Int64");
    std::uint64_t value = 0;
    for (std::size_t i = tensor.tensor_content().size(); i-- > 0;)
      value = value << 8 | static_cast<unsigned char>(tensor.tensor_content()[i]);
    return value;
  }

  const RankMemory memory_ = make_memory(184, small_layout());
};

TEST_F(MindSporeExport, OneFileHasEveryTensorEpochAndStep) {
  const Ran ran = run_export({"--prefix", "resnet", "--epoch", "2"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(names_in(root_.at("to")), (std::vector<std::string>{"resnet-2_184_breakpoint.ckpt"}));
  const auto tensors = read("resnet-2_184_breakpoint.ckpt");
  EXPECT_EQ(tensors.size(), 7u);
  for (std::size_t i = 0; i < memory_.layout.tensors.size(); ++i) {
    const TensorDescription& tensor = memory_.layout.tensors[i];
    const auto& found = tensors.at(tensor.name);
    EXPECT_EQ(Extents(found.dims().begin(), found.dims().end()), tensor.shape) << tensor.name;
    EXPECT_EQ(found.tensor_content(), memory_.tensor_bytes_held[i]) << tensor.name;
  }
  EXPECT_EQ(tensors.at("seen").tensor_type(), "UInt8");
  EXPECT_EQ(number(tensors.at("epoch_num")), 2u);
  EXPECT_EQ(number(tensors.at("step_num")), 184u);
}

TEST_F(MindSporeExport, NamesHaveTheStepWithinTheEpochWhenItsLengthIsKnown) {
  ASSERT_EQ(run_export({"--steps-per-epoch", "100"}).code, 0);
  EXPECT_EQ(names_in(root_.at("to")), (std::vector<std::string>{"digits-2_84_breakpoint.ckpt"}));
  EXPECT_EQ(number(read("digits-2_84_breakpoint.ckpt").at("step_num")), 184u)
      << "inside, the step counts from the beginning";
}

TEST_F(MindSporeExport, EachRankGetsAFileWithWholeTensorsAndItsPartOfShardedOnes) {
  const RankMemory memory =
      make_memory(7, {{whole_tensor("cut", Dtype::u8, {2, 4}), whole_tensor("whole", Dtype::u8, {3})}});
  save({1, 200, "x"}, memory);
  const Ran ran = run_export({"--epoch", "1", "--layout", "ranks", "--sharded", "cut=1"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(names_in(root_.at("to")), (std::vector<std::string>{"rank_0", "rank_1"}));
  const std::string& all = memory.tensor_bytes_held[0];
  for (std::size_t rank = 0; rank < 2; ++rank) {
    const auto tensors = read(format("rank_{}/digits-1_200_breakpoint.ckpt", rank));
    EXPECT_EQ(tensors.at("cut").tensor_content(), all.substr(2 * rank, 2) + all.substr(4 + 2 * rank, 2)) << rank;
    EXPECT_EQ(tensors.at("cut").dims(1), 2);
    EXPECT_EQ(tensors.at("whole").tensor_content(), memory.tensor_bytes_held[1]);
  }
}

TEST_F(MindSporeExport, TheDyingGaspHasItsOwnFoldersAndNumbers) {
  const Ran ran = run_export({"--steps-per-epoch", "100", "--layout", "tft", "-o", "json"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(Json::parse(ran.out).at("files").at(1),
            root_.at("to") + "/tft_saved_checkpoints-step_184/rank_1/ttp_rank_1-2_84.ckpt");
  const auto tensors = read("tft_saved_checkpoints-step_184/rank_1/ttp_rank_1-2_84.ckpt");
  EXPECT_EQ(number(tensors.at("cur_rank")), 1u);
  EXPECT_EQ(number(tensors.at("batch_num")), 100u);
  EXPECT_EQ(tensors.at("__exception_save__").tensor_type(), "Bool");
}

TEST_F(MindSporeExport, TheEpochThatTrainingKeptComesFirst) {
  const std::vector<StateDescription> states{{"rekindle.cursor", 16}};
  RankMemory memory = make_memory(1, small_layout(), states);
  memory.state_bytes_held[0] = std::string("\3\0\0\0\0\0\0\0\x10\0\0\0\0\0\0\0", 16);
  save({1, 201, "x"}, memory);
  ASSERT_EQ(run_export({}).code, 0);
  EXPECT_EQ(names_in(root_.at("to")), (std::vector<std::string>{"digits-3_201_breakpoint.ckpt"}));
  const Ran other = run_export({"--epoch", "4"});
  EXPECT_EQ(other.code, 2);
  EXPECT_NE(other.err.find("--epoch says 4, but the checkpoint says epoch 3"), std::string::npos) << other.err;
}

TEST_F(MindSporeExport, WithoutAnEpochItSaysHowToGiveOne) {
  const Ran ran = run_export({});
  EXPECT_EQ(ran.code, 2);
  EXPECT_NE(ran.err.find("does not say its epoch"), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("give --epoch or --steps-per-epoch"), std::string::npos) << ran.err;
}

TEST_F(MindSporeExport, WhatMindSporeCouldNotReadBackIsRefusedByName) {
  const std::pair<TensorDescription, const char*> cases[] = {
      {whole_tensor("w8", Dtype::f8_e4m3, {4}),
       "tensor \"w8\" is F8_E4M3, which MindSpore does not read from its checkpoint files"},
      {whole_tensor("w4", Dtype::f4, {4}), "tensor \"w4\" is F4, which MindSpore does not read"},
      {whole_tensor("phase", Dtype::c64, {4}), "tensor \"phase\" is C64, which MindSpore does not read"},
      {whole_tensor("none", Dtype::f32, {0}),
       "tensor \"none\" has the shape [0], which MindSpore would read as a scalar"},
      {whole_tensor("step_num", Dtype::i64, {}),
       "tensor \"step_num\" has the name under which MindSpore keeps a number"},
  };
  std::uint64_t step = 300;
  for (const auto& [tensor, words] : cases) {
    save({1, ++step, "x"}, make_memory(step, {{tensor}}));
    const Ran ran = run_export({"--epoch", "1"});
    EXPECT_EQ(ran.code, 2);
    EXPECT_NE(ran.err.find(words), std::string::npos) << ran.err;
  }
  EXPECT_EQ(names_in(root_.at("to")), std::vector<std::string>{});
}

TEST_F(MindSporeExport, ShardsThatDoNotFitAreRefused) {
  for (const auto& [sharded, words] : std::initializer_list<std::pair<const char*, const char*>>{
           {"w1", "is not NAME=DIMENSION"},
           {"w1=x", "is not NAME=DIMENSION"},
           {"w1=2", "cannot hold equal parts of it along dimension 2"},
           {"w1=0", "\"w1\" is [5, 3]; 2 ranks cannot hold equal parts"},
           {"v*=0", "--sharded names \"v*\", which is not in the checkpoint"}}) {
    const Ran ran = run_export({"--epoch", "1", "--layout", "ranks", "--sharded", sharded});
    EXPECT_EQ(ran.code, 2);
    EXPECT_NE(ran.err.find(words), std::string::npos) << ran.err;
  }
  EXPECT_EQ(names_in(root_.at("to")), std::vector<std::string>{});
}

TEST_F(MindSporeExport, AfterAFailureNoFileAndNoFolderIsLeft) {
  std::filesystem::create_directory(root_.at("to/rank_1"));
  write_bytes(root_.at("to/rank_1/digits-1_184_breakpoint.ckpt"), "mine");
  const Ran ran = run_export({"--epoch", "1", "--layout", "ranks"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_EQ(names_in(root_.at("to")), (std::vector<std::string>{"rank_1"}));
  EXPECT_EQ(names_in(root_.at("to/rank_1")), (std::vector<std::string>{"digits-1_184_breakpoint.ckpt"}));
}

TEST_F(MindSporeExport, AFolderToWriteIntoHasToBeThere) {
  const Ran ran = run({"export", folder_, root_.at("missing"), "--format", "mindspore", "--epoch", "1"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_NE(ran.err.find("is not a folder"), std::string::npos) << ran.err;
  EXPECT_EQ(run_export({"--format", "torch"}).code, 2);
  EXPECT_EQ(run_export({"--layout", "none"}).code, 2);
}

}  // namespace
}  // namespace rekindle::cli
