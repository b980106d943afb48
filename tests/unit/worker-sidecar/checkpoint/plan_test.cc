#include "worker-sidecar/checkpoint/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "common/base/format.h"
#include "tests/support/random_seed.h"
#include "tests/unit/worker-sidecar/checkpoint/job_layouts.h"
#include "worker-sidecar/checkpoint/coverage.h"

namespace rekindle {
namespace {

TEST(SplitForWriters, TwoWritersMeetAtARowBorder) {
  const Layout layout{{whole_tensor("w", Dtype::f32, {5, 4}), whole_tensor("b", Dtype::f32, {5}),
                       whole_tensor("scale", Dtype::f64, {})}};
  // 80 + 20 + 8 bytes; the middle is byte 54, nearest to the end of row 3 of w (48).
  const std::vector<WriterPlan> plan = split_for_writers(layout, {4, 7});
  ASSERT_EQ(plan.size(), 2u);
  EXPECT_EQ(plan[0], (WriterPlan{4, "rank-4.safetensors", {{"w", 0, 3}}, 48}));
  EXPECT_EQ(plan[1], (WriterPlan{7, "rank-7.safetensors", {{"w", 3, 5}, {"b", 0, 5}, {"scale", 0, 1}}, 60}));
}

TEST(SplitForWriters, APackedTensorOfOneDimensionIsCutWhereAByteEnds) {
  const Layout layout{{whole_tensor("nibbles", Dtype::f4, {14}), whole_tensor("sixes", Dtype::f6_e2m3, {8})}};
  // 7 + 6 bytes; the thirds are bytes 4 and 8, and of the sixes 3 bytes stay together.
  const std::vector<WriterPlan> plan = split_for_writers(layout, {0, 1, 2});
  ASSERT_EQ(plan.size(), 3u);
  EXPECT_EQ(plan[0], (WriterPlan{0, "rank-0.safetensors", {{"nibbles", 0, 8}}, 4}));
  EXPECT_EQ(plan[1], (WriterPlan{1, "rank-1.safetensors", {{"nibbles", 8, 14}}, 3}));
  EXPECT_EQ(plan[2], (WriterPlan{2, "rank-2.safetensors", {{"sixes", 0, 8}}, 6}));
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
    Dtype dtype = *dtype_from_number(static_cast<int>(random() % 22 + 1));
    if (shape.empty() && packed_elements(dtype) > 1) dtype = Dtype::u8;
    if (!shape.empty()) shape.back() *= packed_elements(dtype);
    layout.tensors.push_back(whole_tensor(format("t{}", i), dtype, shape));
  }
  return layout;
}

void split_random_layouts(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (int round = 0; round < 1500; ++round) {
    const Layout layout = random_layout(random);
    std::vector<std::uint32_t> ranks(random() % 9 + 1);
    for (std::size_t i = 0; i < ranks.size(); ++i) ranks[i] = static_cast<std::uint32_t>(i * 3);
    const std::vector<WriterPlan> plan = split_for_writers(layout, ranks);

    std::map<std::string, std::vector<PiecePlan>> by_tensor;
    std::uint64_t total = 0;
    std::uint64_t largest_row = 0;
    for (const TensorDescription& tensor : layout.tensors) {
      total += tensor_bytes(tensor);
      if (row_count(tensor) > 0) largest_row = std::max(largest_row, rows_bytes(tensor, row_step(tensor)));
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
        ASSERT_TRUE(has_rows(tensor, piece.begin_row, piece.end_row));
        ASSERT_TRUE(piece.end_row > piece.begin_row || row_count(tensor) == 0);
        row = piece.end_row;
      }
      ASSERT_EQ(row, row_count(tensor)) << tensor.name;
    }
  }
}

TEST(SplitForWriters, RandomLayoutsAreCoveredExactlyOnceAndBalancedWithinRows) {
  test::for_each_seed({}, split_random_layouts);
}

std::vector<ReplicaGroup> groups_of(const JobOfLayouts& job) {
  auto groups = group_shards(job.lists());
  EXPECT_TRUE(groups.has_value()) << groups.error().message;
  return groups ? *std::move(groups) : std::vector<ReplicaGroup>{};
}

// Whether the plan writes every element of every tensor of the job once: through the manifest's own
// check.
std::string coverage_fault(const JobOfLayouts& job, const std::vector<WriterPlan>& plan) {
  std::map<std::string, std::vector<ManifestPiece>> pieces;
  std::map<std::string, Extents> shapes;
  for (const Layout& layout : job.layouts) {
    for (const TensorDescription& tensor : layout.tensors) shapes[tensor.name] = tensor.global_shape;
  }
  for (const WriterPlan& writer : plan) {
    for (const PiecePlan& piece : writer.pieces) {
      for (const TensorDescription& tensor : job.layouts[writer.rank].tensors) {
        if (tensor.name != piece.tensor) continue;
        if (piece.end_row > row_count(tensor))
          return format("{} has no such rows at rank {}", piece.tensor, writer.rank);
        ManifestPiece entry{.file = writer.file,
                            .key = piece.tensor,
                            .offset = tensor.offset,
                            .shape = tensor.shape,
                            .begin_byte = 0,
                            .end_byte = 0};
        if (!entry.shape.empty()) {
          entry.offset[0] += piece.begin_row;
          entry.shape[0] = piece.end_row - piece.begin_row;
        }
        pieces[piece.tensor].push_back(entry);
      }
    }
  }
  for (const auto& [name, shape] : shapes) {
    if (const std::string fault = find_coverage_fault(shape, pieces[name]); !fault.empty())
      return format("{} {}", name, fault);
  }
  return {};
}

TEST(SplitForWriters, TheUsualLayoutsAreBalancedWithinRows) {
  struct Case {
    const char* name;
    JobOfLayouts job;
    std::uint64_t largest_row;
  };
  const std::vector<Case> cases = {{"data parallel", data_parallel(5), 256},
                                   {"tensor by data parallel", tensor_parallel(4, 3), 128},
                                   {"pipeline by data parallel", pipeline_parallel(3, 2), 128},
                                   {"ZeRO-1", zero_one(6), 256},
                                   {"ZeRO-1 uneven", zero_one(5), 256}};
  for (const Case& each : cases) {
    const std::vector<WriterPlan> plan = split_for_writers(groups_of(each.job));
    EXPECT_EQ(coverage_fault(each.job, plan), "") << each.name;
    ASSERT_EQ(plan.size(), each.job.layouts.size()) << each.name;
    std::uint64_t total = 0;
    for (const WriterPlan& writer : plan) total += writer.bytes;
    for (const WriterPlan& writer : plan) {
      EXPECT_LE(writer.bytes, total / plan.size() + 2 * each.largest_row) << each.name << ", rank " << writer.rank;
    }
  }
}

TEST(SplitForWriters, WhatAllHoldEvensOutWhatFewHold) {
  // Rank 0 alone holds a moment of 400 bytes; all three hold 800 bytes: 400 each.
  JobOfLayouts job{std::vector<Layout>(3, {{whole_tensor("w", Dtype::f32, {200})}})};
  job.layouts[0].tensors.push_back(whole_tensor("only", Dtype::f32, {100}));
  for (const WriterPlan& writer : split_for_writers(groups_of(job))) EXPECT_EQ(writer.bytes, 400u) << writer.rank;
}

TEST(PlanWrite, ADeadReplicasPartIsWrittenByTheOther) {
  const JobOfLayouts job = tensor_parallel(2, 2);
  const WritePlan plan = plan_write(groups_of(job), {0, 1, 3}, {});
  EXPECT_TRUE(plan.lost_groups.empty());
  EXPECT_EQ(coverage_fault(job, plan.writers), "");
}

TEST(PlanWrite, AShardThatNobodyHasIsAnAnswer) {
  const JobOfLayouts job = tensor_parallel(2, 2);
  const std::vector<ReplicaGroup> groups = groups_of(job);
  const WritePlan plan = plan_write(groups, {0, 2}, {});
  ASSERT_EQ(plan.lost_groups.size(), 1u);
  EXPECT_EQ(describe_group(groups[plan.lost_groups[0]]),
            "tensor \"up\" at [64, 128) x [0, 32) of [128, 32] and 1 more, held by ranks 1, 3");
}

TEST(PlanWrite, WhatNobodyLiveHasComesFromTheStripesInTheShadowsOfAllItsHolders) {
  const JobOfLayouts job = tensor_parallel(2, 2);
  const std::vector<ReplicaGroup> groups = groups_of(job);
  const std::vector<WriterPlan> stripes = split_for_writers(groups);
  const WritePlan plan = plan_write(groups, {0, 2}, {1, 3});
  EXPECT_TRUE(plan.lost_groups.empty());
  EXPECT_EQ(coverage_fault(job, plan.writers), "");
  for (const WriterPlan& writer : plan.writers) {
    EXPECT_EQ(writer.source, writer.rank % 2 == 1 ? WriteSource::shadow : WriteSource::memory) << writer.rank;
    if (writer.source == WriteSource::memory) continue;
    for (const PiecePlan& piece : writer.pieces) {
      const std::vector<PiecePlan>& held = stripes[writer.rank].pieces;
      EXPECT_NE(std::find(held.begin(), held.end(), piece), held.end()) << "its shadow does not hold " << piece.tensor;
    }
  }
  EXPECT_EQ(plan_write(groups, {0, 2}, {1}).lost_groups.size(), 1u) << "half a shard is none";
}

void plan_random_jobs(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (int round = 0; round < 1000; ++round) {
    const std::size_t a = random() % 3 + 1;
    const std::size_t b = random() % 3 + 1;
    JobOfLayouts job;
    switch (random() % 4) {
      case 0: job = data_parallel(a * b); break;
      case 1: job = tensor_parallel(a, b); break;
      case 2: job = pipeline_parallel(a, b); break;
      default: job = zero_one(a * b); break;
    }
    std::vector<std::uint32_t> live;
    std::vector<std::uint32_t> shadows;
    for (std::uint32_t rank = 0; rank < job.layouts.size(); ++rank) {
      const std::uint64_t fate = random() % 4;
      if (fate < 2) live.push_back(rank);
      else if (fate == 2) shadows.push_back(rank);
    }
    const std::vector<ReplicaGroup> groups = groups_of(job);
    const WritePlan plan = plan_write(groups, live, shadows);
    if (plan.lost_groups.empty()) {
      ASSERT_EQ(coverage_fault(job, plan.writers), "");
    } else {
      for (const std::size_t lost : plan.lost_groups) {
        for (const std::uint32_t rank : groups[lost].ranks)
          EXPECT_FALSE(std::binary_search(live.begin(), live.end(), rank));
      }
    }
  }
}

TEST(PlanWrite, RandomJobsAreWrittenOnceOrSayWhatIsLost) { test::for_each_seed({}, plan_random_jobs); }

// As large as a job gets: the time of this test shows whether anything in it is quadratic.
TEST(SplitForWriters, AThousandRanksWithAThousandTensorsEachArePlanned) {
  JobOfLayouts job;
  for (std::size_t rank = 0; rank < 1000; ++rank) {
    Layout layout;
    for (std::size_t i = 0; i < 500; ++i) {
      layout.tensors.push_back(whole_tensor(format("w{}", i), Dtype::f32, {1000, 8}));
      layout.tensors.push_back(part_of_tensor(format("m{}", i), {8000}, 0, rank, 1000));
    }
    job.layouts.push_back(std::move(layout));
  }
  const std::vector<ReplicaGroup> groups = groups_of(job);
  ASSERT_EQ(groups.size(), 1001u);
  const std::vector<WriterPlan> plan = split_for_writers(groups);
  ASSERT_EQ(plan.size(), 1000u);
  for (const WriterPlan& writer : plan) EXPECT_NEAR(static_cast<double>(writer.bytes), 32'000, 64) << writer.rank;
}

}  // namespace
}  // namespace rekindle
