#include "worker-sidecar/launcher/run_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>
#include <vector>

#include "common/base/format.h"
#include "tests/support/temporary_folder.h"

namespace rekindle::launcher {
namespace {

TEST(JobLock, IsHadByOneRunAtATime) {
  const TemporaryFolder folder;
  {
    const Result<JobLock> first = JobLock::take(folder.path(), "team");
    ASSERT_TRUE(first);
    const Result<JobLock> second = JobLock::take(folder.path(), "team");
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, ErrorCode::already_exists);
    EXPECT_TRUE(second.error().message.contains(format("process {}", ::getpid()))) << second.error().message;
    EXPECT_TRUE(JobLock::take(folder.path(), "other"));
  }
  EXPECT_TRUE(JobLock::take(folder.path(), "team"));
}

// Two runs of one job went side by side.
TEST(JobLock, AFileThatCannotBeLockedIsAnErrorThatNamesIt) {
  const TemporaryFolder folder;
  const std::string path = folder.at(".team.lock");
  std::filesystem::create_symlink("/nowhere/x", path);
  const Result<JobLock> lock = JobLock::take(folder.path(), "team");
  ASSERT_FALSE(lock);
  EXPECT_TRUE(lock.error().message.contains(path)) << lock.error().message;
}

TEST(JobLock, IsForTheGroupWhateverTheUmaskSays) {
  const TemporaryFolder folder;
  const mode_t before = ::umask(077);
  const Result<JobLock> lock = JobLock::take(folder.path(), "team");
  ::umask(before);
  ASSERT_TRUE(lock);
  struct stat about{};
  ASSERT_EQ(::stat(folder.at(".team.lock").c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0660u);
}

// A start removes what killed ones have left behind, and a folder that has no lock yet looks like
// that.
TEST(RunFolder, IsKeptWhileOthersStart) {
  constexpr int kThreads = 8;
  constexpr int kFolders = 200;
  std::atomic<int> lost = 0;
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&] {
      for (int i = 0; i < kFolders; ++i) {
        const Result<RunFolder> folder = RunFolder::make();
        if (!folder || !std::filesystem::is_directory(folder->path())) ++lost;
      }
    });
  }
  threads.clear();
  EXPECT_EQ(lost, 0);
}

}  // namespace
}  // namespace rekindle::launcher
