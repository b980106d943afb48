#include "common/system/waker.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>

namespace rekindle {
namespace {

bool readable(int descriptor) {
  pollfd waiting{.fd = descriptor, .events = POLLIN, .revents = 0};
  return ::poll(&waiting, 1, 0) == 1;
}

TEST(Waker, StaysReadableUntilItIsTaken) {
  const Waker waker;
  EXPECT_FALSE(readable(waker.descriptor()));
  waker.wake();
  waker.wake();
  EXPECT_TRUE(readable(waker.descriptor()));
  EXPECT_TRUE(waker.take());
  EXPECT_FALSE(waker.take());
  EXPECT_FALSE(readable(waker.descriptor()));
}

TEST(Waker, IsFalseAndHarmlessWhereNoDescriptorIsLeft) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const Waker waker;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_FALSE(waker);
  EXPECT_EQ(waker.descriptor(), -1);
  waker.wake();
  EXPECT_FALSE(waker.take());
}

}  // namespace
}  // namespace rekindle
