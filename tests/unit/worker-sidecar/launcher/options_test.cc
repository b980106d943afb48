#include "worker-sidecar/launcher/options.h"

#include <gtest/gtest.h>

#include "worker-sidecar/launcher/event_log.h"

namespace rekindle::launcher {
namespace {

TEST(RunOptions, WordsBehindTheDividerAreTheCommandUntouched) {
  const ParsedRun parsed =
      parse_run({"-n", "4", "--max-restarts", "2", "--tag-output", "--", "python", "train.py", "-n", "7", "--", "x"});
  EXPECT_EQ(parsed.text, "");
  EXPECT_EQ(parsed.options.ranks, 4u);
  EXPECT_EQ(parsed.options.restarts_max, 2u);
  EXPECT_TRUE(parsed.options.tag_output);
  EXPECT_EQ(parsed.options.command, (std::vector<std::string>{"python", "train.py", "-n", "7", "--", "x"}));
}

TEST(RunOptions, ACommandWithoutTheDividerIsExplained) {
  const ParsedRun parsed = parse_run({"-n", "4", "python", "train.py"});
  EXPECT_EQ(parsed.exit_code, 2);
  EXPECT_NE(parsed.text.find("--"), std::string::npos);
}

TEST(RunOptions, AnOptionThatDoesNotExistIsCalledByItsNameThoughTheDividerIsThere) {
  const ParsedRun parsed = parse_run({"-n", "2", "--keep-every", "30 min", "--", "./train", "3"});
  EXPECT_EQ(parsed.exit_code, 2);
  EXPECT_NE(parsed.text.find("unknown option --keep-every"), std::string::npos) << parsed.text;
  EXPECT_EQ(parsed.text.find("put --"), std::string::npos) << parsed.text;
}

TEST(RunOptions, AWordInFrontOfTheDividerIsCalledByItsName) {
  const ParsedRun parsed = parse_run({"-n", "2", "train.py", "--", "python"});
  EXPECT_EQ(parsed.exit_code, 2);
  EXPECT_NE(parsed.text.find("train.py in front of --"), std::string::npos) << parsed.text;
}

TEST(RunOptions, HelpNamesEveryVariableThatIsReadForAnOption) {
  const std::string help = parse_run({"--help"}).text;
  for (const char* variable :
       {"REKINDLE_CHECKPOINT_DIR", "REKINDLE_JOB", "REKINDLE_CHECKPOINT_EVERY", "REKINDLE_SHADOW_EVERY",
        "REKINDLE_KEEP", "REKINDLE_WRITE_BANDWIDTH_MAX", "REKINDLE_RESUME"})
    EXPECT_NE(help.find(variable), std::string::npos) << variable;
}

TEST(RunOptions, NoCommandIsExplained) { EXPECT_EQ(parse_run({"-n", "4"}).exit_code, 2); }

TEST(RunOptions, ZeroRanksAreRefused) { EXPECT_EQ(parse_run({"-n", "0", "--", "x"}).exit_code, 2); }

TEST(RunOptions, TakeAsManyRanksAsAPodMayHave) {
  EXPECT_EQ(parse_run({"-n", "1024", "--", "x"}).exit_code, 0);
  EXPECT_EQ(parse_run({"-n", "1025", "--", "x"}).exit_code, 2);
}

TEST(RunOptions, HelpSaysHowToCallIt) {
  const ParsedRun parsed = parse_run({"--help"});
  EXPECT_EQ(parsed.exit_code, 0);
  EXPECT_NE(parsed.text.find("-- command [arguments...]"), std::string::npos) << parsed.text;
}

TEST(EventLine, LeavesOutWhatSaysNothing) {
  EXPECT_EQ(event_line({.event = "hold", .attempt = 2, .term = 65536, .message = "a \"quoted\"\nline"},
                       std::chrono::microseconds(1500)),
            R"({"attempt":2,"event":"hold","message":"a \"quoted\"\nline","milliseconds":1.5,"term":65536})");
}

}  // namespace
}  // namespace rekindle::launcher
