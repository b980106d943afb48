#include "worker-sidecar/mindspore/appended_value.h"

#include <gtest/gtest.h>

namespace rekindle {
namespace {

MindSporeEntry entry_of(std::string type, Extents shape) {
  return {.name = "step_num", .type = std::move(type), .shape = std::move(shape), .content = {}};
}

TEST(AppendedValue, ANumberIsReadBackAsItWasAppended) {
  const AppendedValue value = appended_number("step_num", 0x1234567890u);
  EXPECT_EQ(value.type, "Int64");
  EXPECT_EQ(decode_number(entry_of("Int64", {}), value.content), 0x1234567890u);
}

TEST(AppendedValue, ANegativeNumberIsNone) {
  EXPECT_EQ(decode_number(entry_of("Int64", {}), std::string(8, '\xff')), std::nullopt);
  EXPECT_EQ(decode_number(entry_of("Int32", {}), std::string(4, '\xff')), std::nullopt);
  EXPECT_EQ(decode_number(entry_of("Int64", {}), std::string(4, '\xff') + std::string(4, '\0')), 0xffffffffu);
}

TEST(AppendedValue, OnlyScalarsOfTheTwoWholeTypesAreNumbers) {
  EXPECT_TRUE(is_whole_number(entry_of("Int64", {})));
  EXPECT_TRUE(is_whole_number(entry_of("Int32", {1})));
  EXPECT_FALSE(is_whole_number(entry_of("Int64", {2})));
  EXPECT_FALSE(is_whole_number(entry_of("Float32", {})));
}

TEST(AppendedValue, TextsEpochAndStepAreNoTensorsOfTheModel) {
  EXPECT_FALSE(is_model_tensor({.name = "epoch_num", .type = "Int64", .shape = {}, .content = {}}));
  EXPECT_FALSE(is_model_tensor({.name = "step_num", .type = "Int64", .shape = {}, .content = {}}));
  EXPECT_FALSE(is_model_tensor({.name = "loss_scale", .type = "str", .shape = {}, .content = {}}));
  EXPECT_TRUE(is_model_tensor({.name = "batch_num", .type = "Int64", .shape = {}, .content = {}}));
}

}  // namespace
}  // namespace rekindle
