// Periodic checkpoints and shadows of real processes that all die at once, or whose part nobody
// else has.
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <set>

#include "common/base/format.h"
#include "tests/unit/worker-sidecar/launcher/local_run.h"

namespace rekindle::launcher {
namespace {

const std::vector<std::string> kEvery8{"--checkpoint-every", "8 steps"};
const std::vector<std::string> kShadow{"--shadow-every", "1 step"};

class LocalSnapshots : public LocalRun {
 protected:
  // Ends all ranks at one moment: no rank goes on when another is dead.
  static void kill_all_ranks(const TestProcess& run) {
    const std::vector<pid_t> ranks = ranks_of(run);
    ASSERT_EQ(ranks.size(), static_cast<std::size_t>(kRanks));
    for (const pid_t rank : ranks) ::kill(rank, SIGSTOP);
    for (const pid_t rank : ranks) ::kill(rank, SIGKILL);
  }
  // The least step that all ranks said they had committed.
  std::uint64_t step_of_all() {
    std::uint64_t step_min = number_in("step-0");
    for (int rank = 1; rank < kRanks; ++rank) step_min = std::min(step_min, number_in(format("step-{}", rank)));
    return step_min;
  }
  static std::string run_folder(const TestProcess& run) {
    const std::vector<pid_t> ranks = ranks_of(run);
    const std::string environment = ranks.empty() ? "" : read_bytes(format("/proc/{}/environ", ranks.front()));
    const std::size_t begin = environment.find("REKINDLE_SOCKET=");
    if (begin == std::string::npos) return "";
    return std::filesystem::path(environment.c_str() + begin + std::strlen("REKINDLE_SOCKET=")).parent_path();
  }
  // Whether the shadows follow one plan in which the tensor is, and each has copies of two steps
  // (docs/formats/shadow.md).
  static bool shadows_keep(const std::string& tensor, const std::string& folder) {
    std::set<std::uint64_t> serials;
    bool planned = false;
    for (int rank = 0; rank < kRanks; ++rank) {
      const std::string shadow = read_bytes(format("{}/rank-{}.shadow", folder, rank));
      const auto number_at = [&](std::uint64_t at) {
        std::uint64_t value = 0;
        if (at + sizeof value <= shadow.size()) std::memcpy(&value, shadow.data() + at, sizeof value);
        return value;
      };
      const std::uint64_t slots = number_at(48);
      const std::uint64_t slot_bytes = number_at(56);
      if (number_at(slots) == 0 || number_at(slots + slot_bytes) == 0) return false;
      serials.insert(number_at(24));
      planned = planned || shadow.substr(0, slots).contains('"' + tensor + '"');
    }
    return planned && serials.size() == 1;
  }
  // That of the newest periodic checkpoint of the first life.
  std::uint64_t saved_before_restart() {
    std::uint64_t step = 0;
    for (const auto& event : events()) {
      if (event["event"] == "restart") break;
      if (event["event"] == "periodic") step = event["step"].get<std::uint64_t>();
    }
    return step;
  }
};

TEST_F(LocalSnapshots, AnOptionThatSaysHowManyStayWinsOverVariablesThatSayHowFarApart) {
  environment_["TEST_STEP_MICROSECONDS"] = "20000";
  environment_["REKINDLE_CHECKPOINT_CONFIG"] = "keep_checkpoint_per_n_minutes=30";
  environment_["REKINDLE_KEEP_EVERY"] = "30 min";
  const auto run = start({"--checkpoint-every", "4 steps", "--keep", "100"});
  EXPECT_EQ(run->wait(), 0) << run->output();
  const std::size_t published = events("periodic").size();
  ASSERT_GE(published, 4u) << run->output();
  std::size_t complete = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_.at("checkpoints")))
    complete += entry.path().filename() == "manifest.json" ? 1 : 0;
  EXPECT_GE(complete, published);
}

TEST_F(LocalSnapshots, PeriodicCheckpointsComeAtTheirStepsAndChangeNothing) {
  environment_["TEST_STEP_MICROSECONDS"] = "20000";
  const auto run = start(kEvery8);
  EXPECT_EQ(run->wait(), 0) << run->output();
  expect_undisturbed_end();
  std::set<std::uint64_t> steps;
  for (const auto& event : events("periodic")) steps.insert(event["step"].get<std::uint64_t>());
  EXPECT_TRUE(steps.contains(8)) << run->output();
  for (const std::uint64_t step : steps) EXPECT_EQ(step % 8, 0u);
  EXPECT_TRUE(events("hold").empty());
}

TEST_F(LocalSnapshots, WhenLauncherAndRanksAreKilledTheNextRunGoesOnFromTheNewestPeriodicCheckpoint) {
  environment_["TEST_STEP_MICROSECONDS"] = "20000";
  {
    const auto run = start(kEvery8);
    ASSERT_TRUE(eventually([&] { return last_step_of("periodic") >= 16; })) << run->output();
    ::kill(-run->pid(), SIGKILL);
    EXPECT_EQ(run->wait(), 137);
  }
  const std::uint64_t saved = last_step_of("periodic");
  environment_["TEST_STEP_MICROSECONDS"] = "100";
  const auto run = start();
  EXPECT_EQ(run->wait(), 0) << run->output();
  // One that was published in the last moment may not have been announced any more.
  EXPECT_GE(number_in("first-0-2"), saved + 1);
  EXPECT_EQ((number_in("first-0-2") - 1) % 8, 0u);
  expect_undisturbed_end();
}

TEST_F(LocalSnapshots, WhenAllRanksDieAtOnceTheStepIsWrittenFromTheirShadows) {
  environment_["TEST_STEP_MICROSECONDS"] = "10000";
  const auto run = start(kShadow);
  ASSERT_TRUE(eventually([&] { return step_of_all() >= 12; })) << run->output();
  kill_all_ranks(*run);
  const std::uint64_t committed = step_of_all();
  EXPECT_EQ(run->wait(), 0) << run->output();
  ASSERT_EQ(events("durable").size(), 1u) << run->output();
  EXPECT_GE(events("durable")[0]["step"], committed);
  EXPECT_EQ(number_in("first-0-2"), events("durable")[0]["step"].get<std::uint64_t>() + 1);
  const std::string path = events("durable")[0]["path"];
  const auto sealed =
      nlohmann::json::parse(read_bytes(folder_.at(format("checkpoints/local.local/{}/manifest.json", path))));
  EXPECT_EQ(sealed["manifest"]["states"].size(), static_cast<std::size_t>(kRanks))
      << "small state of every rank outlives it";
  expect_undisturbed_end();
}

TEST_F(LocalSnapshots, AShadowOfEveryFourthStepCostsAtMostThreeSteps) {
  environment_["TEST_STEP_MICROSECONDS"] = "10000";
  const auto run = start({"--shadow-every", "4 steps"});
  ASSERT_TRUE(eventually([&] { return step_of_all() >= 14; })) << run->output();
  kill_all_ranks(*run);
  const std::uint64_t committed = step_of_all();
  EXPECT_EQ(run->wait(), 0) << run->output();
  ASSERT_EQ(events("durable").size(), 1u) << run->output();
  const std::uint64_t saved = events("durable")[0]["step"];
  EXPECT_EQ(saved % 4, 0u);
  EXPECT_GT(saved + 4, committed);
  EXPECT_EQ(number_in("first-0-2"), saved + 1);
  expect_undisturbed_end();
}

TEST_F(LocalSnapshots, WhenAllRanksDieAtOnceWithoutShadowsTheNewestCheckpointStandsAndThatIsSaid) {
  environment_["TEST_STEP_MICROSECONDS"] = "20000";
  const auto run = start(kEvery8);
  ASSERT_TRUE(eventually([&] { return last_step_of("periodic") >= 8 && step_of_all() % 8 == 4; })) << run->output();
  kill_all_ranks(*run);
  EXPECT_EQ(run->wait(), 0) << run->output();
  const std::uint64_t saved = saved_before_restart();
  ASSERT_EQ(events("durable").size(), 1u) << run->output();
  EXPECT_EQ(events("durable")[0]["step"], saved);
  EXPECT_TRUE(run->output().contains(format("step {} stands in ", saved))) << run->output();
  EXPECT_TRUE(run->output().contains("was committed only by ranks 0, 1, 2, which are gone")) << run->output();
  EXPECT_EQ(number_in("first-0-2"), saved + 1);
  expect_undisturbed_end();
}

TEST_F(LocalSnapshots, MomentsThatAppearLateAndWeightsThatMoveAreInTheShadow) {
  environment_["TEST_STEP_MICROSECONDS"] = "60000";
  environment_["TEST_LATE_MOMENTS"] = "1";
  environment_["TEST_MOVES"] = "1";
  const auto run = start(kShadow);
  ASSERT_TRUE(eventually([&] { return step_of_all() >= 4; })) << run->output();
  const std::string folder = run_folder(*run);
  ASSERT_TRUE(eventually([&] { return shadows_keep("moments", folder); })) << run->output();
  kill_all_ranks(*run);
  const std::uint64_t committed = step_of_all();
  EXPECT_EQ(run->wait(), 0) << run->output();
  ASSERT_EQ(events("durable").size(), 1u) << run->output();
  EXPECT_GE(events("durable")[0]["step"], committed);
  expect_undisturbed_end();
}

TEST_F(LocalSnapshots, MemoryThatIsTooSmallForShadowsIsSaidOnceAndTrainingGoesOn) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can mount";
  // A mount of its own for this run: room for control blocks, none for copies.
  std::vector<std::string> words{"/usr/bin/unshare",
                                 "--mount",
                                 "/bin/sh",
                                 "-c",
                                 "mount --bind \"$0\" /mnt && mount -t tmpfs -o size=560k none /dev/shm && mkdir -p "
                                 "\"$0\" && mount --bind /mnt \"$0\" && exec \"$@\"",
                                 folder_.path()};
  for (const std::string& word : command(kShadow, kRanks)) words.push_back(word);
  TestProcess run(words, environment_, folder_.at("log"));
  EXPECT_EQ(run.wait(), 0) << run.output();
  const std::string said = run.output();
  const std::size_t first = said.find("the memory volume is full");
  ASSERT_NE(first, std::string::npos) << said;
  EXPECT_EQ(said.find("the memory volume is full", first + 1), std::string::npos) << said;
  expect_undisturbed_end();
}

TEST_F(LocalSnapshots, ALimitForFilesThatIsTooSmallForShadowsEndsNoRank) {
  TestProcess run({REKINDLE_PROGRAM, "run", "-n", "2", "--shadow-every", "1 step", "--", "/bin/sh", "-c",
                   "ulimit -f 200 && exec \"$0\"", REKINDLE_TEST_RANK},
                  environment_, folder_.at("log"));
  EXPECT_EQ(run.wait(), 0) << run.output();
  EXPECT_TRUE(run.output().contains("ulimit -f")) << run.output();
  expect_undisturbed_end(2);
}

struct OnlyCopy {
  const char* name;
  const char* layout;
  const char* where;
};

class LocalOnlyCopy : public LocalSnapshots, public testing::WithParamInterface<OnlyCopy> {
 protected:
  void SetUp() override {
    LocalSnapshots::SetUp();
    environment_["TEST_LAYOUT"] = GetParam().layout;
    environment_["TEST_FAULT"] = std::string("1:20:") + GetParam().where;
    environment_["TEST_STEP_MICROSECONDS"] = "20000";
  }
};

TEST_P(LocalOnlyCopy, OfARankThatDiesIsWrittenFromItsShadow) {
  const auto run = start(kShadow);
  EXPECT_EQ(run->wait(), 0) << run->output();
  ASSERT_EQ(events("durable").size(), 1u) << run->output();
  const std::uint64_t saved = std::string_view(GetParam().where) == "committed_by_all" ? 20 : 19;
  EXPECT_EQ(events("durable")[0]["step"], saved) << run->output();
  EXPECT_EQ(number_in("first-1-2"), saved + 1);
  expect_undisturbed_end();
}

TEST_P(LocalOnlyCopy, WithoutAShadowIsLostAndThePreviousCheckpointStands) {
  const auto run = start(kEvery8);
  EXPECT_EQ(run->wait(), 0) << run->output();
  ASSERT_EQ(events("durable").size(), 1u) << run->output();
  EXPECT_EQ(events("durable")[0]["step"], saved_before_restart()) << run->output();
  // Another rank may not have made that step yet, and then it is named first.
  EXPECT_TRUE(run->output().contains("there is no copy of the part of rank 1") ||
              run->output().contains("and of that of rank 1"))
      << run->output();
  EXPECT_EQ(number_in("first-1-2"), saved_before_restart() + 1) << run->output();
  expect_undisturbed_end();
}

INSTANTIATE_TEST_SUITE_P(Layouts, LocalOnlyCopy,
                         testing::Values(OnlyCopy{"OfRowsComputing", "rows", "computing"},
                                         OnlyCopy{"OfRowsUpdating", "rows", "updating"},
                                         OnlyCopy{"OfRowsCommitted", "rows", "committed_by_all"},
                                         OnlyCopy{"OfAStageUpdating", "stages", "updating"}),
                         [](const auto& copy) { return copy.param.name; });

}  // namespace
}  // namespace rekindle::launcher
