#include "worker-sidecar/runtime/src/memory_room.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rekindle::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint64_t kNoLimit = 9223372036854771712u;  // as version 1 says it

TEST(MemoryRoom, WhatFitsEverywhereHasNoShortage) {
  const MemoryRoom room{.limits = {{"/c/memory.max", 1000, 400}, {"/memory.max", kNoLimit, 5000}},
                        .available_bytes = 600,
                        .volume_bytes = 600};
  EXPECT_EQ(find_shortage(600, room), std::nullopt);
}

TEST(MemoryRoom, WhatCouldNotBeFoundOutRefusesNothing) { EXPECT_EQ(find_shortage(1ull << 60, {}), std::nullopt); }

TEST(MemoryRoom, TheTightestLimitIsNamedWithWhatItLeaves) {
  const MemoryRoom room{
      .limits = {{"/c/memory.max", 1000, 300}, {"/memory.max", 2000, 1500}, {"/above/memory.max", 9000, 1500}}};
  const std::optional<std::string> why = find_shortage(600, room);
  ASSERT_TRUE(why);
  EXPECT_EQ(*why,
            "the memory limit of 2000 bytes leaves 500 (1500 are in use, says /memory.max): raise the memory limit of "
            "the training container by 100 bytes or more");
}

TEST(MemoryRoom, AGroupThatIsBeyondItsLimitLeavesNothing) {
  EXPECT_THAT(find_shortage(1, {.limits = {{"/c/memory.max", 1000, 1200}}}).value_or(""), HasSubstr("leaves 0"));
}

TEST(MemoryRoom, AVolumeThatIsTooSmallIsNamedWithItsSetting) {
  const std::string why = find_shortage(600, {.available_bytes = 100, .volume_bytes = 599}).value_or("");
  EXPECT_THAT(why, HasSubstr("the memory volume is full (599 bytes are free)"));
  EXPECT_THAT(why, HasSubstr("rekindle.dev/memory-volume-size"));
}

TEST(MemoryRoom, AMachineWithTooLittleIsSaid) {
  EXPECT_THAT(find_shortage(600, {.available_bytes = 100}).value_or(""),
              HasSubstr("the machine has 100 bytes of memory available: train on one with 500 bytes more"));
}

TEST(MemoryGroups, OfVersionOneLieBelowTheirMount) {
  EXPECT_THAT(find_memory_groups("8:pids:/a\n4:memory:/kubepods/pod1/c1\n0::/\n",
                                 "50 48 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
                                 "52 48 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n"),
              ElementsAre(MemoryGroup{"/sys/fs/cgroup/memory/kubepods/pod1/c1", "/sys/fs/cgroup/memory", false}));
}

TEST(MemoryGroups, OfVersionTwoLieBelowTheirMount) {
  EXPECT_THAT(find_memory_groups("0::/system.slice/job.service\n",
                                 "30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n"),
              ElementsAre(MemoryGroup{"/sys/fs/cgroup/system.slice/job.service", "/sys/fs/cgroup", true}));
}

TEST(MemoryGroups, AContainerThatSeesOnlyItsOwnGroup) {
  // Without a namespace of its own the paths are the machine's, and the mount begins in the middle.
  EXPECT_THAT(find_memory_groups("4:memory:/docker/abc\n",
                                 "52 48 0:32 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n"),
              ElementsAre(MemoryGroup{"/sys/fs/cgroup/memory", "/sys/fs/cgroup/memory", false}));
  EXPECT_THAT(find_memory_groups("0::/\n", "30 24 0:26 / /sys/fs/cgroup ro - cgroup2 cgroup rw\n"),
              ElementsAre(MemoryGroup{"/sys/fs/cgroup", "/sys/fs/cgroup", true}));
}

TEST(MemoryGroups, OneOutsideOfTheMountIsSeenFromTheMount) {
  EXPECT_THAT(find_memory_groups("0::/../other\n", "30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
              ElementsAre(MemoryGroup{"/sys/fs/cgroup", "/sys/fs/cgroup", true}));
  EXPECT_THAT(
      find_memory_groups("4:memory:/docker/abcdef\n", "52 48 0:32 /docker/abc /m rw - cgroup cgroup rw,memory\n"),
      ElementsAre(MemoryGroup{"/m", "/m", false}));
}

TEST(MemoryGroups, PathsMayHoldSpacesAndColons) {
  EXPECT_THAT(find_memory_groups("4:memory:/a:b c\n", "52 48 0:32 / /my\\040groups rw - cgroup cgroup rw,memory\n"),
              ElementsAre(MemoryGroup{"/my groups/a:b c", "/my groups", false}));
}

TEST(MemoryGroups, TextThatIsSomethingElseHasNone) {
  for (const char* const text :
       {"", "\n", "::", "4:memory", "0::/x\n\n", " - ", "30 24 - cgroup2\n", "a b c d e - cgroup2 x"}) {
    EXPECT_THAT(find_memory_groups(text, text), IsEmpty()) << text;
  }
}

TEST(MemoryNumbers, AreFoundByTheirWholeKey) {
  EXPECT_EQ(number_behind("inactive_file", "total_inactive_file 5\ninactive_file_x 6\ninactive_file 7\n"), 7u);
  EXPECT_EQ(number_behind("MemAvailable", "MemTotal:       100 kB\nMemAvailable:    42 kB\n"), 42u);
  EXPECT_EQ(number_behind("inactive_file", "inactive_file\ninactive_file max\n"), std::nullopt);
  EXPECT_EQ(only_number("17\n"), 17u);
  EXPECT_EQ(only_number("max\n"), std::nullopt);
  EXPECT_EQ(only_number(""), std::nullopt);
  EXPECT_EQ(only_number("99999999999999999999999\n"), std::nullopt);
}

}  // namespace
}  // namespace rekindle::runtime
