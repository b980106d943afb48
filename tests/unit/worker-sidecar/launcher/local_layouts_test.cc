// Jobs whose ranks hold different parts: rows of common tensors, as shards of them, or tensors of
// their own.
#include <csignal>

#include "common/base/format.h"
#include "tests/unit/worker-sidecar/launcher/local_run.h"

namespace rekindle::launcher {
namespace {

class LocalLayouts : public LocalRun, public testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    LocalRun::SetUp();
    environment_["TEST_LAYOUT"] = GetParam();
  }
};

TEST_P(LocalLayouts, EndUndisturbed) {
  const auto run = start();
  EXPECT_EQ(run->wait(), 0) << run->output();
  expect_undisturbed_end();
}

TEST_P(LocalLayouts, AreSavedWhenTheRunIsEndedAndTheNextOneGoesOn) {
  environment_["TEST_STEP_MICROSECONDS"] = "10000";
  {
    const auto run = start();
    ASSERT_TRUE(eventually([&] { return number_in("step-0") >= 5; })) << run->output();
    run->signal(SIGTERM);
    EXPECT_EQ(run->wait(), 143) << run->output();
  }
  ASSERT_EQ(events("durable").size(), 1u);
  environment_["TEST_STEP_MICROSECONDS"] = "100";
  const auto run = start();
  EXPECT_EQ(run->wait(), 0) << run->output();
  EXPECT_EQ(number_in("first-2-2"), events("durable")[0]["step"].get<std::uint64_t>() + 1);
  expect_undisturbed_end();
}

INSTANTIATE_TEST_SUITE_P(Kinds, LocalLayouts, testing::Values("rows", "stages"),
                         [](const auto& layout) { return std::string(layout.param); });

struct OtherNumber {
  int before, after;
};

class LocalReshard : public LocalRun, public testing::WithParamInterface<OtherNumber> {};

TEST_P(LocalReshard, RowsOfOneNumberOfRanksAreThoseOfAnother) {
  environment_["TEST_LAYOUT"] = "rows";
  environment_["TEST_STEP_MICROSECONDS"] = "10000";
  {
    const auto run = start({}, GetParam().before);
    ASSERT_TRUE(eventually([&] { return number_in("step-0") >= 5; })) << run->output();
    run->signal(SIGTERM);
    EXPECT_EQ(run->wait(), 143) << run->output();
  }
  ASSERT_EQ(events("durable").size(), 1u);
  environment_["TEST_STEP_MICROSECONDS"] = "100";
  const auto run = start({}, GetParam().after);
  EXPECT_EQ(run->wait(), 0) << run->output();
  EXPECT_EQ(number_in("first-0-2"), events("durable")[0]["step"].get<std::uint64_t>() + 1);
  expect_undisturbed_end(GetParam().after);
}

INSTANTIATE_TEST_SUITE_P(Numbers, LocalReshard, testing::Values(OtherNumber{2, 3}, OtherNumber{4, 2}),
                         [](const auto& numbers) {
                           return format("{}To{}", numbers.param.before, numbers.param.after);
                         });

}  // namespace
}  // namespace rekindle::launcher
