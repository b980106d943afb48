#include "worker-sidecar/runtime/src/open_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "worker-sidecar/runtime/src/c_struct.h"

namespace rekindle::runtime {
namespace {

using ::testing::HasSubstr;

class OptionsFrom : public ::testing::Test {
 protected:
  Outcome<OpenOptions> read() {
    return read_open_options(&given, [this](const char* name) -> const char* {
      const auto found = variables.find(name);
      return found == variables.end() ? nullptr : found->second.c_str();
    });
  }
  void expect_refused(rk_status status, const char* part) {
    const Outcome<OpenOptions> options = read();
    ASSERT_FALSE(options);
    EXPECT_EQ(options.error().status, status);
    EXPECT_THAT(options.error().message, HasSubstr(part));
  }

  rk_options given{.struct_size = sizeof(rk_options)};
  std::map<std::string, std::string> variables;
};

TEST_F(OptionsFrom, NothingMeansOneRankAlone) {
  const Outcome<OpenOptions> options = read_open_options(nullptr, [](const char*) { return nullptr; });
  ASSERT_TRUE(options);
  EXPECT_EQ(options->socket_path, "");
  EXPECT_EQ(options->rank, 0u);
  EXPECT_EQ(options->world_size, 1u);
  EXPECT_EQ(options->job, "local");
  EXPECT_EQ(options->state_bytes_max, 65536u);
  EXPECT_EQ(options->open_time_max, std::chrono::seconds(600));
  EXPECT_FALSE(options->never_exit);
}

TEST_F(OptionsFrom, TheEnvironmentCompletesWhatIsNotGiven) {
  variables = {{"REKINDLE_SOCKET", "/run/s"},
               {"REKINDLE_CHECKPOINT_DIR", "/c"},
               {"REKINDLE_JOB", "digits"},
               {"REKINDLE_RANK", "3"},
               {"REKINDLE_WORLD_SIZE", "4"}};
  given.job = "other";
  const Outcome<OpenOptions> options = read();
  ASSERT_TRUE(options);
  EXPECT_EQ(options->socket_path, "/run/s");
  EXPECT_EQ(options->checkpoint_dir, "/c");
  EXPECT_EQ(options->job, "other");
  EXPECT_EQ(options->rank, 3u);
  EXPECT_EQ(options->world_size, 4u);
}

TEST_F(OptionsFrom, AGivenWorldSizeSetsTheRankToo) {
  variables = {{"REKINDLE_SOCKET", "/run/s"}, {"REKINDLE_RANK", "3"}, {"REKINDLE_WORLD_SIZE", "4"}};
  given.world_size = 2;
  given.rank = 1;
  EXPECT_EQ(read()->rank, 1u);
  EXPECT_EQ(read()->world_size, 2u);
}

// As torchrun and MindSpore's launchers tell it. Eight processes that took themselves for eight
// jobs of one rank shared a folder, and the last one won.
TEST_F(OptionsFrom, TheLauncherOfAFrameworkSetsThePlaceWhereOursDidNot) {
  variables = {{"REKINDLE_SOCKET", "/run/s"}, {"RANK", "3"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "3"}};
  EXPECT_EQ(read()->rank, 3u);
  EXPECT_EQ(read()->world_size, 8u);
  variables = {{"REKINDLE_SOCKET", "/run/s"}, {"RANK_ID", "5"}, {"RANK_SIZE", "16"}};
  EXPECT_EQ(read()->rank, 5u);
  EXPECT_EQ(read()->world_size, 16u);
}

// In a pod of several ranks the webhook says how many ranks the job has, and torchrun which is
// which; what a plugin of Volcano sets for the pod as a whole does not count.
TEST_F(OptionsFrom, OursComesFirstOneByOne) {
  variables = {{"REKINDLE_SOCKET", "/run/s"}, {"REKINDLE_WORLD_SIZE", "16"}, {"RANK", "9"}, {"WORLD_SIZE", "2"}};
  EXPECT_EQ(read()->rank, 9u);
  EXPECT_EQ(read()->world_size, 16u);
}

TEST_F(OptionsFrom, SeveralRanksOfAnotherLauncherAreNoJobsOfTheirOwn) {
  variables = {{"REKINDLE_CHECKPOINT_DIR", "/c"}, {"RANK", "0"}, {"WORLD_SIZE", "8"}};
  expect_refused(RK_ERROR_ARGUMENT, "rekindle run -n 8");
}

TEST_F(OptionsFrom, APlaceThatDoesNotExistNamesTheVariables) {
  variables = {{"RANK", "8"}, {"WORLD_SIZE", "8"}};
  expect_refused(RK_ERROR_ARGUMENT, "check RANK and WORLD_SIZE");
  variables = {{"RANK_ID", "1"}};
  expect_refused(RK_ERROR_ARGUMENT, "check RANK_ID and REKINDLE_WORLD_SIZE (not set)");
}

TEST_F(OptionsFrom, AnUnsetStructSizeIsExplained) {
  given.struct_size = 0;
  expect_refused(RK_ERROR_ARGUMENT, "set it to sizeof(rk_options)");
  given.struct_size = 1u << 20;
  expect_refused(RK_ERROR_ARGUMENT, "rk_options.struct_size is 1048576");
}

TEST_F(OptionsFrom, AnOlderCallersStructIsReadAsFarAsItGoes) {
  given.struct_size = offsetof(rk_options, rank);
  given.rank = 99;
  given.world_size = 2;
  EXPECT_EQ(read()->world_size, 1u);
}

TEST(StructOfANewerCaller, IsTakenWhenTheUnknownFieldsAreZero) {
  struct Newer {
    rk_options known;
    std::uint64_t unknown;
  } newer{.known = {.struct_size = sizeof(Newer)}, .unknown = 0};
  EXPECT_TRUE(read_struct(&newer.known, "rk_options"));
  newer.unknown = 1;
  EXPECT_EQ(read_struct(&newer.known, "rk_options").error().status, RK_ERROR_VERSION);
}

TEST_F(OptionsFrom, ReservedFieldsAndUnknownFlagsAreOfANewerLibrary) {
  given.flags = 4;
  expect_refused(RK_ERROR_VERSION, "newer librekindle");
  given.flags = RK_NEVER_EXIT;
  EXPECT_TRUE(read()->never_exit);
  given.reserved[6] = 1;
  expect_refused(RK_ERROR_VERSION, "reserved is not zero");
}

TEST_F(OptionsFrom, ARankOutsideTheJobIsRefused) {
  given.world_size = 2;
  given.rank = 2;
  expect_refused(RK_ERROR_ARGUMENT, "rank 2 of 2");
  given.rank = -1;
  expect_refused(RK_ERROR_ARGUMENT, "negative");
  given = {.struct_size = sizeof(rk_options)};
  variables = {{"REKINDLE_RANK", "one"}};
  expect_refused(RK_ERROR_ARGUMENT, "REKINDLE_RANK is 'one'");
  variables = {{"REKINDLE_WORLD_SIZE", "4x"}};
  expect_refused(RK_ERROR_ARGUMENT, "REKINDLE_WORLD_SIZE is '4x'");
}

TEST_F(OptionsFrom, SeveralRanksWithoutASidecarAreToldHowToStart) {
  given.world_size = 4;
  expect_refused(RK_ERROR_ARGUMENT, "rekindle run -n 4");
}

TEST_F(OptionsFrom, ASocketPathThatIsTooLongIsRefused) {
  const std::string path(200, 'x');
  given.socket_path = path.c_str();
  expect_refused(RK_ERROR_ARGUMENT, "longer than the 107 bytes");
}

}  // namespace
}  // namespace rekindle::runtime
