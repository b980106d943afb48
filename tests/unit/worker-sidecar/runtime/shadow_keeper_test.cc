#include "worker-sidecar/runtime/src/shadow_keeper.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "worker-sidecar/runtime/src/control_mapping.h"

namespace rekindle::runtime {
namespace {

constexpr std::uint64_t kAttempt = 2;

// A rank with weights, running statistics (captured with each commit) and a counter, each equal to
// the number of the step.
class ShadowOfARank : public ::testing::Test {
 protected:
  ShadowOfARank() {
    small_state.attach(*block);
    gates.attach(*block);
    const rk_tensor first{.struct_size = sizeof(rk_tensor),
                          .name = "weights",
                          .data = weights.data(),
                          .dtype = RK_I32,
                          .rank = 1,
                          .shape = {1000}};
    rk_tensor second{.struct_size = sizeof(rk_tensor),
                     .name = "statistics",
                     .data = statistics.data(),
                     .dtype = RK_I32,
                     .rank = 1,
                     .shape = {4}};
    second.written_in = RK_ANYWHERE;
    EXPECT_TRUE(registry.add_tensor(first, small_state.room()));
    EXPECT_TRUE(registry.add_tensor(second, small_state.room()));
    EXPECT_TRUE(registry.add_state("counter", &counter, sizeof counter, small_state.room()));
    small_state.set_values(registry.captured_values());
    keeper.set_report([this](const SnapshottedMessage& taken, const std::shared_ptr<const ShadowMapping>& mapping) {
      reports.push_back(taken);
      copies.push_back(mapping);
    });
  }
  std::shared_ptr<ShadowMapping> offer(bool snapshots, std::uint64_t every,
                                       std::vector<PiecePlan> pieces = {{"weights", 0, 1000}, {"statistics", 0, 4}}) {
    Result<ShadowPlan> plan =
        plan_shadow({.snapshots = snapshots, .shadow_every_steps = every, .state_bytes = block->slot_bytes},
                    registry.layout(), pieces);
    auto mapping = std::make_shared<ShadowMapping>(std::move(*ShadowMapping::make_private(*std::move(plan))));
    keeper.offer(mapping);
    return mapping;
  }
  void pass_gate(std::uint64_t snapshot_step = 0) {
    if (keeper.due_at_gate(snapshot_step, gates.word().step)) keeper.at_gate(snapshot_step, gates.word(), kAttempt);
  }
  // One step as the session makes it; the forward pass changes the statistics afterwards.
  void commit(std::uint64_t snapshot_step = 0) {
    const std::uint64_t step = gates.word().step + 1;
    weights.fill(static_cast<std::int32_t>(step));
    statistics.fill(static_cast<std::int32_t>(step));
    counter = step;
    const std::uint8_t slot = gates.word().slot ^ 1u;
    ASSERT_TRUE(small_state.capture(slot, step, kAttempt));
    gates.publish({step, RankPhase::between, slot});
    if (keeper.due_at_commit(step)) keeper.at_commit(gates.word(), kAttempt);
    statistics.fill(-1);
    pass_gate(snapshot_step);
  }
  static std::uint64_t step_of(const ShadowMapping& mapping, std::uint32_t slot) {
    return mapping.header_of(slot).step;
  }
  static std::int32_t first_of(const ShadowMapping& mapping, std::uint32_t slot, std::size_t piece) {
    std::int32_t value = 0;
    std::memcpy(&value, mapping.slot_begin(slot) + mapping.plan().pieces[piece].offset, sizeof value);
    return value;
  }

  ControlMapping block = *ControlMapping::make_private(0, 1, 4096);
  std::array<std::int32_t, 1000> weights{};
  std::array<std::int32_t, 4> statistics{};
  std::uint64_t counter = 0;
  Gates gates;
  SmallState small_state;
  Registry registry{4096};
  ShadowKeeper keeper{registry, small_state};
  std::vector<SnapshottedMessage> reports;
  std::vector<std::shared_ptr<const ShadowMapping>> copies;
};

TEST_F(ShadowOfARank, KeepsTheLastTwoSteps) {
  const auto mapping = offer(false, 1);
  pass_gate();
  for (int i = 0; i < 5; ++i) commit();
  EXPECT_EQ(step_of(*mapping, 0), 5u);
  EXPECT_EQ(step_of(*mapping, 1), 4u);
  EXPECT_EQ(first_of(*mapping, 0, 0), 5);
  EXPECT_EQ(first_of(*mapping, 1, 0), 4);
}

TEST_F(ShadowOfARank, CopiesAtEveryKthStepOnly) {
  const auto mapping = offer(false, 3);
  for (int i = 0; i < 2; ++i) commit();
  EXPECT_EQ(step_of(*mapping, 0), 0u);
  for (int i = 0; i < 6; ++i) commit();
  EXPECT_EQ(step_of(*mapping, 0), 3u);
  EXPECT_EQ(step_of(*mapping, 1), 6u);
}

TEST_F(ShadowOfARank, TakesTensorsThatChangeAnywhereFromTheirCommit) {
  const auto mapping = offer(false, 1);
  pass_gate();
  commit();
  EXPECT_EQ(statistics[0], -1);
  EXPECT_EQ(first_of(*mapping, 0, 1), 1);
}

TEST_F(ShadowOfARank, KeepsTheSmallStateOfTheSameStep) {
  const auto mapping = offer(false, 1);
  pass_gate();
  commit();
  SlotHeader header{};
  std::memcpy(&header, mapping->slot_begin(0) + mapping->plan().state_offset, sizeof header);
  EXPECT_EQ(header.step, 1u);
  EXPECT_EQ(header.attempt, kAttempt);
  EXPECT_GT(header.bytes, 0u);
}

TEST_F(ShadowOfARank, TakesASnapshotAtExactlyTheStepThatWasAskedFor) {
  const auto mapping = offer(true, 0);
  for (int i = 0; i < 5; ++i) commit(3);
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].step, 3u);
  EXPECT_TRUE(reports[0].ok);
  EXPECT_EQ(step_of(*mapping, 0), 3u);
  EXPECT_EQ(first_of(*mapping, 0, 0), 3);
}

TEST_F(ShadowOfARank, ASnapshotLeavesTheShadowAlone) {
  const auto mapping = offer(true, 1);
  pass_gate();
  for (int i = 0; i < 4; ++i) commit(2);
  EXPECT_EQ(step_of(*mapping, mapping->plan().snapshot_slot), 2u);
  EXPECT_EQ(step_of(*mapping, 0) + step_of(*mapping, 1), 3u + 4u);
}

TEST_F(ShadowOfARank, AnOrderForAStepThatHasPassedIsNotCarriedOut) {
  const auto mapping = offer(true, 0);
  for (int i = 0; i < 5; ++i) commit();
  commit(3);
  EXPECT_TRUE(reports.empty());
  EXPECT_EQ(step_of(*mapping, 0), 0u);
}

TEST_F(ShadowOfARank, FollowsATensorThatMoves) {
  const auto mapping = offer(false, 1);
  pass_gate();
  commit();
  std::array<std::int32_t, 1000> elsewhere{};
  elsewhere.fill(77);
  ASSERT_TRUE(registry.move_tensor("weights", elsewhere.data()));
  keeper.registry_changed();
  commit();
  EXPECT_EQ(first_of(*mapping, 1, 0), 77);
}

TEST_F(ShadowOfARank, ASnapshotOfWhatIsNoLongerRegisteredIsReportedAsFailed) {
  offer(true, 0);
  pass_gate();
  ASSERT_TRUE(registry.remove_tensor("weights"));
  small_state.set_values(registry.captured_values());
  keeper.registry_changed();
  commit(1);
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_FALSE(reports[0].ok);
  EXPECT_NE(reports[0].error.message.find("weights"), std::string::npos);
}

TEST_F(ShadowOfARank, ANewPlanReplacesTheOldOneAtTheNextGate) {
  const auto before = offer(false, 1);
  pass_gate();
  commit();
  const auto after = offer(false, 1, {{"weights", 500, 1000}});
  commit();  // the old one still gets this commit: its gate comes behind it
  commit();
  EXPECT_EQ(step_of(*before, 1), 2u);
  EXPECT_EQ(step_of(*after, 0), 3u);
  EXPECT_EQ(first_of(*after, 0, 0), 3);
}

TEST_F(ShadowOfARank, WithoutAShadowNothingIsWanted) {
  commit(1);
  keeper.offer(nullptr);
  commit(2);
  EXPECT_TRUE(reports.empty());
  EXPECT_FALSE(keeper.due_at_commit(3));
}

}  // namespace
}  // namespace rekindle::runtime
