#include "worker-sidecar/runtime/src/small_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tests/support/scripted_sidecar.h"
#include "tests/unit/worker-sidecar/runtime/fake_device.h"
#include "worker-sidecar/runtime/src/registered_memory.h"

namespace rekindle::runtime {
namespace {

using testing::ControlMemory;
using ::testing::HasSubstr;
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

TEST_F(SmallStateInSlots, AStateOfVariableSizeKeepsItsActualLengthBehindThePlainOnes) {
  testing::VariableState loader{.value = "long value"};
  small_state.set_values({{"scale", scale.data(), scale.size()},
                          {.name = "loader", .bytes = 64, .save = {testing::VariableState::save, &loader}}});
  EXPECT_TRUE(small_state.capture(0, 1, 1));
  loader.value = "short";
  EXPECT_TRUE(small_state.capture(1, 2, 1));
  EXPECT_EQ(control.slot(0).values, (Values{{"scale", "2.0"}, {"loader", "long value"}}));
  EXPECT_EQ(control.slot(1).values, (Values{{"scale", "2.0"}, {"loader", "short"}}));
  EXPECT_EQ(small_state.value_bytes(0, 1), 10u);
  EXPECT_EQ(small_state.value_bytes(1, 1), 5u);
  EXPECT_EQ(std::memcmp(small_state.value(1, 1), "short", 5), 0);
}

TEST_F(SmallStateInSlots, WhatCannotBeSavedIsLeftOutAndTheRestStands) {
  testing::VariableState first{.value = "first", .save_answer = -7};
  testing::VariableState second{.value = "second"};
  small_state.set_values({{"scale", scale.data(), scale.size()},
                          {.name = "first", .bytes = 8, .save = {testing::VariableState::save, &first}},
                          {.name = "second", .bytes = 8, .save = {testing::VariableState::save, &second}}});
  EXPECT_FALSE(small_state.capture(0, 1, 1));
  EXPECT_THAT(small_state.problem(), HasSubstr("the save function of state 'first' returned -7"));
  EXPECT_EQ(control.slot(0).fault, "");
  EXPECT_EQ(control.slot(0).values, (Values{{"scale", "2.0"}, {"second", "second"}}));
  EXPECT_EQ(small_state.value(0, 1), nullptr);
  EXPECT_NE(small_state.value(0, 2), nullptr);
  first.save_answer = 0;
  EXPECT_TRUE(small_state.capture(1, 2, 1));
  EXPECT_EQ(control.slot(1).values, (Values{{"scale", "2.0"}, {"first", "first"}, {"second", "second"}}));
}

TEST_F(SmallStateInSlots, ASaveFunctionThatClaimsMoreThanItsRoomIsNotBelieved) {
  testing::VariableState liar{.save_answer = 65};
  small_state.set_values({{.name = "liar", .bytes = 64, .save = {testing::VariableState::save, &liar}}});
  EXPECT_FALSE(small_state.capture(0, 1, 1));
  EXPECT_THAT(small_state.problem(), HasSubstr("returned 65 with room for 64"));
  EXPECT_TRUE(control.slot(0).values.empty());
}

TEST_F(SmallStateInSlots, AnArrayThatIsNotPlainMemoryIsFetched) {
  testing::FakeDevice device(16);
  device.bytes() = "0123456789abcdef";
  const DeviceMemory array("scales", device.functions(), device.at(4));
  small_state.set_values({{.name = "scales", .bytes = 6, .array = &array}});
  EXPECT_TRUE(small_state.capture(0, 1, 1));
  EXPECT_EQ(control.slot(0).values, (Values{{"scales", "456789"}}));
  device.copy_answer = 700;
  EXPECT_FALSE(small_state.capture(1, 2, 1));
  EXPECT_THAT(small_state.problem(),
              HasSubstr("tensor 'scales' cannot be copied from its device: rk_memory.copy_out returned 700"));
  EXPECT_EQ(control.slot(1).step, 2u);
  EXPECT_TRUE(control.slot(1).values.empty());
}

TEST_F(SmallStateInSlots, PayloadBytesCountNamesAndLengths) {
  EXPECT_EQ(SmallState::payload_bytes({{"abc", nullptr, 5}}), 2u + 3 + 8 + 5);
}

}  // namespace
}  // namespace rekindle::runtime
