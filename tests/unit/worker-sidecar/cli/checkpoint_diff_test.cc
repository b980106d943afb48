#include <gtest/gtest.h>

#include "common/base/format.h"
#include "common/base/json_fields.h"
#include "tests/support/checkpoint_builder.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/worker-sidecar/cli/run_checkpoint.h"

namespace rekindle::cli {
namespace {

class CheckpointDiff : public testing::Test {
 protected:
  CheckpointDiff()
      : folder_(open_job_folder(real_file_system(), {.root = root_.path(), .job = make_job(), .nonce = "n0"})->path) {}

  std::string save(std::uint64_t step, const RankMemory& memory, std::uint32_t world_size = 2) {
    const Result<std::string> name =
        save_checkpoint(real_file_system(), folder_, make_job(), {1, step, "x"}, memory, {}, world_size);
    EXPECT_TRUE(name);
    return format("{}/{}", folder_, name.value_or(""));
  }

  TemporaryFolder root_;
  const std::string folder_;
  RankMemory memory_ = make_memory(1, small_layout());
};

TEST_F(CheckpointDiff, TheSameStateInOtherPartsIsTheSame) {
  memory_.states.clear();
  memory_.state_bytes_held.clear();
  const Ran ran = run({"diff", save(1, memory_, 2), save(2, memory_, 5)});
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  EXPECT_EQ(ran.out, "a1-s1-x (step 1) against a1-s2-x (step 2): the same, 5 tensors and states\n");
}

TEST_F(CheckpointDiff, NamesEachTensorAndStateThatDiffersAndHow) {
  const std::string left = save(1, memory_);
  Layout changed = small_layout();
  changed.tensors[1] = whole_tensor("b1", Dtype::f64, {5});
  changed.tensors[2] = whole_tensor("empty", Dtype::f32, {0, 5});
  changed.tensors[3].name = "scale";
  RankMemory other = make_memory(2, changed);
  other.tensor_bytes_held[0] = memory_.tensor_bytes_held[0];
  other.tensor_bytes_held[0][7] ^= 1;
  other.tensor_bytes_held[0][9] ^= 1;
  other.tensor_bytes_held[4] = memory_.tensor_bytes_held[4];
  const std::string right = save(2, other);
  const Ran ran = run({"diff", left, right});
  EXPECT_EQ(ran.code, 1);
  for (const char* words : {"2 of 60 bytes differ, from byte 7 on", "type F32 against F64",
                            "shape [0, 4] against [0, 5]", "only in a1-s1-x", "only in a1-s2-x", "state/0/sampler"}) {
    EXPECT_NE(ran.out.find(words), std::string::npos) << words << "\n" << ran.out;
  }
  EXPECT_EQ(ran.out.find("seen"), std::string::npos) << ran.out;
  const Json json = Json::parse(run({"diff", "-o", "json", left, right}).out);
  EXPECT_EQ(json.at("differences").size(), 7u) << json;
  EXPECT_EQ(json.at("right").at("step"), 2);
}

TEST_F(CheckpointDiff, ADamagedCheckpointIsNotCompared) {
  const std::string left = save(1, memory_);
  const std::string right = save(2, memory_);
  std::string bytes = read_bytes(right + "/rank-0.safetensors");
  bytes.back() ^= 1;
  write_bytes(right + "/rank-0.safetensors", bytes);
  const Ran ran = run({"diff", left, right});
  EXPECT_EQ(ran.code, 1);
  EXPECT_NE(ran.err.find("a1-s2-x is damaged: rank-0.safetensors"), std::string::npos) << ran.err;
  EXPECT_EQ(ran.out, "");
}

}  // namespace
}  // namespace rekindle::cli
