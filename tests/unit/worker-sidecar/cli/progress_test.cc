#include "worker-sidecar/cli/progress.h"

#include <gtest/gtest.h>

#include <sstream>

namespace rekindle::cli {
namespace {

class ProgressLines : public testing::Test {
 protected:
  Progress make(bool shown) {
    return Progress(err_, shown, [this] { return now_; });
  }
  void pass(std::chrono::milliseconds time) { now_ += time; }

  std::ostringstream err_;
  Instant now_{};
};

TEST_F(ProgressLines, ComeOnceASecondAtMost) {
  Progress progress = make(true);
  progress.begin("verifying x");
  for (std::uint64_t done = 1; done <= 30; ++done) {
    pass(std::chrono::milliseconds(100));
    progress.report(done * 1024, 40 * 1024);
  }
  EXPECT_EQ(err_.str(),
            "verifying x: 10.0 KiB of 40.0 KiB, 25 %\nverifying x: 20.0 KiB of 40.0 KiB, 50 %\nverifying x: 30.0 KiB "
            "of 40.0 KiB, 75 %\n");
}

TEST_F(ProgressLines, ShortWorkHasNone) {
  Progress progress = make(true);
  for (int i = 0; i < 10; ++i) {
    progress.begin("a small file");
    pass(std::chrono::milliseconds(999));
    progress.report(1, 1);
  }
  EXPECT_EQ(err_.str(), "");
}

TEST_F(ProgressLines, NobodyIsToldWhoDidNotAsk) {
  Progress progress = make(false);
  progress.begin("verifying x");
  pass(std::chrono::hours(1));
  progress.report(1, 2);
  EXPECT_EQ(err_.str(), "");
}

TEST_F(ProgressLines, NoBytesAtAllAreNoDivisionByZero) {
  Progress progress = make(true);
  progress.begin("nothing");
  pass(std::chrono::seconds(1));
  progress.report(0, 0);
  EXPECT_EQ(err_.str(), "nothing: 0 B of 0 B\n");
}

}  // namespace
}  // namespace rekindle::cli
