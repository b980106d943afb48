// Runs every scenario in scenarios/*.txt against the real decisions. With --rewrite the files are
// written anew from what came out: review the diff.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "common/base/format.h"
#include "tests/scenario/operator/script.h"
#include "tests/support/source_folder.h"

namespace rekindle::op::scenario {
namespace {

bool rewrite = false;

std::vector<std::string> files() {
  std::vector<std::string> paths;
  for (const auto& entry :
       std::filesystem::directory_iterator(test::source_path("tests/scenario/operator/scenarios"))) {
    if (entry.path().extension() == ".txt") paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  return paths;
}

std::string read(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

class Scenarios : public testing::TestWithParam<std::string> {};

TEST_P(Scenarios, BehaveAsWritten) {
  std::vector<Block> blocks = parse_script(read(GetParam()));
  ASSERT_FALSE(blocks.empty());
  World world;
  for (Block& block : blocks) {
    if (block.command.empty()) continue;
    const std::vector<std::string> came_out = run_command(world, block.command);
    if (rewrite) {
      block.expected = came_out;
    } else {
      EXPECT_EQ(block.expected, came_out) << "command: " << block.command;
    }
    EXPECT_EQ(world.fault_found(), "") << "command: " << block.command;
  }
  if (rewrite) std::ofstream(GetParam()) << print_script(blocks);
}

constexpr int kSettleSeconds = 100;  // longer than any patience in PlanLimits

// Carries out the whole script, then lets everything come to rest. `before_second` is called before
// each second of the script.
template <typename BeforeSecond>
void run_script(World& world, const std::vector<Block>& blocks, BeforeSecond before_second) {
  for (const Block& block : blocks) {
    if (block.command.empty()) continue;
    if (!block.command.starts_with("settle")) {
      run_command(world, block.command);
      continue;
    }
    const std::size_t equals = block.command.find('=');
    const int seconds = equals == std::string::npos ? 30 : std::stoi(block.command.substr(equals + 1));
    for (int i = 0; i < seconds; ++i) {
      before_second();
      run_command(world, "settle seconds=1");
    }
  }
  run_command(world, format("settle seconds={}", kSettleSeconds));
}

bool has_crash_loop(const std::vector<Block>& blocks) {
  return std::ranges::any_of(blocks, [](const Block& block) { return block.command.starts_with("crash-loop on"); });
}

// The operator is killed right after each of its actions in turn, and comes back five seconds
// later; in the end everything is as if it had not been.
TEST_P(Scenarios, EndTheSameWhereverTheOperatorIsRestarted) {
  const std::vector<Block> blocks = parse_script(read(GetParam()));
  World undisturbed;
  run_script(undisturbed, blocks, [] {});
  ASSERT_EQ(undisturbed.fault_found(), "");
  // Programs that live shorter than the operator is away leave no one who could tell of them: there
  // only the cluster ends the same.
  const bool short_lives = has_crash_loop(blocks);
  for (std::uint32_t k = 1; k <= undisturbed.actions_performed(); ++k) {
    World world;
    world.crash_operator_after(k);
    run_script(world, blocks, [] {});
    if (short_lives) {
      EXPECT_EQ(world.cluster(), undisturbed.cluster()) << "killed after action " << k;
    } else {
      EXPECT_EQ(world.outcome(), undisturbed.outcome()) << "killed after action " << k;
    }
    EXPECT_EQ(world.fault_found(), "") << "killed after action " << k;
  }
}

// The operator is away for five seconds from every other second of the script on: the records may
// differ (what nobody saw is not recorded), the cluster does not.
TEST_P(Scenarios, LeaveTheClusterTheSameWheneverTheOperatorIsAway) {
  const std::vector<Block> blocks = parse_script(read(GetParam()));
  World undisturbed;
  int seconds = 0;
  run_script(undisturbed, blocks, [&] { ++seconds; });
  int times_away = 0;
  for (int at = 1; at <= seconds; at += 2) {
    World world;
    int second = 0;
    run_script(world, blocks, [&] {
      // Where the script has sent it away already there is nothing to disturb.
      if (++second == at && world.crash_operator_now()) ++times_away;
    });
    EXPECT_EQ(world.cluster(), undisturbed.cluster()) << "away from second " << at;
    EXPECT_EQ(world.fault_found(), "") << "away from second " << at;
  }
  EXPECT_GT(times_away, seconds / 4) << "the check must have had something to check";
}

// A pod can be gone, and its job restarted, before anything about it was believed.
TEST_P(Scenarios, AreRecordedTheSameWhenPodsGoQuickly) {
  const std::vector<Block> blocks = parse_script(read(GetParam()));
  World slow;
  run_script(slow, blocks, [] {});
  World quick;
  quick.set_quick(true);
  quick.set_marks(true);
  run_script(quick, blocks, [] {});
  if (has_crash_loop(blocks)) {  // nobody lives long enough to tell
    EXPECT_EQ(quick.cluster(), slow.cluster());
  } else {
    EXPECT_EQ(quick.outcome(), slow.outcome());
  }
  EXPECT_EQ(quick.fault_found(), "");
}

INSTANTIATE_TEST_SUITE_P(Operator, Scenarios, testing::ValuesIn(files()), [](const auto& each) {
  std::string name = std::filesystem::path(each.param).stem();
  std::ranges::replace(name, '-', '_');
  return name;
});

}  // namespace
}  // namespace rekindle::op::scenario

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    if (std::string(argv[i]) == "--rewrite") rekindle::op::scenario::rewrite = true;
  }
  return RUN_ALL_TESTS();
}
