// What a restore finds in a job's folder while others change it.
#include "worker-sidecar/storage/scan.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/checkpoint_builder.h"
#include "tests/support/faulty_file_system.h"
#include "tests/support/temporary_folder.h"
#include "worker-sidecar/storage/attempt_store.h"

namespace rekindle {
namespace {

class Scan : public testing::Test {
 protected:
  Scan()
      : folder_(open_job_folder(real_file_system(), {.root = root_.path(), .job = make_job(), .nonce = "n0"})->path) {
    EXPECT_TRUE(claim_attempt(real_file_system(), folder_, {}, "n1"));
  }

  TemporaryFolder root_;
  const std::string folder_;
};

// Another process keeps its retention: a folder goes between the list and the look into it.
TEST_F(Scan, AFolderThatGoesMeanwhileIsNotListed) {
  class Vanishing : public FaultyFileSystem {
   public:
    Vanishing() : FaultyFileSystem({}) {}
    int list(const std::string& path, std::vector<std::string>& names) override {
      const int result = FaultyFileSystem::list(path, names);
      std::filesystem::remove(path + "/a1-s10-x");
      return result;
    }
  } storage;
  std::filesystem::create_directory(folder_ + "/a1-s10-x");
  std::filesystem::create_directory(folder_ + "/a1-s20-x");
  const Result<FolderScan> scan = scan_job_folder(storage, folder_);
  ASSERT_TRUE(scan);
  ASSERT_EQ(scan->folders.size(), 1u);
  EXPECT_EQ(scan->folders[0].path, "a1-s20-x");
}

TEST_F(Scan, AJobWithoutAttemptsHasNone) {
  std::filesystem::remove_all(folder_ + "/attempts");
  const Result<FolderScan> scan = scan_job_folder(real_file_system(), folder_);
  ASSERT_TRUE(scan) << scan.error().message;
  EXPECT_TRUE(scan->attempts.empty());
}

// A checkpoint without its attempt may be of an abandoned line.
TEST_F(Scan, AttemptsThatStorageDoesNotGiveAreAnError) {
  FaultyFileSystem storage({.at_call = 1, .error_number = EIO});
  const Result<FolderScan> scan = scan_job_folder(storage, folder_);
  ASSERT_FALSE(scan);
  EXPECT_EQ(storage.broken(), "list");
}

}  // namespace
}  // namespace rekindle
