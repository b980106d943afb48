// The run folder belongs to every process of the pod; none of them may stop the sidecar with it.
#include "worker-sidecar/sidecar/job_memory.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <future>

#include "tests/support/temporary_folder.h"

namespace rekindle::sidecar {
namespace {

using namespace std::chrono_literals;

class JobMemory : public testing::Test {
 protected:
  // Whether `work` ends although a FIFO is there, on whose other side is nobody.
  bool ends_beside(const std::string& fifo, const std::function<void()>& work) {
    std::future<void> done = std::async(std::launch::async, work);
    const bool ended = done.wait_for(10s) == std::future_status::ready;
    // Lets go whoever waits for the other side.
    if (!ended) ::open(fifo.c_str(), O_RDWR | O_CLOEXEC);
    return ended;
  }
  std::string remembered_layout() {
    const auto before = remembered_job(folder_.path());
    if (!before) return before.error().message;
    return *before ? (*before)->job_layout_hash : "nothing";
  }

  TemporaryFolder folder_;
  const std::string layout_ = std::string(32, 'a');
};

TEST_F(JobMemory, TheNextSidecarReadsWhatThisOneWroteLast) {
  EXPECT_EQ(remembered_layout(), "nothing");
  ASSERT_TRUE(remember_job(folder_.path(), {.attempt = 2, .job_layout_hash = std::string(32, 'b')}));
  ASSERT_TRUE(remember_job(folder_.path(), {.attempt = 3, .job_layout_hash = layout_}));
  EXPECT_EQ(remembered_layout(), layout_);
  EXPECT_EQ((*remembered_job(folder_.path()))->attempt, 3u);
}

TEST_F(JobMemory, AFifoInItsPlaceIsNotWaitedFor) {
  ASSERT_EQ(::mkfifo(folder_.at("job-layout").c_str(), 0666), 0);
  std::string told;
  EXPECT_TRUE(ends_beside(folder_.at("job-layout"), [&] { told = remembered_layout(); }));
  EXPECT_NE(told.find("job-layout is not a file that this sidecar made"), std::string::npos) << told;
}

TEST_F(JobMemory, AFifoWhereTheNewOneIsWrittenIsReplaced) {
  ASSERT_EQ(::mkfifo(folder_.at("job-layout.new").c_str(), 0666), 0);
  EXPECT_TRUE(ends_beside(folder_.at("job-layout.new"), [&] {
    EXPECT_TRUE(remember_job(folder_.path(), {.attempt = 3, .job_layout_hash = layout_}));
  }));
  EXPECT_EQ(remembered_layout(), layout_);
}

TEST_F(JobMemory, LinksAreNeitherReadNorWrittenThrough) {
  write_bytes(folder_.at("elsewhere"), "3 " + layout_ + "\n");
  std::filesystem::create_symlink(folder_.at("elsewhere"), folder_.at("job-layout"));
  EXPECT_NE(remembered_layout().find("is not a file that this sidecar made"), std::string::npos);
  std::filesystem::create_symlink(folder_.at("elsewhere"), folder_.at("job-layout.new"));
  EXPECT_TRUE(remember_job(folder_.path(), {.attempt = 4, .job_layout_hash = std::string(32, 'b')}));
  EXPECT_EQ(read_bytes(folder_.at("elsewhere")), "3 " + layout_ + "\n");
}

TEST_F(JobMemory, WhatDoesNotReadLikeOneIsAnErrorThatNamesIt) {
  write_bytes(folder_.at("job-layout"), "3 no-hash\n");
  EXPECT_NE(remembered_layout().find("job-layout does not read like"), std::string::npos);
}

}  // namespace
}  // namespace rekindle::sidecar
