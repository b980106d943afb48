#include "worker-sidecar/checkpoint/read_range.h"

#include <gtest/gtest.h>

#include <random>
#include <utility>

#include "tests/support/random_seed.h"

namespace rekindle {
namespace {

// in the file and in the target
using Places = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

// The runs of a range as loops over its repeats.
Places list_runs(const ReadRange& range) {
  Places places{{range.begin_byte, range.target_byte}};
  for (const Repeat& repeat : range.repeats) {
    Places next;
    for (const auto& [file, target] : places) {
      for (std::uint64_t i = 0; i < repeat.count; ++i)
        next.emplace_back(file + i * repeat.file_step, target + i * repeat.target_step);
    }
    places = std::move(next);
  }
  return places;
}

ReadRange make_range(std::mt19937_64& random) {
  ReadRange range{.begin_byte = random() % 50, .bytes = random() % 5 + 1, .target_byte = random() % 50};
  std::uint64_t file_reach = range.bytes;
  std::uint64_t target_reach = range.bytes;
  for (std::size_t dimensions = random() % 4; dimensions > 0; --dimensions) {
    const Repeat repeat{
        .count = random() % 4 + 1, .file_step = file_reach + random() % 4, .target_step = target_reach + random() % 4};
    file_reach += (repeat.count - 1) * repeat.file_step;
    target_reach += (repeat.count - 1) * repeat.target_step;
    range.repeats.insert(range.repeats.begin(), repeat);
  }
  return range;
}

void visit_every_run(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (int round = 0; round < 250; ++round) {
    const ReadRange range = make_range(random);
    const Places expected = list_runs(range);
    ASSERT_EQ(run_count(range), expected.size());
    ASSERT_EQ(end_byte(range), expected.back().first + range.bytes);
    ASSERT_EQ(target_end_byte(range), expected.back().second + range.bytes);
    // From every place of the file, and in lines of every length.
    for (std::uint64_t begin = 0; begin <= end_byte(range) + 1; ++begin) {
      Places wanted;
      for (const auto& place : expected) {
        if (place.first + range.bytes > begin) wanted.push_back(place);
      }
      Places visited;
      for (RunWalk walk(range, begin); !walk.at_end();) {
        const Repeat line = walk.line();
        const std::uint64_t runs = random() % line.count + 1;
        for (std::uint64_t i = 0; i < runs; ++i)
          visited.emplace_back(walk.file_byte() + i * line.file_step, walk.target_byte() + i * line.target_step);
        walk.advance(runs);
      }
      ASSERT_EQ(visited, wanted) << "from byte " << begin;
    }
  }
}

TEST(RunWalk, VisitsEveryRunOnceInTheOrderOfTheFile) { test::for_each_seed({}, visit_every_run); }

}  // namespace
}  // namespace rekindle
