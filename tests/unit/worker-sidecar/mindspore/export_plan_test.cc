#include "worker-sidecar/mindspore/export_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "worker-sidecar/mindspore/checkpoint_file.h"

namespace rekindle {
namespace {

using testing::HasSubstr;

Manifest job_of(std::uint32_t world_size) {
  Manifest manifest{.kind = CheckpointKind::periodic, .step = 184, .world_size = world_size};
  manifest.job.name = "resnet";
  manifest.tensors.push_back({.name = "w", .dtype = Dtype::f32, .global_shape = {4, 6}, .pieces = {}});
  return manifest;
}

Result<MindSporeExportPlan> plan_of(const Manifest& manifest, const MindSporeExportOptions& options) {
  std::vector<const ManifestTensor*> tensors;
  for (const ManifestTensor& tensor : manifest.tensors) tensors.push_back(&tensor);
  return MindSporeExportPlan::make(manifest, std::move(tensors), {2, 84}, options);
}

TEST(ChoosePlace, TheEpochThatTrainingKeptCounts) {
  EXPECT_EQ(choose_place("a1-s184-x", 184, 7, {}), (MindSporePlace{7, 184}));
  EXPECT_EQ(choose_place("a1-s184-x", 184, 7, {.steps_per_epoch = 100}), (MindSporePlace{7, 84}));
  EXPECT_FALSE(choose_place("a1-s184-x", 184, 7, {.epoch = 2}));
}

TEST(ChoosePlace, WithoutOneTheEpochIsGivenOrCounted) {
  EXPECT_EQ(choose_place("a1-s184-x", 184, {}, {.epoch = 2}), (MindSporePlace{2, 184}));
  EXPECT_EQ(choose_place("a1-s200-x", 200, {}, {.steps_per_epoch = 100}), (MindSporePlace{2, 100}));
  const Result<MindSporePlace> place = choose_place("a1-s184-x", 184, {}, {});
  ASSERT_FALSE(place);
  EXPECT_THAT(place.error().message, HasSubstr("a1-s184-x does not say its epoch"));
}

TEST(MindSporeExportPlan, OneMergedFileLiesInTheTargetItself) {
  const Manifest manifest = job_of(2);
  const Result<MindSporeExportPlan> plan = plan_of(manifest, {});
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->files().size(), 1u);
  EXPECT_TRUE(plan->files()[0].folders.empty());
  EXPECT_EQ(plan->files()[0].name, "resnet-2_84.ckpt");
  EXPECT_EQ(plan->part_of(manifest.tensors[0], plan->files()[0]), (TensorBox{{0, 0}, {4, 6}}));
}

TEST(MindSporeExportPlan, EachRankHasAnEqualPartOfAShardedTensor) {
  const Manifest manifest = job_of(2);
  const Result<MindSporeExportPlan> plan =
      plan_of(manifest, {.layout = MindSporeLayout::tft, .prefix = "p", .sharded = {"w*=1"}});
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->files().size(), 2u);
  const MindSporeFilePlan& file = plan->files()[1];
  EXPECT_EQ(file.folders, (std::vector<std::string>{"tft_saved_checkpoints-step_184", "rank_1"}));
  EXPECT_EQ(file.name, "ttp_rank_1-2_84.ckpt");
  const TensorBox part = plan->part_of(manifest.tensors[0], file);
  EXPECT_EQ(part, (TensorBox{{0, 3}, {4, 3}}));
  EXPECT_THAT(file.appended, testing::Contains(appended_number("cur_rank", 1)));

  std::uint64_t bytes = slice_header(manifest.tensors[0], part, 48).size() + 48;
  for (const AppendedValue& value : file.appended) bytes += encode(value).size();
  EXPECT_EQ(plan->bytes_of(file), bytes);
}

TEST(MindSporeExportPlan, RefusesWhatMindSporeWouldReadWrongly) {
  const auto refusal = [](ManifestTensor tensor, const MindSporeExportOptions& options) {
    Manifest manifest = job_of(3);
    manifest.tensors = {std::move(tensor)};
    const Result<MindSporeExportPlan> plan = plan_of(manifest, options);
    return plan ? "" : plan.error().message;
  };
  const MindSporeExportOptions cut{.layout = MindSporeLayout::ranks, .sharded = {"w=0"}};
  EXPECT_THAT(refusal({.name = "w", .dtype = Dtype::f32, .global_shape = {4}, .pieces = {}}, cut),
              HasSubstr("3 ranks cannot hold equal parts of it along dimension 0"));
  EXPECT_THAT(refusal({.name = "v", .dtype = Dtype::f32, .global_shape = {3}, .pieces = {}}, cut),
              HasSubstr("--sharded names \"w\", which is not in the checkpoint"));
  EXPECT_THAT(refusal({.name = "w", .dtype = Dtype::f4, .global_shape = {4}, .pieces = {}}, {}),
              HasSubstr("\"w\" is F4, which MindSpore does not read"));
  EXPECT_THAT(refusal({.name = "step_num", .dtype = Dtype::i64, .global_shape = {}, .pieces = {}}, {}),
              HasSubstr("under which MindSpore keeps a number of its own"));
}

}  // namespace
}  // namespace rekindle
