// What the sidecar takes out of a slot, as the library in the rank has written it.
#include "worker-sidecar/sidecar/rank_table.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <stdexcept>

#include "tests/support/temporary_folder.h"
#include "worker-sidecar/runtime/src/small_state.h"

namespace rekindle::sidecar {
namespace {

using ::testing::HasSubstr;
using Entries = std::vector<std::pair<std::string, std::string>>;

class SlotsOfARank : public ::testing::Test {
 protected:
  SlotsOfARank() : table(loop, folder.path(), 1, [](std::uint32_t, RankStatus) {}) {
    if (!table.admit(0, ::getpid(), 4096, LinkId{1}, {})) throw std::runtime_error("no control block");
    const int descriptor = ::open((folder.path() + "/rank-0.control").c_str(), O_RDWR | O_CLOEXEC);
    struct stat info{};
    ::fstat(descriptor, &info);
    bytes = static_cast<std::size_t>(info.st_size);
    memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    ::close(descriptor);
    if (memory == MAP_FAILED) throw std::runtime_error("no mapping");
    small_state.attach(*static_cast<ControlBlock*>(memory));
    table.set_registered(
        0,
        {.layout = {}, .states = {{.name = "counter", .bytes = 8}, {.name = "loader", .bytes = 32, .variable = true}}});
    set_values(true);
  }
  ~SlotsOfARank() override { ::munmap(memory, bytes); }

  void set_values(bool with_counter) {
    std::vector<runtime::CapturedValue> values;
    if (with_counter) values.push_back({.name = "counter", .data = "12345678", .bytes = 8});
    values.push_back({.name = "loader", .bytes = loader_room, .save = {save, this}});
    small_state.set_values(std::move(values));
  }
  // As a rank commits a step.
  void commit(std::uint8_t slot, std::uint64_t step, std::uint64_t attempt) {
    small_state.capture(slot, step, attempt);
    static_cast<ControlBlock*>(memory)->word = encode_word({.step = step, .phase = RankPhase::between, .slot = slot});
  }
  static std::int64_t save(void* context, void* to, std::size_t) {
    const auto& self = *static_cast<SlotsOfARank*>(context);
    if (self.fails) return -1;
    std::memcpy(to, self.loader.data(), self.loader.size());
    return static_cast<std::int64_t>(self.loader.size());
  }

  asio::io_context loop;
  TemporaryFolder folder;
  RankTable table;
  void* memory = nullptr;
  std::size_t bytes = 0;
  runtime::SmallState small_state;
  std::uint64_t loader_room = 32;
  std::string loader = "epoch 1";
  bool fails = false;
};

TEST_F(SlotsOfARank, AStateOfVariableSizeIsTakenAsLongAsItIs) {
  commit(0, 7, 2);
  loader = "a longer one";
  commit(1, 8, 2);
  const RankTable::Captured earlier = table.capture({0}, 7, 2);
  ASSERT_EQ(earlier.states.size(), 1u);
  EXPECT_EQ(earlier.states[0].captured.entries, (Entries{{"counter", "12345678"}, {"loader", "epoch 1"}}));
  EXPECT_EQ(table.capture({0}, 8, 2).states[0].captured.entries[1].second, "a longer one");
}

TEST_F(SlotsOfARank, WithoutAStateThatCouldNotBeSavedTheRankIsMissing) {
  fails = true;
  commit(0, 7, 2);
  const RankTable::Captured captured = table.capture({0}, 7, 2);
  EXPECT_TRUE(captured.states.empty());
  EXPECT_EQ(captured.missing, std::vector<std::uint32_t>{0});
  EXPECT_THAT(captured.reasons.at(0), HasSubstr("does not have everything that was registered"));
}

TEST_F(SlotsOfARank, MoreThanWasRegisteredIsNotBelieved) {
  loader_room = 64;
  set_values(true);
  loader = std::string(33, 'x');
  commit(0, 7, 2);
  EXPECT_EQ(table.capture({0}, 7, 2).missing, std::vector<std::uint32_t>{0});
}

}  // namespace
}  // namespace rekindle::sidecar
