// Real processes: what a signal to a rank reaches.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "common/base/format.h"
#include "worker-sidecar/launcher/children.h"

namespace rekindle::launcher {
namespace {

// Held open by everybody whom the rank has started, so its end says that nobody is left.
class SharedPipe {
 public:
  SharedPipe() { EXPECT_EQ(::pipe(ends_.data()), 0); }
  ~SharedPipe() {
    ::close(ends_[0]);
    close_own();
  }

  std::string path() const { return format("/proc/self/fd/{}", ends_[1]); }
  // For the end to come, this process must not hold it.
  void close_own() {
    if (ends_[1] >= 0) ::close(ends_[1]);
    ends_[1] = -1;
  }
  // What is said next: empty at the end, and "nothing" when nothing comes.
  std::string next() const {
    pollfd waiting{.fd = ends_[0], .events = POLLIN, .revents = 0};
    if (::poll(&waiting, 1, 20'000) <= 0) return "nothing";
    std::array<char, 64> buffer{};
    const ssize_t got = ::read(ends_[0], buffer.data(), buffer.size());
    return {buffer.data(), got > 0 ? static_cast<std::size_t>(got) : 0};
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

// A rank whose command is a shell that starts another process and waits for it.
class RankInAShell : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(children.start(0, {{"PATH", "/usr/bin:/bin"}}));
    ASSERT_EQ(pipe.next(), "up\n");
    pipe.close_own();
  }

  SharedPipe pipe;
  Children children{{.command = {"/bin/sh", "-c", format("sleep 60 & echo up > {}; wait", pipe.path())}}};
};

TEST_F(RankInAShell, ASignalToAllRanksLeavesNobodyBehind) {
  children.signal_all(SIGKILL);
  EXPECT_EQ(pipe.next(), "");
}

TEST_F(RankInAShell, ASignalToTheRankLeavesNobodyBehind) {
  children.signal(0, SIGKILL);
  EXPECT_EQ(pipe.next(), "");
}

}  // namespace
}  // namespace rekindle::launcher
