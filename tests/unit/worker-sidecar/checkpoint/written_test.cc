#include "worker-sidecar/checkpoint/written.h"

#include <gtest/gtest.h>

namespace rekindle {
namespace {

const Layout kLayout{{whole_tensor("w", Dtype::f32, {4, 2}), whole_tensor("s", Dtype::f64, {})}};

WrittenFile make_report(std::string file, std::vector<WrittenEntry> entries) { return {std::move(file), 200, std::string(32, 'a'), {}, std::move(entries)}; }

std::vector<WrittenStripe> make_stripes() {
  return {{&kLayout, make_report("rank-0.safetensors", {{"w[0:3]", "w", 0, 3, 80, 104}})},
          {&kLayout, make_report("rank-1.safetensors", {{"w[3:4]", "w", 3, 4, 88, 96}, {"s", "s", 0, 1, 80, 88}})}};
}

TEST(AddTensors, PutsTheReportsOfAllWritersTogether) {
  Manifest manifest;
  ASSERT_TRUE(add_tensors(manifest, make_stripes()));
  EXPECT_EQ(manifest.tensors, (std::vector<ManifestTensor>{
                                  {"w", Dtype::f32, {4, 2}, {{"rank-0.safetensors", "w[0:3]", {0, 0}, {3, 2}, 80, 104}, {"rank-1.safetensors", "w[3:4]", {3, 0}, {1, 2}, 88, 96}}},
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
  for (const WrittenEntry& entry : {WrittenEntry{"x", "x", 0, 1, 80, 88}, WrittenEntry{"w[0:5]", "w", 0, 5, 80, 120}, WrittenEntry{"w[3:2]", "w", 3, 2, 80, 80},
                                    WrittenEntry{"w", "w", 0, 3, 80, 104}}) {
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

}  // namespace
}  // namespace rekindle
