#include "common/base/mailbox.h"

#include <gtest/gtest.h>

#include <thread>

namespace rekindle {
namespace {

using namespace std::chrono_literals;

TEST(Mailbox, KeepsTheOrderOfOneSender) {
  Mailbox<int> mailbox(8);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(mailbox.push(i));
  EXPECT_EQ(mailbox.take_all(0ns), (std::deque<int>{0, 1, 2}));
}

TEST(Mailbox, FullMailboxTellsTheSender) {
  Mailbox<int> mailbox(1);
  EXPECT_TRUE(mailbox.try_push(1));
  EXPECT_FALSE(mailbox.try_push(2));
}

TEST(Mailbox, ClosingFreesASenderThatWaits) {
  Mailbox<int> mailbox(1);
  ASSERT_TRUE(mailbox.push(1));
  std::thread sender([&] { EXPECT_FALSE(mailbox.push(2)); });
  mailbox.close();
  sender.join();
}

TEST(Mailbox, StoppingFreesASenderThatWaits) {
  Mailbox<int> mailbox(1);
  ASSERT_TRUE(mailbox.push(1));
  std::jthread sender([&](std::stop_token stop) { EXPECT_FALSE(mailbox.push(2, stop)); });
  sender.request_stop();
  sender.join();
  EXPECT_EQ(mailbox.take_all(0ns), (std::deque<int>{1}));
}

}  // namespace
}  // namespace rekindle
