#include "worker-sidecar/storage/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "tests/support/checkpoint_builder.h"
#include "tests/support/faulty_file_system.h"
#include "tests/support/temporary_folder.h"
#include "worker-sidecar/storage/attempt_store.h"
#include "worker-sidecar/storage/scan.h"
#include "worker-sidecar/storage/verifier.h"

namespace rekindle {
namespace {

// Whoever opens one for reading in the usual way waits for a writer, for ever.
void put_fifo(const std::string& path) {
  std::filesystem::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
}

class AFifo : public testing::Test {
 protected:
  AFifo()
      : folder_(open_job_folder(real_file_system(), {.root = root_.path(), .job = make_job(), .nonce = "n0"})->path) {
    EXPECT_TRUE(claim_attempt(real_file_system(), folder_, {}, "n1"));
    for (const std::uint64_t step : {10, 20}) {
      EXPECT_TRUE(
          save_checkpoint(real_file_system(), folder_, make_job(), {1, step, "x"}, make_memory(step, small_layout())));
    }
  }
  CandidateOrder order() { return order_candidates(*scan_job_folder(real_file_system(), folder_), make_job()); }

  TemporaryFolder root_;
  const std::string folder_;
};

TEST_F(AFifo, IsRefusedByNameInsteadOfWaitedFor) {
  put_fifo(root_.at("pipe"));
  const Result<std::string> read = read_whole_file(real_file_system(), root_.at("pipe"), 100);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::invalid_input);
  EXPECT_NE(read.error().message.find("pipe is not a plain file"), std::string::npos) << read.error().message;
}

// What would wait for a writer for ever fails here at once.
TEST_F(AFifo, IsOpenedInTheWayThatDoesNotWaitForAWriter) {
  class WouldHang : public FaultyFileSystem {
   public:
    WouldHang() : FaultyFileSystem({}) {}
    int open(const std::string& path, int flags, mode_t mode) override {
      return (flags & O_NONBLOCK) == 0 ? -EDEADLK : FaultyFileSystem::open(path, flags, mode);
    }
  } storage;
  put_fifo(root_.at("pipe"));
  EXPECT_EQ(read_whole_file(storage, root_.at("pipe"), 100).error().code, ErrorCode::invalid_input);
}

TEST_F(AFifo, AndALinkAreNoFilesOfOurs) {
  write_bytes(root_.at("there"), "bytes");
  std::filesystem::create_symlink(root_.at("there"), root_.at("link"));
  EXPECT_EQ(read_whole_file(real_file_system(), root_.at("link"), 100).error().code, ErrorCode::invalid_input);
}

TEST_F(AFifo, InPlaceOfAManifestLeavesTheOtherCheckpoints) {
  put_fifo(folder_ + "/a1-s20-x/manifest.json");
  const CandidateOrder found = order();
  ASSERT_EQ(found.usable.size(), 1u);
  EXPECT_EQ(found.usable[0].path, "a1-s10-x");
  ASSERT_EQ(found.refused.size(), 1u);
  EXPECT_NE(found.refused[0].reason.find("is not a plain file"), std::string::npos) << found.refused[0].reason;
}

TEST_F(AFifo, InPlaceOfTheRecordOfAnAttemptLeavesTheCheckpoints) {
  put_fifo(folder_ + "/attempts/1.json");
  EXPECT_EQ(order().usable.size(), 2u);
}

TEST_F(AFifo, InPlaceOfADataFileIsAFinding) {
  put_fifo(folder_ + "/a1-s20-x/rank-0.safetensors");
  const Verification verification = verify_checkpoint(real_file_system(), folder_, "a1-s20-x");
  ASSERT_FALSE(verification.fine());
  EXPECT_NE(verification.findings[0].message.find("is not a plain file"), std::string::npos);
}

TEST_F(AFifo, InPlaceOfADataFileFailsTheLoad) {
  put_fifo(folder_ + "/a1-s20-x/rank-0.safetensors");
  EXPECT_FALSE(load_checkpoint(real_file_system(), folder_, "a1-s20-x", small_layout(), {{"sampler", 24}}));
  EXPECT_TRUE(load_checkpoint(real_file_system(), folder_, "a1-s10-x", small_layout(), {{"sampler", 24}}));
}

TEST(OpenedFile, ReadsAsIfItHadBeenOpenedInTheUsualWay) {
  const TemporaryFolder folder;
  write_bytes(folder.at("f"), "bytes");
  FileInfo info;
  const Result<OpenFile> file = open_for_reading(real_file_system(), folder.at("f"), &info);
  ASSERT_TRUE(file);
  EXPECT_EQ(info.bytes, 5u);
  const int flags = ::fcntl(file->descriptor(), F_GETFL);
  EXPECT_EQ(flags & O_NONBLOCK, 0);
  EXPECT_NE(::fcntl(file->descriptor(), F_GETFD) & FD_CLOEXEC, 0);
}

class OpenedFolder : public testing::Test {
 protected:
  OpenedFolder() {
    std::filesystem::create_directories(folder_.at("base/one/two"));
    std::filesystem::create_directories(folder_.at("outside/two"));
    std::filesystem::create_directory_symlink(folder_.at("outside"), folder_.at("base/link"));
    std::filesystem::create_directory_symlink(folder_.at("base"), folder_.at("volume"));
  }
  Result<OpenFile> open(const std::string& base, const std::string& inside) {
    return open_for_removing(real_file_system(), folder_.at(base), inside);
  }
  TemporaryFolder folder_;
};

TEST_F(OpenedFolder, IsFoundWhereverTheVolumeIsMounted) {
  EXPECT_TRUE(open("base", "one/two"));
  EXPECT_TRUE(open("volume", "one/two"));
}

TEST_F(OpenedFolder, IsReachedThroughNoLinkAndNotAboveItsBase) {
  for (const char* inside : {"link", "link/two", "../outside", "one/../../outside"})
    EXPECT_EQ(open("base", inside).error().code, ErrorCode::refused) << inside;
  EXPECT_EQ(open("base", "three").error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace rekindle
