#include "worker-sidecar/checkpoint/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace rekindle {
namespace {

TEST(SplitForWriters, TwoWritersMeetAtARowBorder) {
  const Layout layout{{whole_tensor("w", Dtype::f32, {5, 4}), whole_tensor("b", Dtype::f32, {5}), whole_tensor("scale", Dtype::f64, {})}};
  // 80 + 20 + 8 bytes; the middle is byte 54, nearest to the end of row 3 of w (48).
  const std::vector<WriterPlan> plan = split_for_writers(layout, {4, 7});
  ASSERT_EQ(plan.size(), 2u);
  EXPECT_EQ(plan[0], (WriterPlan{4, "rank-4.safetensors", {{"w", 0, 3}}, 48}));
  EXPECT_EQ(plan[1], (WriterPlan{7, "rank-7.safetensors", {{"w", 3, 5}, {"b", 0, 5}, {"scale", 0, 1}}, 60}));
}

TEST(SplitForWriters, EmptyTensorsHaveAWriterToo) {
  const Layout layout{{whole_tensor("none", Dtype::f32, {0, 4}), whole_tensor("narrow", Dtype::f32, {4, 0})}};
  const std::vector<WriterPlan> plan = split_for_writers(layout, {0, 1});
  std::vector<PiecePlan> pieces;
  for (const WriterPlan& writer : plan) pieces.insert(pieces.end(), writer.pieces.begin(), writer.pieces.end());
  EXPECT_EQ(pieces, (std::vector<PiecePlan>{{"none", 0, 0}, {"narrow", 0, 4}}));
}

TEST(SplitForWriters, WritersWithoutRowsAreLeftOut) {
  const Layout layout{{whole_tensor("scale", Dtype::f32, {})}};
  EXPECT_EQ(split_for_writers(layout, {0, 1, 2, 3}).size(), 1u);
  EXPECT_TRUE(split_for_writers({}, {0, 1}).empty());
}

Layout random_layout(std::mt19937_64& random) {
  Layout layout;
  const std::size_t tensors = random() % 12;
  for (std::size_t i = 0; i < tensors; ++i) {
    Extents shape(random() % 4);
    for (std::uint64_t& extent : shape) extent = random() % 6 == 0 ? random() % 40 : random() % 9;
    const auto dtype = *dtype_from_number(static_cast<int>(random() % 15 + 1));
    layout.tensors.push_back(whole_tensor("t" + std::to_string(i), dtype, shape));
  }
  return layout;
}

TEST(SplitForWriters, RandomLayoutsAreCoveredExactlyOnceAndBalancedWithinRows) {
  const std::uint64_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 3000; ++round) {
    const Layout layout = random_layout(random);
    std::vector<std::uint32_t> ranks(random() % 9 + 1);
    for (std::size_t i = 0; i < ranks.size(); ++i) ranks[i] = static_cast<std::uint32_t>(i * 3);
    const std::vector<WriterPlan> plan = split_for_writers(layout, ranks);

    std::map<std::string, std::vector<PiecePlan>> by_tensor;
    std::uint64_t total = 0;
    std::uint64_t largest_row = 0;
    for (const TensorDescription& tensor : layout.tensors) {
      total += tensor_bytes(tensor);
      largest_row = std::max(largest_row, row_bytes(tensor));
    }
    for (const WriterPlan& writer : plan) {
      ASSERT_FALSE(writer.pieces.empty());
      ASSERT_LE(writer.bytes, total / ranks.size() + largest_row + 1);
      // Nobody gets less than the share less a row either.
      if (plan.size() == ranks.size()) {
        ASSERT_GE(writer.bytes + largest_row + 1, total / ranks.size());
      }
      for (const PiecePlan& piece : writer.pieces) by_tensor[piece.tensor].push_back(piece);
    }
    ASSERT_EQ(by_tensor.size(), layout.tensors.size());
    for (const TensorDescription& tensor : layout.tensors) {
      std::uint64_t row = 0;
      for (const PiecePlan& piece : by_tensor[tensor.name]) {
        ASSERT_EQ(piece.begin_row, row);
        ASSERT_TRUE(piece.end_row > piece.begin_row || row_count(tensor) == 0);
        row = piece.end_row;
      }
      ASSERT_EQ(row, row_count(tensor)) << tensor.name;
    }
  }
}

}  // namespace
}  // namespace rekindle
