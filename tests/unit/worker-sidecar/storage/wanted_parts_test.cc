#include "worker-sidecar/storage/wanted_parts.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "common/base/format.h"
#include "tests/support/checkpoint_builder.h"
#include "tests/support/counted_array.h"
#include "tests/support/random_seed.h"

namespace rekindle {
namespace {

constexpr std::uint64_t kMebibyte = 1u << 20;

// A matrix of `rows` rows, of which each range has a column: what a rank wants that puts several
// cuts together.
std::vector<ReadRange> columns_of(std::uint64_t rows, std::uint64_t columns, std::uint64_t bytes) {
  std::vector<ReadRange> ranges;
  for (std::uint64_t column = 0; column < columns; ++column) {
    ranges.push_back({.begin_byte = column * rows * bytes,
                      .bytes = bytes,
                      .target_byte = column * bytes,
                      .repeats = {{.count = rows, .file_step = bytes, .target_step = columns * bytes}}});
  }
  return ranges;
}

// Puts a file that lies in memory, block after block.
Status put_file(const std::string& file, const std::vector<ReadRange>& ranges, const RestoreMemory& memory,
                std::size_t block_bytes) {
  const WantedParts wanted(ranges);
  Scatter scatter(memory);
  for (const BlockSpan& span : wanted.blocks(file.size(), 0, block_bytes)) {
    if (Status status = wanted.put(
            scatter, {.offset = span.offset, .data = std::string_view(file).substr(span.offset, span.bytes)});
        !status)
      return status;
  }
  return {};
}

// Run by run.
void copy_slowly(const std::string& file, const std::vector<ReadRange>& ranges, std::string& target) {
  for (const ReadRange& range : ranges) {
    for (RunWalk walk(range); !walk.at_end(); walk.advance())
      std::memcpy(target.data() + walk.target_byte(), file.data() + walk.file_byte(), range.bytes);
  }
}

void read_any_runs(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (int round = 0; round < 400; ++round) {
    std::vector<ReadRange> ranges;
    std::uint64_t file_end = random() % 9;
    std::uint64_t target_end = 0;
    for (std::size_t left = random() % 4 + 1; left > 0; --left) {
      ReadRange range{
          .begin_byte = file_end + random() % 40, .bytes = random() % 70 + 1, .target_byte = target_end + random() % 3};
      std::uint64_t file_reach = range.bytes;
      std::uint64_t target_reach = range.bytes;
      for (std::size_t dimensions = random() % 3; dimensions > 0; --dimensions) {
        const Repeat repeat{.count = random() % 5 + 2,
                            .file_step = file_reach + random() % 90,
                            .target_step = target_reach + random() % 90};
        file_reach += (repeat.count - 1) * repeat.file_step;
        target_reach += (repeat.count - 1) * repeat.target_step;
        range.repeats.insert(range.repeats.begin(), repeat);
      }
      file_end = end_byte(range);
      target_end = target_end_byte(range);
      ranges.push_back(range);
    }
    const std::string file = make_bytes(file_end + random() % 20, seed + round);
    std::string expected(target_end, '\xee');
    copy_slowly(file, ranges, expected);
    const std::size_t block_bytes = random() % 200 + 1;

    std::string memory(target_end, '\xee');
    const Destination in_memory{.data = memory.data(), .bytes = memory.size()};
    ASSERT_TRUE(put_file(file, ranges, {.tensors = {&in_memory, 1}, .states = {}}, block_bytes));
    ASSERT_EQ(memory, expected) << "blocks of " << block_bytes;

    const CountedArray array(target_end, random() % 300);
    const Destination in_array{.bytes = target_end, .array = &array};
    ASSERT_TRUE(put_file(file, ranges, {.tensors = {&in_array, 1}, .states = {}}, block_bytes));
    ASSERT_EQ(array.bytes, expected) << "blocks of " << block_bytes;
  }
}

TEST(WantedParts, AnyRunsComeThroughAnyBlocksIntoMemoryAndArrays) {
  test::for_each_seed({.fixed = {1}}, read_any_runs);
}

TEST(WantedParts, OnlyBlocksWithARunOrTheHeaderAreNeeded) {
  // Runs of 4 bytes, 100 apart, in blocks of 10: every tenth block; a fifth run lies across two.
  std::vector<ReadRange> ranges{
      {.begin_byte = 100, .bytes = 4, .repeats = {{.count = 3, .file_step = 100, .target_step = 4}}},
      {.begin_byte = 518, .bytes = 4, .target_byte = 12}};
  std::vector<std::uint64_t> offsets;
  for (const BlockSpan& span : WantedParts(ranges).blocks(525, 12, 10)) offsets.push_back(span.offset);
  EXPECT_EQ(offsets, (std::vector<std::uint64_t>{0, 10, 100, 200, 300, 510, 520}));
  EXPECT_EQ(WantedParts(ranges).blocks(525, 12, 10).back().bytes, 5u);
}

// An embedding of 4 MiB that was cut into four: 524,288 runs of 8 bytes, each a call if nobody put
// them together.
TEST(WantedParts, ManySmallRunsAreFewCallsOfAnArray) {
  constexpr std::uint64_t kRows = 131'072;
  const std::vector<ReadRange> ranges = columns_of(kRows, 4, 8);
  const std::string file = make_bytes(kRows * 32, 3);
  const CountedArray array(file.size());
  const Destination destination{.bytes = file.size(), .array = &array};
  ASSERT_TRUE(put_file(file, ranges, {.tensors = {&destination, 1}, .states = {}}, 4 * kMebibyte));
  std::string expected(file.size(), '\0');
  copy_slowly(file, ranges, expected);
  EXPECT_TRUE(array.bytes == expected);
  // Each column is a window of 4 MiB at most, fetched and put back.
  EXPECT_LE(array.calls, 8u);
  EXPECT_LE(array.bytes_copied, 2 * 4 * array.bytes.size());
}

TEST(WantedParts, RunsThatAreNeighboursInAnArrayAreNotFetchedFirst) {
  // Half of each row of a file, which is all of each row here.
  const std::vector<ReadRange> ranges{
      {.begin_byte = 0, .bytes = 2048, .repeats = {{.count = 1024, .file_step = 4096, .target_step = 2048}}}};
  const std::string file = make_bytes(4 * kMebibyte, 3);
  const CountedArray array(2 * kMebibyte);
  const Destination destination{.bytes = array.bytes.size(), .array = &array};
  ASSERT_TRUE(put_file(file, ranges, {.tensors = {&destination, 1}, .states = {}}, 4 * kMebibyte));
  EXPECT_EQ(array.calls, 1u);
  EXPECT_EQ(array.bytes_copied, 2 * kMebibyte);
}

TEST(WantedParts, LargeGapsOfAnArrayAreLeftOut) {
  // Runs of 1 MiB with as much between them: a call for each costs less than to fetch and put back
  // what is between.
  const std::vector<ReadRange> ranges{
      {.begin_byte = 0,
       .bytes = kMebibyte,
       .repeats = {{.count = 4, .file_step = kMebibyte, .target_step = 2 * kMebibyte}}}};
  const std::string file = make_bytes(4 * kMebibyte, 3);
  const CountedArray array(7 * kMebibyte);
  const Destination destination{.bytes = array.bytes.size(), .array = &array};
  ASSERT_TRUE(put_file(file, ranges, {.tensors = {&destination, 1}, .states = {}}, 4 * kMebibyte));
  EXPECT_EQ(array.calls, 4u);
  EXPECT_EQ(array.bytes_copied, 4 * kMebibyte);
}

}  // namespace
}  // namespace rekindle
