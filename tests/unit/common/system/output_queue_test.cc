#include "common/system/output_queue.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <sstream>
#include <string>

#include "common/base/format.h"

namespace rekindle {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kQueueBytes = 8192;

std::string dropped_notice(std::uint64_t dropped) { return format("{} dropped\n", dropped); }

// A pipe with a queue before it. Nobody reads until taken() does.
class UnreadPipe {
 public:
  UnreadPipe() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    reader_ = FileDescriptor(ends[0]);
    writer_ = FileDescriptor(ends[1]);
    ::fcntl(reader_.get(), F_SETFL, O_NONBLOCK);
  }
  FileDescriptor writer() { return std::move(writer_); }
  void fill() const {
    ::fcntl(writer_.get(), F_SETFL, O_NONBLOCK);
    const std::string block(4096, 'x');
    while (::write(writer_.get(), block.data(), block.size()) > 0) continue;
    ::fcntl(writer_.get(), F_SETFL, 0);
  }
  std::string taken() const {
    std::array<char, 65536> buffer{};
    const ssize_t got = ::read(reader_.get(), buffer.data(), buffer.size());
    return {buffer.data(), got > 0 ? static_cast<std::size_t>(got) : 0};
  }
  void leave() { reader_.reset(); }

 private:
  FileDescriptor reader_;
  FileDescriptor writer_;
};

TEST(OutputQueue, WhatIsReadComesWholeAndInOrder) {
  UnreadPipe pipe;
  OutputQueue queue(pipe.writer(), kQueueBytes, dropped_notice);
  for (const char* line : {"one\n", "two\n", "three\n"}) queue.write(line);
  EXPECT_TRUE(queue.flush(60s));
  EXPECT_EQ(pipe.taken(), "one\ntwo\nthree\n");
}

TEST(OutputQueue, AReaderThatStandsStillCostsTextsWhichAreCounted) {
  constexpr std::uint64_t kLines = 10000;
  UnreadPipe pipe;
  pipe.fill();
  OutputQueue queue(pipe.writer(), kQueueBytes, dropped_notice);
  for (std::uint64_t i = 0; i < kLines; ++i) queue.write(format("line {}\n", i));
  EXPECT_FALSE(queue.flush(1ms));
  pipe.taken();  // what filled the pipe
  EXPECT_TRUE(queue.flush(60s));
  std::istringstream lines(pipe.taken());
  std::uint64_t whole = 0;
  std::uint64_t dropped = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line == format("line {}", whole)) ++whole;
    else dropped += std::stoull(line);
  }
  EXPECT_GT(whole, 0u);
  EXPECT_EQ(whole + dropped, kLines);
}

TEST(OutputQueue, SaysThatASlowReaderHasEnoughBeforeIt) {
  UnreadPipe pipe;
  pipe.fill();
  OutputQueue queue(pipe.writer(), 1u << 20, dropped_notice);
  EXPECT_TRUE(queue.has_room());
  queue.write(std::string(1u << 17, 'x'));
  queue.write(std::string(1u << 17, 'x'));
  EXPECT_FALSE(queue.has_room());
  while (!queue.flush(1ms)) pipe.taken();
  EXPECT_TRUE(queue.has_room());
}

TEST(OutputQueue, AReaderThatHasGoneCostsTheTextAlone) {
  std::signal(SIGPIPE, SIG_IGN);
  UnreadPipe pipe;
  OutputQueue queue(pipe.writer(), kQueueBytes, dropped_notice);
  pipe.leave();
  queue.write("to nobody\n");
  EXPECT_TRUE(queue.flush(60s));
}

TEST(OutputQueue, EndsThoughItsReaderStandsStill) {
  UnreadPipe pipe;
  pipe.fill();
  {
    OutputQueue(pipe.writer(), kQueueBytes, dropped_notice).write("never read\n");
  }
  EXPECT_EQ(pipe.taken().find_first_not_of('x'), std::string::npos);
}

}  // namespace
}  // namespace rekindle
