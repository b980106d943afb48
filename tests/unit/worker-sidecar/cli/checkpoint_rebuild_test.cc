#include <gtest/gtest.h>

#include <filesystem>

#include "common/base/format.h"
#include "common/base/json_fields.h"
#include "tests/unit/worker-sidecar/cli/run_checkpoint.h"
#include "tests/unit/worker-sidecar/cli/saved_job.h"
#include "worker-sidecar/mindspore/checkpoint_file.h"
#include "worker-sidecar/mindspore/group_info.h"

namespace rekindle::cli {
namespace {

std::string little_endian_number(std::uint64_t value) {
  std::string bytes;
  for (int shift = 0; shift < 64; shift += 8) bytes += static_cast<char>(value >> shift & 0xff);
  return bytes;
}

// Four ranks, of which 0 and 2, and 1 and 3 hold the same parameters.
class CheckpointRebuild : public testing::Test {
 protected:
  CheckpointRebuild() {
    for (std::uint32_t rank = 0; rank < 4; ++rank) {
      std::filesystem::create_directories(root_.at(format("groups/device{}", rank)));
      write_bytes(root_.at(format("groups/device{}/group_info.pb", rank)), encode_group_info({rank % 2, rank % 2 + 2}));
      save(rank, "m-2_84_breakpoint.ckpt", 184);
    }
  }
  static std::string file_of(std::uint32_t rank, std::uint64_t step) {
    return slice_header("w", "UInt8", {4}, 4) + std::string(4, static_cast<char>('a' + rank % 2)) +
           slice_header("step_num", "Int64", {}, 8) + little_endian_number(step) +
           slice_header("cur_rank", "Int64", {}, 8) + little_endian_number(rank);
  }
  std::string path_of(std::uint32_t rank, const std::string& name) const {
    return root_.at(format("saved/rank_{}/{}", rank, name));
  }
  void save(std::uint32_t rank, const std::string& name, std::uint64_t step) {
    std::filesystem::create_directories(root_.at(format("saved/rank_{}", rank)));
    write_bytes(path_of(rank, name), file_of(rank, step));
  }
  Ran run_groups(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"groups", root_.at("groups"), "--checkpoints", root_.at("saved")});
    return run(arguments);
  }

  TemporaryFolder root_;
};

TEST_F(CheckpointRebuild, CopiesOfOneStepAreFine) {
  const Ran ran = run_groups({"--faulty", "1"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.out.find("RESTORE_RANKS=0,3\n"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("184   rank_3/m-2_84_breakpoint.ckpt"), std::string::npos) << ran.out;
}

TEST_F(CheckpointRebuild, ALostRanksFileComesFromItsReplica) {
  std::filesystem::remove_all(root_.at("saved/rank_1"));
  const Ran ran = run_groups({"--faulty", "1", "--rebuild"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.out.find("rebuilt rank_1/m-2_84_breakpoint.ckpt of rank 1 from rank 3\n"), std::string::npos)
      << ran.out;
  EXPECT_EQ(read_bytes(path_of(1, "m-2_84_breakpoint.ckpt")), file_of(3, 184));
  EXPECT_EQ(names_in(root_.at("saved/rank_1")), (std::vector<std::string>{"m-2_84_breakpoint.ckpt"}))
      << "nothing temporary is left";
  const Ran again = run_groups({"--rebuild", "-o", "json"});
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_TRUE(Json::parse(again.out).at("rebuilt").empty());
  EXPECT_EQ(Json::parse(again.out).at("restore_ranks"), "0,1");
}

TEST_F(CheckpointRebuild, ARankWithoutAFileIsLostAlsoWhenNobodySaysSo) {
  std::filesystem::remove(path_of(0, "m-2_84_breakpoint.ckpt"));
  const Ran looked = run_groups({});
  EXPECT_EQ(looked.code, 1);
  EXPECT_NE(looked.err.find("rank 0, chosen for ranks 0,2, has no checkpoint"), std::string::npos) << looked.err;
  EXPECT_NE(looked.out.find("RESTORE_RANKS=-1\n"), std::string::npos) << looked.out;
  EXPECT_EQ(run_groups({"--rebuild"}).code, 0);
  EXPECT_EQ(read_bytes(path_of(0, "m-2_84_breakpoint.ckpt")), file_of(2, 184));
}

TEST_F(CheckpointRebuild, TheNameOfADyingGaspHasTheRank) {
  std::filesystem::remove_all(root_.at("saved"));
  for (const std::uint32_t rank : {0u, 1u, 2u}) save(rank, format("ttp_rank_{}-2_84.ckpt", rank), 184);
  ASSERT_EQ(run_groups({"--rebuild"}).code, 0);
  EXPECT_EQ(read_bytes(path_of(3, "ttp_rank_3-2_84.ckpt")), file_of(1, 184));
}

TEST_F(CheckpointRebuild, TheNewestFileOfARankCountsAndPeriodicOnesDoNot) {
  save(1, "m-2_90_breakpoint.ckpt", 190);
  save(2, "m-9_1.ckpt", 900);
  const Ran ran = run_groups({});
  EXPECT_EQ(ran.code, 1);
  EXPECT_NE(ran.err.find("parts of different steps do not fit together"), std::string::npos) << ran.err;
  EXPECT_NE(ran.out.find("RESTORE_RANKS=-1\n"), std::string::npos) << ran.out;
  EXPECT_EQ(ran.out.find("900"), std::string::npos) << ran.out;
}

TEST_F(CheckpointRebuild, CopiesThatDifferAreNotTrusted) {
  std::string bytes = file_of(1, 184);
  bytes[bytes.find("bbbb")] = 'x';
  write_bytes(path_of(1, "m-2_84_breakpoint.ckpt"), bytes);
  std::filesystem::remove_all(root_.at("saved/rank_0"));
  const Ran ran = run_groups({"--rebuild"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_NE(ran.err.find("rank 1, chosen for ranks 1,3, and rank 3 hold different parameters"), std::string::npos)
      << ran.err;
  EXPECT_FALSE(std::filesystem::exists(root_.at("saved/rank_0")))
      << "nothing is rebuilt beside something that cannot be trusted";
}

TEST_F(CheckpointRebuild, ADamagedFileIsNamedAndNotReplaced) {
  write_bytes(path_of(3, "m-2_84_breakpoint.ckpt"), "damaged");
  const Ran looked = run_groups({});
  EXPECT_EQ(looked.code, 0) << "rank 1 is chosen and whole";
  EXPECT_NE(looked.out.find("not used: "), std::string::npos) << looked.out;
  const Ran ran = run_groups({"--rebuild"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_NE(ran.err.find("m-2_84_breakpoint.ckpt is there already and stays as it is. Move it away"), std::string::npos)
      << ran.err;
  EXPECT_EQ(read_bytes(path_of(3, "m-2_84_breakpoint.ckpt")), "damaged");
}

TEST_F(CheckpointRebuild, AFileWithoutItsStepIsNotUsed) {
  write_bytes(path_of(0, "m-2_84_breakpoint.ckpt"), slice_header("w", "UInt8", {4}, 4) + "aaaa");
  const Ran ran = run_groups({});
  EXPECT_EQ(ran.code, 1);
  EXPECT_NE(ran.out.find("does not have its step_num: save with append_info"), std::string::npos) << ran.out;
}

TEST_F(CheckpointRebuild, AGroupWithoutALivingCopyRebuildsNothing) {
  std::filesystem::remove_all(root_.at("saved/rank_0"));
  const Ran ran = run_groups({"--faulty", "1,3", "--rebuild"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_NE(ran.err.find("the part of ranks 1,3 has no living copy"), std::string::npos) << ran.err;
  EXPECT_FALSE(std::filesystem::exists(root_.at("saved/rank_0")));
}

TEST_F(CheckpointRebuild, OtherPrefixesCanBeLeftOut) {
  for (std::uint32_t rank = 0; rank < 4; ++rank) save(rank, "other-3_1_breakpoint.ckpt", 201);
  EXPECT_NE(run_groups({}).out.find("other-3_1"), std::string::npos);
  EXPECT_EQ(run_groups({"--prefix", "m"}).out.find("other-3_1"), std::string::npos);
}

}  // namespace
}  // namespace rekindle::cli
