// Checkpoints that were published and cannot be read: from the folder on disk to the ranks that are
// refused.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "tests/support/faulty_file_system.h"
#include "tests/support/temporary_folder.h"
#include "worker-sidecar/coordination/coordination.h"
#include "worker-sidecar/sidecar/checkpoint_repository.h"

namespace rekindle::sidecar {
namespace {

class UnreadableCheckpoints : public testing::Test {
 protected:
  void SetUp() override {
    settings_.checkpoint_folder = folder_.at("checkpoints");
    desk_ = std::make_unique<CheckpointRepository>(real_file_system(), settings_, true);
    ASSERT_TRUE(desk_->open());
  }
  void put_manifest(const std::string& folder, const std::string& text) {
    std::filesystem::create_directory(desk_->job_folder() + "/" + folder);
    write_bytes(desk_->job_folder() + "/" + folder + "/manifest.json", text);
  }
  TemporaryFolder folder_;
  HostSettings settings_;
  std::unique_ptr<CheckpointRepository> desk_;
};

TEST_F(UnreadableCheckpoints, AnEmptyFolderIsABeginning) {
  const auto listed = desk_->candidates();
  ASSERT_TRUE(listed) << listed.error().message;
  EXPECT_TRUE(listed->usable.empty());
}

TEST_F(UnreadableCheckpoints, ASaveThatDidNotFinishIsABeginningToo) {
  std::filesystem::create_directory(desk_->job_folder() + "/a1-s7-x");
  EXPECT_TRUE(desk_->candidates());
}

TEST_F(UnreadableCheckpoints, DamageOfAllIsAnErrorThatNamesThem) {
  put_manifest("a1-s7-x", "{\"hash\":");
  put_manifest("a1-s9-y", "");
  const auto listed = desk_->candidates();
  ASSERT_FALSE(listed);
  EXPECT_EQ(listed.error().code, ErrorCode::corrupt);
  for (const char* name : {"a1-s7-x", "a1-s9-y"})
    EXPECT_NE(listed.error().message.find(name), std::string::npos) << listed.error().message;
}

// Whoever listed the older ones only would give up the newest for good.
TEST_F(UnreadableCheckpoints, StorageThatFailsWhereTheNewestIsListsNothing) {
  class BrokenSector : public FaultyFileSystem {
   public:
    BrokenSector() : FaultyFileSystem({}) {}
    int open(const std::string& path, int flags, mode_t mode) override {
      return path.ends_with("/a1-s9-y/manifest.json") ? -EIO : FaultyFileSystem::open(path, flags, mode);
    }
  } storage;
  put_manifest("a1-s9-y", "whatever it says");
  CheckpointRepository repository(storage, settings_, true);
  ASSERT_TRUE(repository.open());
  const auto listed = repository.candidates();
  ASSERT_FALSE(listed);
  EXPECT_EQ(listed.error().code, ErrorCode::io);
  EXPECT_NE(listed.error().message.find("a1-s9-y may be whole"), std::string::npos) << listed.error().message;
}

TEST(CoordinationOfUnreadableCheckpoints, RefusesTheRanksInsteadOfWaitingForEver) {
  Coordination coordination({.wait_for_go = false});
  const Instant now{};
  coordination.advance(RankConnected{.rank = 0, .word = {.phase = RankPhase::starting}}, now);
  CoordinationOutputs outputs = coordination.advance(RankRegistered{.rank = 0, .registered = {}}, now);
  const auto lists = [](const CoordinationOutput& output) { return std::holds_alternative<ListCandidates>(output); };
  ASSERT_TRUE(std::ranges::any_of(outputs, lists));
  outputs = coordination.advance(CandidatesListed{fail(ErrorCode::corrupt, "a1-s7-x is damaged")}, now);
  const auto refused = std::ranges::find_if(
      outputs, [](const CoordinationOutput& output) { return std::holds_alternative<RefuseRank>(output); });
  ASSERT_NE(refused, outputs.end());
  EXPECT_EQ(std::get<RefuseRank>(*refused).error.message, "a1-s7-x is damaged");
}

}  // namespace
}  // namespace rekindle::sidecar
