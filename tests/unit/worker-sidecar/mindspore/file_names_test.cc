#include "worker-sidecar/mindspore/file_names.h"

#include <gtest/gtest.h>

#include "common/base/format.h"

namespace rekindle {
namespace {

TEST(MindSporeFileNames, AreThoseOfMindSporeAndMindX) {
  EXPECT_EQ(periodic_file_name("resnet", {2, 84}), "resnet-2_84.ckpt");
  EXPECT_EQ(breakpoint_file_name("resnet", {2, 84}), "resnet-2_84_breakpoint.ckpt");
  EXPECT_EQ(format("{}/{}/{}", dying_folder_name(184), rank_folder_name(3), dying_file_name(3, {2, 84})),
            "tft_saved_checkpoints-step_184/rank_3/ttp_rank_3-2_84.ckpt");
}

TEST(MindSporeFileNames, AreUnderstood) {
  const auto breakpoint = parse_mindspore_file_name("resnet_1-2_84_breakpoint.ckpt");
  ASSERT_TRUE(breakpoint);
  EXPECT_EQ(breakpoint->prefix, "resnet_1");
  EXPECT_EQ(breakpoint->place, (MindSporePlace{2, 84}));
  EXPECT_TRUE(breakpoint->dying);
  EXPECT_TRUE(parse_mindspore_file_name("ttp_rank_3-2_84.ckpt")->dying);
  EXPECT_FALSE(parse_mindspore_file_name("resnet-2_84.ckpt")->dying);
  EXPECT_FALSE(parse_mindspore_file_name("ttp_rank_x-2_84.ckpt")->dying);
  EXPECT_EQ(parse_mindspore_file_name("a-b-2_84.ckpt")->prefix, "a-b");
}

TEST(MindSporeFileNames, OthersAreNot) {
  for (const char* name : {"resnet.ckpt", "resnet-2_84.safetensors", "-2_84.ckpt", "resnet-2.ckpt", "resnet-02_84.ckpt",
                           "resnet-2_84x.ckpt", "resnet-_84.ckpt", "resnet-2_.ckpt", "resnet-2_-84.ckpt",
                           "resnet-99999999999999999999_1.ckpt", ".ckpt", ""}) {
    EXPECT_FALSE(parse_mindspore_file_name(name)) << name;
  }
}

TEST(MindSporeFileNames, ARanksFolderIsKnownByEitherName) {
  EXPECT_EQ(rank_of_folder("rank_12"), 12u);
  EXPECT_EQ(rank_of_folder("device0"), 0u);
  for (const char* name : {"device", "device08", "device1x", "rank1", "rank_99999999999", "rank_-1"})
    EXPECT_FALSE(rank_of_folder(name)) << name;
}

TEST(MindSporeFileNames, ACopyForAnotherRankIsNamedAfterIt) {
  EXPECT_EQ(file_name_for_rank("ttp_rank_1-2_84.ckpt", 1, 5), "ttp_rank_5-2_84.ckpt");
  EXPECT_EQ(file_name_for_rank("ttp_rank_3-2_84.ckpt", 1, 5), "ttp_rank_3-2_84.ckpt") << "it is no file of rank 1";
  EXPECT_EQ(file_name_for_rank("resnet-2_84_breakpoint.ckpt", 1, 5), "resnet-2_84_breakpoint.ckpt");
}

TEST(MindSporeFileNames, ALostRanksFolderIsNamedLikeTheOthers) {
  EXPECT_EQ(folder_name_like("device3", 5), "device5");
  EXPECT_EQ(folder_name_like("rank_3", 5), "rank_5");
}

}  // namespace
}  // namespace rekindle
