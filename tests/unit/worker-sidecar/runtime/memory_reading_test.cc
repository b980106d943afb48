#include "worker-sidecar/runtime/src/memory_reading.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "tests/support/temporary_folder.h"

namespace rekindle::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Files as the kernel shows them, below a folder.
class MemoryReading : public ::testing::Test {
 protected:
  void put(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_.path() + path).parent_path());
    write_bytes(root_.path() + path, text);
  }
  std::string at(const std::string& path) const { return root_.path() + path; }

  TemporaryFolder root_;
};

TEST_F(MemoryReading, OfVersionOneGoesUpToTheMount) {
  put("/proc/self/cgroup", "4:memory:/pod/container\n");
  put("/proc/self/mountinfo", "52 48 0:32 / /groups rw - cgroup cgroup rw,memory\n");
  put("/groups/pod/container/memory.limit_in_bytes", "1000\n");
  put("/groups/pod/container/memory.usage_in_bytes", "700\n");
  put("/groups/pod/container/memory.stat", "inactive_file 1\ntotal_inactive_file 300\n");
  put("/groups/pod/memory.limit_in_bytes", "3000\n");
  put("/groups/pod/memory.usage_in_bytes", "2000\n");
  put("/groups/memory.limit_in_bytes", "9223372036854771712\n");
  put("/groups/memory.usage_in_bytes", "5000\n");
  EXPECT_THAT(read_memory_room(root_.path()).limits,
              ElementsAre(MemoryLimit{at("/groups/pod/container/memory.limit_in_bytes"), 1000, 400},
                          MemoryLimit{at("/groups/pod/memory.limit_in_bytes"), 3000, 2000},
                          MemoryLimit{at("/groups/memory.limit_in_bytes"), 9223372036854771712u, 5000}));
}

TEST_F(MemoryReading, OfVersionTwoLeavesOutWhatHasNoLimit) {
  put("/proc/self/cgroup", "0::/pod/container\n");
  put("/proc/self/mountinfo", "30 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  put("/sys/fs/cgroup/pod/container/memory.max", "max\n");
  put("/sys/fs/cgroup/pod/container/memory.current", "700\n");
  put("/sys/fs/cgroup/pod/memory.max", "2000\n");
  put("/sys/fs/cgroup/pod/memory.current", "900\n");
  put("/sys/fs/cgroup/pod/memory.stat", "file 500\ninactive_file 950\n");
  EXPECT_THAT(read_memory_room(root_.path()).limits,
              ElementsAre(MemoryLimit{at("/sys/fs/cgroup/pod/memory.max"), 2000, 0}));
}

TEST_F(MemoryReading, OfTheMachine) {
  put("/proc/meminfo", "MemTotal:       24000 kB\nMemAvailable:   20 kB\n");
  const MemoryRoom room = read_memory_room(root_.path());
  EXPECT_EQ(room.available_bytes, 20480u);
  EXPECT_THAT(room.limits, IsEmpty());
}

TEST_F(MemoryReading, WhereNothingCanBeReadNothingIsKnown) {
  const MemoryRoom room = read_memory_room(root_.path());
  EXPECT_THAT(room.limits, IsEmpty());
  EXPECT_EQ(room.available_bytes, std::nullopt);
  EXPECT_EQ(free_volume_bytes(-1), std::nullopt);
}

TEST_F(MemoryReading, OfThisMachineKnowsWhatIsAvailableAndFree) {
  EXPECT_GT(read_memory_room().available_bytes.value_or(0), 0u);
  put("/file", "");
  const int descriptor = ::open(at("/file").c_str(), O_RDWR | O_CLOEXEC);
  EXPECT_GT(free_volume_bytes(descriptor).value_or(0), 0u);
  ::close(descriptor);
}

}  // namespace
}  // namespace rekindle::runtime
