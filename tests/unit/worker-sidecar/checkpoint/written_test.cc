#include "worker-sidecar/checkpoint/written.h"

#include <gtest/gtest.h>

#include "common/base/format.h"
#include "tests/unit/worker-sidecar/checkpoint/job_layouts.h"
#include "worker-sidecar/checkpoint/names.h"
#include "worker-sidecar/checkpoint/plan.h"
#include "worker-sidecar/checkpoint/restore_plan.h"

namespace rekindle {
namespace {

const Layout kLayout{{whole_tensor("w", Dtype::f32, {4, 2}), whole_tensor("s", Dtype::f64, {})}};

WrittenFile make_report(std::string file, std::vector<WrittenEntry> entries) {
  return {std::move(file), 200, std::string(32, 'a'), {}, std::move(entries)};
}

std::vector<WrittenStripe> make_stripes() {
  return {{&kLayout, make_report("rank-0.safetensors", {{"w[0:3]", "w", 0, 3, 80, 104}})},
          {&kLayout, make_report("rank-1.safetensors", {{"w[3:4]", "w", 3, 4, 88, 96}, {"s", "s", 0, 1, 80, 88}})}};
}

TEST(AddTensors, PutsTheReportsOfAllWritersTogether) {
  Manifest manifest;
  ASSERT_TRUE(add_tensors(manifest, make_stripes()));
  EXPECT_EQ(manifest.tensors,
            (std::vector<ManifestTensor>{{"w",
                                          Dtype::f32,
                                          {4, 2},
                                          {{"rank-0.safetensors", "w[0:3]", {0, 0}, {3, 2}, 80, 104},
                                           {"rank-1.safetensors", "w[3:4]", {3, 0}, {1, 2}, 88, 96}}},
                                         {"s", Dtype::f64, {}, {{"rank-1.safetensors", "s", {}, {}, 80, 88}}}}));
  EXPECT_EQ(manifest.files.size(), 2u);
}

TEST(AddTensors, ShardsOfOneTensorLieAtTheirOffsets) {
  const Layout top{{TensorDescription{"w", Dtype::f32, {1, 2}, {3, 2}, {0, 0}}}};
  const Layout bottom{{TensorDescription{"w", Dtype::f32, {2, 2}, {3, 2}, {1, 0}}}};
  Manifest manifest;
  ASSERT_TRUE(add_tensors(manifest, {{&top, make_report("rank-0.safetensors", {{"w", "w", 0, 1, 80, 88}})},
                                     {&bottom, make_report("rank-1.safetensors", {{"w", "w", 0, 2, 80, 96}})}}));
  EXPECT_EQ(manifest.tensors[0].pieces[1].offset, (Extents{1, 0}));
}

TEST(AddTensors, AMissingStripeIsAnErrorThatNamesTheTensor) {
  std::vector<WrittenStripe> stripes = make_stripes();
  stripes.erase(stripes.begin());
  Manifest manifest;
  const Status status = add_tensors(manifest, stripes);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "tensor \"w\" is not complete: rows 0 to 3 are in no file");
}

TEST(AddTensors, ReportsThatDoNotFitTheLayoutAreRefused) {
  for (const WrittenEntry& entry : {WrittenEntry{"x", "x", 0, 1, 80, 88}, WrittenEntry{"w[0:5]", "w", 0, 5, 80, 120},
                                    WrittenEntry{"w[3:2]", "w", 3, 2, 80, 80}, WrittenEntry{"w", "w", 0, 3, 80, 104}}) {
    std::vector<WrittenStripe> stripes = make_stripes();
    stripes[0].written.entries[0] = entry;
    Manifest manifest;
    EXPECT_FALSE(add_tensors(manifest, stripes)) << entry.key;
  }
}

TEST(AddTensors, RanksThatDisagreeAboutATensorAreRefused) {
  const Layout other{{whole_tensor("w", Dtype::f16, {4, 2}), whole_tensor("s", Dtype::f64, {})}};
  std::vector<WrittenStripe> stripes = make_stripes();
  stripes[1].layout = &other;
  Manifest manifest;
  EXPECT_FALSE(add_tensors(manifest, stripes));
}

TEST(AddTensors, ACutInsideAByteIsRefused) {
  const Layout layout{{whole_tensor("nibbles", Dtype::f4, {8})}};
  const auto report_of = [&](std::uint64_t cut) {
    const std::string middle = std::to_string(cut);
    Manifest manifest;
    return add_tensors(manifest, {{&layout,
                                   {.file = "rank-0.safetensors",
                                    .bytes = 66,
                                    .hash = std::string(32, 'a'),
                                    .chunks = {},
                                    .entries = {{format("nibbles[0:{}]", middle), "nibbles", 0, cut, 64, 66}}}},
                                  {&layout,
                                   {.file = "rank-1.safetensors",
                                    .bytes = 66,
                                    .hash = std::string(32, 'a'),
                                    .chunks = {},
                                    .entries = {{format("nibbles[{}:8]", middle), "nibbles", cut, 8, 64, 66}}}}});
  };
  EXPECT_TRUE(report_of(4));
  EXPECT_FALSE(report_of(3));
}

// What the writers of a plan would report, bytes laid end to end in each file.
std::vector<WrittenStripe> reports_of(const std::vector<WriterPlan>& plan, const std::vector<Layout>& layouts) {
  std::vector<WrittenStripe> stripes;
  for (const WriterPlan& writer : plan) {
    WrittenFile file{.file = writer.file, .bytes = 64, .hash = std::string(32, 'a'), .chunks = {}, .entries = {}};
    for (const PiecePlan& piece : writer.pieces) {
      for (const TensorDescription& tensor : layouts[writer.rank].tensors) {
        if (tensor.name != piece.tensor) continue;
        const std::uint64_t bytes = rows_bytes(tensor, piece.end_row - piece.begin_row);
        file.entries.push_back({piece_key(tensor.name, piece.begin_row, piece.end_row, row_count(tensor)), tensor.name,
                                piece.begin_row, piece.end_row, file.bytes, file.bytes + bytes});
        file.bytes += bytes;
      }
    }
    stripes.push_back({&layouts[writer.rank], std::move(file)});
  }
  return stripes;
}

TEST(AddTensors, AZeroJobIsRestoredOntoTheSameRanks) {
  const JobOfLayouts job = zero_one(3);
  const auto groups = group_shards(job.lists());
  ASSERT_TRUE(groups) << groups.error().message;
  Manifest manifest;
  manifest.world_size = 3;
  // Rank 1 is dead: its moments come from its shadow, the parameters from the others.
  const WritePlan plan = plan_write(*groups, {0, 2}, {1});
  ASSERT_TRUE(plan.lost_groups.empty());
  const Status added = add_tensors(manifest, reports_of(plan.writers, job.layouts));
  ASSERT_TRUE(added) << added.error().message;
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    const Result<RestorePlan> restored =
        plan_restore(manifest, {.rank = rank, .world_size = 3, .layout = job.layouts[rank], .states = {}});
    ASSERT_TRUE(restored) << restored.error().message;
    std::uint64_t bytes = 0;
    std::uint64_t wanted = 0;
    for (const FileReads& file : restored->files) {
      for (const ReadRange& range : file.ranges) bytes += run_count(range) * range.bytes;
    }
    for (const TensorDescription& tensor : job.layouts[rank].tensors) wanted += tensor_bytes(tensor);
    EXPECT_EQ(bytes, wanted) << rank;
  }
}

}  // namespace
}  // namespace rekindle
