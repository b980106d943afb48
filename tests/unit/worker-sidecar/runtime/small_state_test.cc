#include "worker-sidecar/runtime/src/small_state.h"

#include <gtest/gtest.h>

#include "tests/support/scripted_sidecar.h"

namespace rekindle {
namespace {

using testing::ControlMemory;
using Values = std::vector<std::pair<std::string, std::string>>;

class SmallStateInSlots : public ::testing::Test {
 protected:
  SmallStateInSlots() { small_state.attach(*control); }

  ControlMemory control;
  SmallState small_state;
  std::string sampler = "epoch 3";
  std::string scale = "2.0";
};

TEST_F(SmallStateInSlots, HoldsEachValueUnderItsNameInOrderOfRegistration) {
  small_state.set_values({{"sampler", sampler.data(), sampler.size()}, {"scale", scale.data(), scale.size()}});
  small_state.capture(1, 12, 3);
  const ControlMemory::Slot slot = control.slot(1);
  EXPECT_EQ(slot.fault, "");
  EXPECT_EQ(slot.step, 12u);
  EXPECT_EQ(slot.attempt, 3u);
  EXPECT_EQ(slot.values, (Values{{"sampler", "epoch 3"}, {"scale", "2.0"}}));
}

TEST_F(SmallStateInSlots, TheOtherSlotKeepsTheStepBefore) {
  small_state.set_values({{"scale", scale.data(), scale.size()}});
  small_state.capture(0, 1, 1);
  scale = "4.0";
  small_state.capture(1, 2, 1);
  EXPECT_EQ(control.slot(0).values, (Values{{"scale", "2.0"}}));
  EXPECT_EQ(control.slot(1).values, (Values{{"scale", "4.0"}}));
}

TEST_F(SmallStateInSlots, RegisteringMoreLeavesTheCommittedSlotReadable) {
  small_state.set_values({{"scale", scale.data(), scale.size()}});
  small_state.capture(0, 1, 1);
  small_state.set_values({{"scale", scale.data(), scale.size()}, {"sampler", sampler.data(), sampler.size()}});
  EXPECT_EQ(control.slot(0).fault, "");
  EXPECT_EQ(control.slot(0).values, (Values{{"scale", "2.0"}}));
  small_state.capture(1, 2, 1);
  small_state.capture(0, 3, 1);
  EXPECT_EQ(control.slot(0).values, (Values{{"scale", "2.0"}, {"sampler", "epoch 3"}}));
}

TEST_F(SmallStateInSlots, NothingRegisteredIsAValidSlot) {
  small_state.capture(0, 5, 1);
  EXPECT_EQ(control.slot(0).fault, "");
  EXPECT_TRUE(control.slot(0).values.empty());
}

TEST_F(SmallStateInSlots, AnEmptyValueWithoutAddressIsKept) {
  small_state.set_values({{"nothing", nullptr, 0}, {"scale", scale.data(), scale.size()}});
  small_state.capture(0, 5, 1);
  EXPECT_EQ(control.slot(0).values, (Values{{"nothing", ""}, {"scale", "2.0"}}));
}

TEST_F(SmallStateInSlots, AMovedValueIsTakenFromItsNewAddress) {
  small_state.set_values({{"scale", scale.data(), scale.size()}});
  const std::string elsewhere = "8.0";
  small_state.set_address(0, elsewhere.data());
  small_state.capture(0, 5, 1);
  EXPECT_EQ(control.slot(0).values, (Values{{"scale", "8.0"}}));
}

TEST_F(SmallStateInSlots, PayloadBytesCountNamesAndLengths) {
  EXPECT_EQ(SmallState::payload_bytes({{"abc", nullptr, 5}}), 2u + 3 + 8 + 5);
}

}  // namespace
}  // namespace rekindle
