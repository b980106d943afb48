#include "worker-sidecar/storage/publisher.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/checkpoint_builder.h"
#include "tests/support/faulty_file_system.h"
#include "tests/support/memory_file_system.h"
#include "tests/support/temporary_folder.h"
#include "worker-sidecar/storage/attempt_store.h"

namespace rekindle {
namespace {

class PublishManifest : public testing::Test {
 protected:
  PublishManifest()
      : folder_(open_job_folder(real_file_system(), {.root = root_.path(), .job = make_job(), .nonce = "n0"})->path) {
    EXPECT_TRUE(
        save_checkpoint(real_file_system(), folder_, make_job(), {1, 184, "x"}, make_memory(1, small_layout())));
  }
  Manifest published() const { return read_manifest(real_file_system(), folder_, "a1-s184-x")->manifest; }
  Result<std::string> publish(const Manifest& manifest) {
    return publish_manifest(real_file_system(), folder_, "a1-s184-x", manifest, "n2");
  }

  TemporaryFolder root_;
  const std::string folder_;
};

TEST_F(PublishManifest, TheSameManifestAgainIsFine) {
  const std::string hash = read_manifest(real_file_system(), folder_, "a1-s184-x")->hash;
  EXPECT_EQ(publish(published()).value(), hash);
}

TEST_F(PublishManifest, AnotherManifestIsAConflictAndTheFirstStays) {
  Manifest other = published();
  other.term += 1;
  EXPECT_EQ(publish(other).error().code, ErrorCode::conflict);
  EXPECT_EQ(published().term, other.term - 1);
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/a1-s184-x/.manifest.json-n2"));
}

// The one that was first may have died, or lost its power, between its link and its fsync.
TEST(PublishedTwice, WhoeverIsSecondMakesTheNameDurableBeforeItAnswers) {
  class LostRace : public FaultyFileSystem {
   public:
    explicit LostRace(MemoryFileSystem& disk) : FaultyFileSystem({}, disk), disk_(disk) {}
    // Another process of this node links an equal manifest right before this one does.
    int link(const std::string& from, const std::string& to) override {
      const std::string text = *disk_.content(from);
      const int rival = disk_.open(to, O_WRONLY | O_CREAT | O_EXCL, 0660);
      disk_.pwrite(rival, text.data(), text.size(), 0);
      disk_.fsync(rival);
      disk_.close(rival);
      return FaultyFileSystem::link(from, to);
    }
    MemoryFileSystem& disk_;
  };
  MemoryFileSystem disk;
  ASSERT_EQ(disk.mkdir("/checkpoints", 0770), 0);
  const int root = disk.open("/", 0, 0);
  ASSERT_EQ(disk.fsync(root), 0);
  ASSERT_EQ(disk.close(root), 0);
  const std::string folder = open_job_folder(disk, {.root = "/checkpoints", .job = make_job(), .nonce = "n0"})->path;
  ASSERT_TRUE(claim_attempt(disk, folder, {}, "n1"));
  LostRace storage(disk);
  ASSERT_TRUE(save_checkpoint(storage, folder, make_job(), {1, 184, "x"}, make_memory(1, small_layout())));
  const std::size_t end = disk.operations().size();
  const std::vector<std::size_t> uncertain = disk.uncertain(end);
  MemoryFileSystem found = disk.after_power_loss(
      end, uncertain, std::vector<MemoryFileSystem::Kept>(uncertain.size(), MemoryFileSystem::Kept::none));
  EXPECT_TRUE(read_manifest(found, folder, "a1-s184-x")) << "it was answered that it is durable";
}

TEST_F(PublishManifest, ALateProcessOfAnOlderAttemptMayNotPublish) {
  const Manifest manifest = published();
  std::filesystem::remove(folder_ + "/a1-s184-x/manifest.json");
  ASSERT_TRUE(claim_attempt(real_file_system(), folder_, {}, "n3"));
  ASSERT_TRUE(claim_attempt(real_file_system(), folder_, {}, "n4"));
  const Result<std::string> hash = publish(manifest);
  ASSERT_FALSE(hash);
  EXPECT_EQ(hash.error().code, ErrorCode::gone);
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/a1-s184-x/manifest.json"));
}

TEST_F(PublishManifest, FilesThatAreMissingOrShortAreNotPublished) {
  const Manifest manifest = published();
  std::filesystem::remove(folder_ + "/a1-s184-x/manifest.json");
  const std::string path = folder_ + "/a1-s184-x/rank-1.safetensors";
  const std::string bytes = read_bytes(path);
  write_bytes(path, bytes.substr(1));
  EXPECT_EQ(publish(manifest).error().code, ErrorCode::corrupt);
  std::filesystem::remove(path);
  EXPECT_EQ(publish(manifest).error().code, ErrorCode::not_found);
  write_bytes(path, bytes);
  EXPECT_TRUE(publish(manifest));
}

TEST_F(PublishManifest, AManifestWithAGapIsNotPublished) {
  Manifest manifest = published();
  std::filesystem::remove(folder_ + "/a1-s184-x/manifest.json");
  manifest.tensors[0].pieces.clear();
  EXPECT_EQ(publish(manifest).error().code, ErrorCode::invalid_input);
}

TEST_F(PublishManifest, AFolderNameFromOutsideCannotLeaveTheJobsFolder) {
  EXPECT_EQ(read_manifest(real_file_system(), folder_, "../team-a.digits/a1-s184-x").error().code, ErrorCode::refused);
  EXPECT_EQ(read_manifest(real_file_system(), folder_, "a1-s999-x").error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace rekindle
