#include "worker-sidecar/checkpoint/restore_plan.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>
#include <tuple>
#include <utility>

#include "common/base/format.h"
#include "tests/support/random_seed.h"
#include "worker-sidecar/checkpoint/coverage.h"

namespace rekindle {
namespace {

Manifest striped_manifest() {
  return {.attempt = 1,
          .step = 184,
          .world_size = 2,
          .tensors = {{"w",
                       Dtype::f32,
                       {4, 2},
                       {{"rank-0.safetensors", "w[0:3]", {0, 0}, {3, 2}, 80, 104},
                        {"rank-1.safetensors", "w[3:4]", {3, 0}, {1, 2}, 88, 96}}},
                      {"s", Dtype::f64, {}, {{"rank-1.safetensors", "s", {}, {}, 80, 88}}}},
          .states = {{0, "sampler", "state-0.safetensors", "state/0/sampler", 24, 80, 104},
                     {1, "sampler", "state-0.safetensors", "state/1/sampler", 24, 104, 128}}};
}

RestoreTarget make_target() {
  return {.rank = 1,
          .world_size = 2,
          .layout = {{whole_tensor("s", Dtype::f64, {}), whole_tensor("w", Dtype::f32, {4, 2})}},
          .states = {{"sampler", 24}}};
}

TEST(PlanRestore, WholeTensorsComeFromAllStripes) {
  const Result<RestorePlan> plan = plan_restore(striped_manifest(), make_target());
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  EXPECT_EQ(plan->files,
            (std::vector<FileReads>{
                {"rank-0.safetensors", {{80, 24, TargetKind::tensor, 1, 0}}},
                {"rank-1.safetensors", {{80, 8, TargetKind::tensor, 0, 0}, {88, 8, TargetKind::tensor, 1, 24}}},
                {"state-0.safetensors", {{104, 24, TargetKind::state, 0, 0}}}}));
  EXPECT_FALSE(plan->state_missing);
}

TEST(PlanRestore, AShardReadsOnlyItsRows) {
  RestoreTarget target = make_target();
  target.layout.tensors[1] = {"w", Dtype::f32, {2, 1}, {4, 2}, {2, 1}};
  const Result<RestorePlan> plan = plan_restore(striped_manifest(), target);
  ASSERT_TRUE(plan.has_value()) << plan.error().message;
  EXPECT_EQ(plan->files[0], (FileReads{"rank-0.safetensors", {{100, 4, TargetKind::tensor, 1, 0}}}));
  EXPECT_EQ(plan->files[1].ranges[1], (ReadRange{92, 4, TargetKind::tensor, 1, 4}));
}

TEST(PlanRestore, SmallStateThatWasLostIsSaidAndTensorsStillCome) {
  Manifest manifest = striped_manifest();
  manifest.states.pop_back();
  manifest.inexact_ranks = {1};
  EXPECT_TRUE(plan_restore(manifest, make_target())->state_missing);
  RestoreTarget other = make_target();
  other.rank = 0;
  EXPECT_FALSE(plan_restore(manifest, other)->state_missing);
}

TEST(PlanRestore, SmallStateOfAnotherNumberOfRanksIsNotTaken) {
  RestoreTarget target = make_target();
  target.world_size = 3;
  const Result<RestorePlan> plan = plan_restore(striped_manifest(), target);
  ASSERT_TRUE(plan.has_value());
  EXPECT_TRUE(plan->state_missing);
}

TEST(PlanRestore, EveryDifferenceIsASentence) {
  RestoreTarget target = make_target();
  target.layout.tensors[0].dtype = Dtype::f32;
  target.layout.tensors[1] = whole_tensor("w", Dtype::f32, {4, 3});
  target.layout.tensors.push_back(whole_tensor("new", Dtype::u8, {1}));
  target.states = {{"sampler", 25}, {"scaler", 8}};
  EXPECT_EQ(list_differences(striped_manifest(), target),
            (std::vector<std::string>{"tensor \"s\" is F32 [] here and F64 [] in the checkpoint",
                                      "tensor \"w\" is F32 [4, 3] here and F32 [4, 2] in the checkpoint",
                                      "tensor \"new\" is registered and not in the checkpoint",
                                      "state \"sampler\" has 25 bytes here and 24 in the checkpoint",
                                      "state \"scaler\" is registered and not in the checkpoint"}));
  target = make_target();
  target.layout.tensors.pop_back();
  target.states.clear();
  EXPECT_EQ(list_differences(striped_manifest(), target),
            (std::vector<std::string>{"tensor \"w\" is in the checkpoint and not registered",
                                      "state \"sampler\" is in the checkpoint and not registered"}));
}

TEST(PlanRestore, ADifferentModelIsAnErrorThatListsTheFirstDifferences) {
  RestoreTarget target = make_target();
  for (int i = 0; i < 20; ++i) target.layout.tensors.push_back(whole_tensor(format("new{}", i), Dtype::u8, {1}));
  const Result<RestorePlan> plan = plan_restore(striped_manifest(), target);
  ASSERT_FALSE(plan);
  EXPECT_NE(plan.error().message.find("new0"), std::string::npos);
  EXPECT_NE(plan.error().message.find("and 12 more"), std::string::npos) << plan.error().message;
}

TEST(PlanRestore, AStateOfVariableSizeHasTheSizeThatWasSaved) {
  RestoreTarget target = make_target();
  target.states = {{.name = "sampler", .bytes = 64, .variable = true}};
  const Result<RestorePlan> plan = plan_restore(striped_manifest(), target);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->state_bytes, std::vector<std::uint64_t>{24});
  target.states[0].bytes = 23;
  EXPECT_EQ(list_differences(striped_manifest(), target),
            std::vector<std::string>{"state \"sampler\" has at most 23 bytes here and 24 in the checkpoint"});
}

Manifest manifest_with_cursors() {
  Manifest manifest = striped_manifest();
  manifest.states.push_back({0, "rekindle.cursor", "state-0.safetensors", "state/0/rekindle.cursor", 16, 128, 144});
  manifest.states.push_back({1, "rekindle.cursor", "state-1.safetensors", "state/1/rekindle.cursor", 16, 80, 96});
  return manifest;
}

TEST(PlanRestore, EveryCopyOfTheCursorIsReadWhateverTheNumberOfRanks) {
  RestoreTarget target = make_target();
  target.world_size = 3;
  target.states = {{"sampler", 24}, {"rekindle.cursor", 16}};
  const Result<RestorePlan> plan = plan_restore(manifest_with_cursors(), target);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_TRUE(plan->state_missing) << "the sampler is another rank's";
  EXPECT_EQ(plan->cursor_ranks, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(plan->state_bytes, (std::vector<std::uint64_t>{0, 32}));
  EXPECT_EQ(plan->files[2], (FileReads{"state-0.safetensors", {{128, 16, TargetKind::state, 1, 0}}}));
  EXPECT_EQ(plan->files[3], (FileReads{"state-1.safetensors", {{80, 16, TargetKind::state, 1, 16}}}));
  target.states = {{"rekindle.cursor", 16}};
  EXPECT_FALSE(plan_restore(manifest_with_cursors(), target)->state_missing);
  EXPECT_TRUE(plan_restore(striped_manifest(), target)->state_missing) << "no rank kept one";
}

TEST(PlanRestore, ACursorThatCannotBeOneIsADifference) {
  Manifest manifest = manifest_with_cursors();
  manifest.states.back().bytes = 8;
  RestoreTarget target = make_target();
  target.states = {{"sampler", 24}, {"rekindle.cursor", 16}};
  EXPECT_EQ(list_differences(manifest, target),
            std::vector<std::string>{"state \"rekindle.cursor\" has 16 bytes here and 8 in the checkpoint"});
}

TEST(ListJobDifferences, ComparesTheTensorsOfAllRanksWithTheCheckpoint) {
  const Layout first{{whole_tensor("s", Dtype::f64, {})}};
  const Layout second{{whole_tensor("w", Dtype::f32, {4, 2}), whole_tensor("s", Dtype::f64, {})}};
  const Layout* const both[] = {&first, &second};
  EXPECT_TRUE(list_job_differences(striped_manifest(), both).empty());
  const Layout* const one[] = {&first, &first};
  EXPECT_EQ(list_job_differences(striped_manifest(), one),
            std::vector<std::string>{"tensor \"w\" is in the checkpoint and not registered"});
}

TEST(ListJobDifferences, NamesEachChangeOnce) {
  const Layout first{{whole_tensor("s", Dtype::f32, {}), whole_tensor("new", Dtype::u8, {1})}};
  const Layout second{
      {whole_tensor("s", Dtype::f32, {}), whole_tensor("w", Dtype::f32, {4, 3}), whole_tensor("new", Dtype::u8, {2})}};
  const Layout* const both[] = {&first, &second};
  EXPECT_EQ(list_job_differences(striped_manifest(), both),
            (std::vector<std::string>{"tensor \"new\" is U8 [2] here and U8 [1] on another rank",
                                      "tensor \"s\" is F32 [] here and F64 [] in the checkpoint",
                                      "tensor \"new\" is registered and not in the checkpoint",
                                      "tensor \"w\" is F32 [4, 3] here and F32 [4, 2] in the checkpoint"}));
}

// Cuts a box along a random dimension again and again.
void cut(std::mt19937_64& random, const Extents& offset, const Extents& shape, int depth,
         std::vector<std::pair<Extents, Extents>>& boxes) {
  const std::size_t dimension = shape.empty() ? 0 : random() % shape.size();
  if (depth == 0 || shape.empty() || shape[dimension] < 2) {
    boxes.emplace_back(offset, shape);
    return;
  }
  const std::uint64_t at = random() % (shape[dimension] - 1) + 1;
  Extents left = shape;
  left[dimension] = at;
  Extents right = shape;
  right[dimension] -= at;
  Extents right_offset = offset;
  right_offset[dimension] += at;
  cut(random, offset, left, depth - 1, boxes);
  cut(random, right_offset, right, depth - 1, boxes);
}

// The bytes of one box of a tensor whose elements are numbered.
std::string box_bytes(const Extents& global, const Extents& offset, const Extents& shape) {
  std::string bytes;
  for (std::uint64_t i = 0; i < volume_of(shape); ++i) {
    std::uint64_t rest = i;
    std::uint64_t number = 0;
    std::uint64_t scale = 1;
    for (std::size_t d = shape.size(); d-- > 0;) {
      number += (rest % shape[d] + offset[d]) * scale;
      rest /= shape[d];
      scale *= global[d];
    }
    const auto value = static_cast<std::uint16_t>(number);
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  return bytes;
}

void read_any_cut_into_another(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  for (int round = 0; round < 200; ++round) {
    Extents global(random() % 5);
    for (std::uint64_t& extent : global) extent = random() % 7 + 1;
    std::vector<std::pair<Extents, Extents>> written;
    std::vector<std::pair<Extents, Extents>> wanted;
    cut(random, Extents(global.size(), 0), global, 4, written);
    cut(random, Extents(global.size(), 0), global, 3, wanted);

    Manifest manifest{.step = 1, .world_size = 1, .tensors = {{"t", Dtype::u16, global, {}}}};
    std::map<std::string, std::string> files;
    for (std::size_t i = 0; i < written.size(); ++i) {
      const std::string file = format("f{}", i);
      files[file] = "headhead" + box_bytes(global, written[i].first, written[i].second);
      manifest.tensors[0].pieces.push_back({file, "t", written[i].first, written[i].second, 8, files[file].size()});
    }
    for (const auto& [offset, shape] : wanted) {
      const RestoreTarget target{.layout = {{TensorDescription{"t", Dtype::u16, shape, global, offset}}}};
      const Result<RestorePlan> plan = plan_restore(manifest, target);
      ASSERT_TRUE(plan.has_value()) << plan.error().message;
      const std::string expected = box_bytes(global, offset, shape);
      std::string memory(expected.size(), '\xee');
      std::vector<int> times_filled(expected.size());
      std::size_t ranges = 0;
      for (const FileReads& reads : plan->files) {
        const std::string& file = files[reads.file];
        for (const ReadRange& range : reads.ranges) {
          ++ranges;
          for (RunWalk walk(range); !walk.at_end(); walk.advance()) {
            ASSERT_LE(walk.target_byte() + range.bytes, memory.size());
            ASSERT_LE(walk.file_byte() + range.bytes, file.size());
            std::memcpy(memory.data() + walk.target_byte(), file.data() + walk.file_byte(), range.bytes);
            for (std::uint64_t i = 0; i < range.bytes; ++i) ++times_filled[walk.target_byte() + i];
          }
        }
      }
      ASSERT_EQ(times_filled, std::vector<int>(expected.size(), 1));
      ASSERT_LE(ranges, written.size());
      ASSERT_EQ(memory, expected);
    }
  }
}

TEST(PlanRestore, AnyCutIsReadIntoAnyOtherCut) { test::for_each_seed({}, read_any_cut_into_another); }

// What a rank of `ranks` holds that share matrices of 65,536 rows by columns.
Layout columns_of(std::size_t tensors, std::uint64_t rank, std::uint64_t ranks) {
  Layout layout;
  for (std::size_t i = 0; i < tensors; ++i) {
    layout.tensors.push_back(
        {format("w{}", i), Dtype::bf16, {65'536, 4'096 / ranks}, {65'536, 4'096}, {0, 4'096 / ranks * rank}});
  }
  return layout;
}

Manifest manifest_of_columns(std::size_t tensors, std::uint64_t ranks) {
  Manifest manifest{.step = 1, .world_size = static_cast<std::uint32_t>(ranks)};
  for (const TensorDescription& tensor : columns_of(tensors, 0, 1).tensors)
    manifest.tensors.push_back({tensor.name, tensor.dtype, tensor.global_shape, {}});
  for (std::uint64_t rank = 0; rank < ranks; ++rank) {
    const Layout layout = columns_of(tensors, rank, ranks);
    std::uint64_t end = 80;
    for (std::size_t i = 0; i < tensors; ++i) {
      const TensorDescription& tensor = layout.tensors[i];
      const std::uint64_t begin = std::exchange(end, end + tensor_bytes(tensor));
      manifest.tensors[i].pieces.push_back(
          {format("rank-{}", rank), tensor.name, tensor.offset, tensor.shape, begin, end});
    }
  }
  return manifest;
}

TEST(PlanRestore, ACutByColumnsTakesOneRangeAPieceHoweverManyRowsItHas) {
  constexpr std::size_t kTensors = 100;
  for (const auto& [writers, readers, pieces] : {std::tuple{4u, 2u, 2u}, {2u, 4u, 1u}, {8u, 1u, 8u}}) {
    SCOPED_TRACE(format("{} to {}", writers, readers));
    const RestoreTarget target{
        .rank = 0, .world_size = readers, .layout = columns_of(kTensors, 0, readers), .states = {}};
    const Result<RestorePlan> plan = plan_restore(manifest_of_columns(kTensors, writers), target);
    ASSERT_TRUE(plan) << plan.error().message;
    std::size_t ranges = 0;
    std::uint64_t runs = 0;
    for (const FileReads& reads : plan->files) {
      ranges += reads.ranges.size();
      for (const ReadRange& range : reads.ranges) {
        EXPECT_EQ(range.repeats.size(), 1u);
        runs += run_count(range);
      }
    }
    EXPECT_EQ(ranges, kTensors * pieces);
    EXPECT_EQ(runs, kTensors * pieces * 65'536);
  }
}

TEST(PlanRestore, DimensionsThatGoOnAreOneRun) {
  // Rows 2 to 6 of a piece of whole rows are whole rows here: nothing is walked.
  const Manifest manifest{.step = 1,
                          .world_size = 1,
                          .tensors = {{"t", Dtype::f32, {8, 3, 5}, {{"f", "t", {0, 0, 0}, {8, 3, 5}, 8, 488}}}}};
  RestoreTarget target{.layout = {{TensorDescription{"t", Dtype::f32, {4, 3, 5}, {8, 3, 5}, {2, 0, 0}}}}, .states = {}};
  EXPECT_EQ(plan_restore(manifest, target)->files[0].ranges,
            (std::vector<ReadRange>{{128, 240, TargetKind::tensor, 0, 0}}));
  // One column of the innermost dimension: the two others go on in each other's steps.
  target.layout.tensors[0] = {"t", Dtype::f32, {8, 3, 1}, {8, 3, 5}, {0, 0, 4}};
  EXPECT_EQ(plan_restore(manifest, target)->files[0].ranges,
            (std::vector<ReadRange>{{24, 4, TargetKind::tensor, 0, 0, {{24, 20, 4}}}}));
  // A box inside: each dimension has steps of its own.
  target.layout.tensors[0] = {"t", Dtype::f32, {2, 2, 2}, {8, 3, 5}, {1, 1, 1}};
  EXPECT_EQ(plan_restore(manifest, target)->files[0].ranges,
            (std::vector<ReadRange>{{92, 8, TargetKind::tensor, 0, 0, {{2, 60, 16}, {2, 20, 8}}}}));
}

}  // namespace
}  // namespace rekindle
