#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "common/base/format.h"
#include "common/base/json_fields.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/worker-sidecar/cli/run_checkpoint.h"
#include "worker-sidecar/mindspore/group_info.h"

namespace rekindle::cli {
namespace {

class CheckpointGroups : public testing::Test {
 protected:
  // Eight ranks, the half of them copies of the other half.
  CheckpointGroups() {
    for (std::uint32_t rank = 0; rank < 8; ++rank) write(rank, {rank % 4, rank % 4 + 4});
  }
  void write(std::uint32_t rank, const RankGroup& group) {
    write_file(format("device{}", rank), encode_group_info(group));
  }
  void write_file(const std::string& folder, const std::string& bytes) {
    std::filesystem::create_directories(root_.at(folder));
    write_bytes(root_.at(folder) + "/group_info.pb", bytes);
  }
  Ran run_groups(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"groups", root_.path()});
    return run(arguments);
  }

  TemporaryFolder root_;
};

TEST_F(CheckpointGroups, PrintsTheGroupsAndTheEnvironment) {
  const Ran ran = run_groups({"--faulty", "0,5"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out,
            "GROUP   RANKS   USABLE   CHOSEN\n"
            "    0   0,4     4             4\n"
            "    1   1,5     1             1\n"
            "    2   2,6     2,6           2\n"
            "    3   3,7     3,7           3\n"
            "\n"
            "RESTORE_RANKS=1,2,3,4\n"
            "RESTORE_RANKS_MAP='{\"0,4\":4,\"1,5\":1,\"2,6\":2,\"3,7\":3}'\n");
  EXPECT_EQ(ran.err, "");
}

TEST_F(CheckpointGroups, WithoutFaultyRanksTheSmallestOfEachGroupIsChosen) {
  const Ran ran = run_groups({});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.out.find("RESTORE_RANKS=0,1,2,3\n"), std::string::npos) << ran.out;
}

TEST_F(CheckpointGroups, TheFolderMayComeBehindTheRanksAndTheRanksOneByOne) {
  EXPECT_EQ(run({"groups", "--faulty", "0,5", root_.path()}).out, run_groups({"--faulty", "0", "--faulty", "5"}).out);
  EXPECT_EQ(run({"groups", "--faulty", "0,5", root_.path()}).code, 0);
}

TEST_F(CheckpointGroups, AGroupWithoutALivingCopyIsOneAndNamed) {
  const Ran ran = run_groups({"--faulty", "1,5"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_EQ(ran.err,
            "rekindle checkpoint: the part of ranks 1,5 has no living copy: all of them are faulty. All ranks have to "
            "go back to a periodic checkpoint.\n");
  EXPECT_NE(ran.out.find("    1   1,5     none       none\n"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("\nRESTORE_RANKS=-1\n"), std::string::npos) << ran.out;
  EXPECT_EQ(ran.out.find("RESTORE_RANKS_MAP"), std::string::npos) << ran.out;
}

TEST_F(CheckpointGroups, PrintsJson) {
  const Json fine = Json::parse(run_groups({"--faulty", "4", "-o", "json"}).out);
  EXPECT_EQ(fine.at("groups").at(0), Json::parse(R"({"ranks":[0,4],"usable":[0],"chosen":0})"));
  EXPECT_EQ(fine.at("restore_ranks"), "0,1,2,3");
  EXPECT_EQ(Json::parse(fine.at("restore_ranks_map").get<std::string>()),
            Json::parse(R"({"0,4":0,"1,5":1,"2,6":2,"3,7":3})"));
  EXPECT_TRUE(fine.at("lost").empty());
  const Json lost = Json::parse(run_groups({"--faulty", "0,4", "-o", "json"}).out);
  EXPECT_TRUE(lost.at("groups").at(0).at("chosen").is_null());
  EXPECT_EQ(lost.at("restore_ranks"), "-1");
  EXPECT_TRUE(lost.at("restore_ranks_map").is_null());
  EXPECT_EQ(lost.at("lost").size(), 1u);
}

TEST_F(CheckpointGroups, ARankWhoseFileWentWithItsNodeIsKnownFromItsGroup) {
  std::filesystem::remove_all(root_.at("device5"));
  std::filesystem::remove(root_.at("device1/group_info.pb"));
  EXPECT_EQ(run_groups({"--faulty", "0"}).code, 1) << "nobody is left who names ranks 1 and 5";
  write(1, {1, 5});
  EXPECT_EQ(run_groups({"--faulty", "5"}).code, 0);
}

TEST_F(CheckpointGroups, TheWorldSizeFindsAGroupOfWhichNoFileIsLeft) {
  std::filesystem::remove_all(root_.at("device3"));
  std::filesystem::remove_all(root_.at("device7"));
  const Ran ran = run_groups({"--world-size", "8"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_NE(ran.err.find("no file tells the group of rank 3"), std::string::npos) << ran.err;
}

TEST_F(CheckpointGroups, TheFoldersOfMindSporesTutorialAreReadAsWell) {
  std::filesystem::rename(root_.at("device3"), root_.at("rank_3"));
  EXPECT_EQ(run_groups({}).code, 0);
  write(3, {3, 7});
  const Ran ran = run_groups({});
  EXPECT_EQ(ran.code, 2);
  EXPECT_NE(ran.err.find("two folders of rank 3"), std::string::npos) << ran.err;
}

TEST_F(CheckpointGroups, OtherNamesAreIgnored) {
  for (const char* name :
       {"device", "device08", "device1x", "device-1", "device+1", "rank_", "rank1", "devices0", "device99999999999"})
    write_file(name, "no");
  write_bytes(root_.at("device8"), "a file");
  EXPECT_EQ(run_groups({}).code, 0);
}

TEST_F(CheckpointGroups, AFileThatCannotBeReadIsNamed) {
  write_file("device2", "nonsense");
  Ran ran = run_groups({});
  EXPECT_EQ(ran.code, 1);
  EXPECT_NE(ran.err.find("device2/group_info.pb: it is damaged, or is not a group_info.pb of MindSpore"),
            std::string::npos)
      << ran.err;
  write_file("device2", std::string(kGroupInfoBytesMax + 1, 'x'));
  ran = run_groups({});
  EXPECT_EQ(ran.code, 2);
  EXPECT_NE(ran.err.find("device2/group_info.pb has 1048577 bytes"), std::string::npos) << ran.err;
}

TEST_F(CheckpointGroups, APipeOrALinkIsRefusedAndNotWaitedFor) {
  const std::string path = root_.at("device2/group_info.pb");
  std::filesystem::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_NE(run_groups({}).err.find("is not a plain file"), std::string::npos);
  std::filesystem::remove(path);
  std::filesystem::create_symlink(root_.at("device6/group_info.pb"), path);
  EXPECT_NE(run_groups({}).err.find("is not a plain file"), std::string::npos);
}

TEST_F(CheckpointGroups, AFolderWithoutSuchFilesSaysWhoWritesThem) {
  for (int rank = 0; rank < 8; ++rank) std::filesystem::remove_all(root_.at(format("device{}", rank)));
  const Ran ran = run_groups({});
  EXPECT_EQ(ran.code, 2);
  EXPECT_NE(ran.err.find("GROUP_INFO_FILE"), std::string::npos) << ran.err;
}

TEST_F(CheckpointGroups, AWrongCommandLineIsTwo) {
  EXPECT_EQ(run_groups({"--faulty"}).code, 2);
  EXPECT_EQ(run_groups({"--faulty", "one"}).code, 2);
  EXPECT_EQ(run_groups({"--faulty", "-1"}).code, 2);
  EXPECT_EQ(run_groups({"--faulty", "4096"}).code, 2);
  EXPECT_EQ(run_groups({"--world-size", "0"}).code, 2);
  EXPECT_EQ(run_groups({"-o", "xml"}).code, 2);
  EXPECT_EQ(run_groups({"another"}).code, 2);
}

}  // namespace
}  // namespace rekindle::cli
