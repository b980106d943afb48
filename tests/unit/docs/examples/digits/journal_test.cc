// The journal is what the proof of the demo counts: every step, as one line, in each of its files.
#include "docs/examples/digits/journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "docs/examples/digits/options.h"
#include "tests/support/temporary_folder.h"

namespace digits {
namespace {

using rekindle::read_bytes;
using rekindle::TemporaryFolder;
using ::testing::ElementsAre;

TEST(Journal, EachFileHasALineForEveryStep) {
  const TemporaryFolder folder;
  Journal journal;
  for (const char* name : {"one", "two"}) ASSERT_TRUE(journal.open(folder.at(name)));
  for (const std::uint64_t step : {7, 8}) journal.write({.attempt = 3, .step = step, .rank = 1});
  for (const char* name : {"one", "two"}) {
    std::istringstream lines(read_bytes(folder.at(name)));
    std::vector<std::uint64_t> steps;
    for (std::string line; std::getline(lines, line);) {
      const auto entry = nlohmann::json::parse(line);
      EXPECT_EQ(entry["attempt"], 3U);
      steps.push_back(entry["step"]);
    }
    EXPECT_THAT(steps, ElementsAre(7, 8)) << name;
  }
}

TEST(Journal, ANewLifeAppendsToWhatTheOldOneWrote) {
  const TemporaryFolder folder;
  for (const std::uint64_t attempt : {1, 2}) {
    Journal journal;
    ASSERT_TRUE(journal.open(folder.at("steps")));
    journal.write({.attempt = attempt, .step = attempt});
  }
  std::string content = read_bytes(folder.at("steps"));
  EXPECT_EQ(std::count(content.begin(), content.end(), '\n'), 2);
}

TEST(Journal, AFileThatCannotBeWrittenIsNamed) {
  Journal journal;
  const Status opened = journal.open("/no-such-folder/steps");
  ASSERT_FALSE(opened);
  EXPECT_NE(opened.error().find("/no-such-folder/steps"), std::string::npos);
}

TEST(Options, EveryLogIsKeptAndGetsTheNumberOfItsRank) {
  std::string words[] = {"digits", "--data=x", "--log=-", "--log", "/claim/steps-%r"};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  ASSERT_EQ(::setenv("REKINDLE_RANK", "2", 1), 0);
  ASSERT_EQ(::setenv("REKINDLE_WORLD_SIZE", "4", 1), 0);
  const Result<Options> options = read_options(static_cast<int>(arguments.size()), arguments.data());
  ::unsetenv("REKINDLE_RANK");
  ::unsetenv("REKINDLE_WORLD_SIZE");
  ASSERT_TRUE(options) << options.error();
  EXPECT_THAT(options->logs, ElementsAre("-", "/claim/steps-2"));
}

}  // namespace
}  // namespace digits
