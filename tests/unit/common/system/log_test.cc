#include "common/system/log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "tests/support/test_process.h"

namespace rekindle {
namespace {

// A process that logs to a pipe and ends with 7, as the exit code and what came through the pipe.
struct Logged {
  int exit_code = -1;
  std::string text;
};

Logged log_in_a_process(int lines, bool stalled) {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK), 0);
  const std::string block(4096, 'x');
  while (stalled && ::write(ends[1], block.data(), block.size()) > 0) continue;
  ::fcntl(ends[1], F_SETFL, 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDERR_FILENO);
    for (int i = 0; i < lines; ++i) log_info("a \"quoted\" line", {{"number", i}});
    std::exit(7);
  }
  int status = 0;
  const bool ended = eventually([&] { return ::waitpid(child, &status, WNOHANG) == child; });
  if (!ended) {
    ::kill(child, SIGKILL);
    ::waitpid(child, &status, 0);
  }
  std::array<char, 65536> buffer{};
  const ssize_t got = ::read(ends[0], buffer.data(), buffer.size());
  for (const int end : ends) ::close(end);
  return {.exit_code = ended && WIFEXITED(status) ? WEXITSTATUS(status) : -1,
          .text = {buffer.data(), got > 0 ? static_cast<std::size_t>(got) : 0}};
}

TEST(Log, EveryLineIsWrittenBeforeTheProcessEnds) {
  const Logged logged = log_in_a_process(100, false);
  EXPECT_EQ(logged.exit_code, 7);
  std::istringstream lines(logged.text);
  int number = 0;
  for (std::string line; std::getline(lines, line); ++number)
    EXPECT_EQ(nlohmann::json::parse(line)["number"], number) << line;
  EXPECT_EQ(number, 100);
}

TEST(Log, AnErrorOutputThatNobodyReadsHoldsNobody) { EXPECT_EQ(log_in_a_process(20000, true).exit_code, 7); }

TEST(Log, ALevelIsReadByItsName) {
  EXPECT_EQ(parse_log_level("warning"), LogLevel::warning);
  EXPECT_FALSE(parse_log_level("loud"));
}

}  // namespace
}  // namespace rekindle
