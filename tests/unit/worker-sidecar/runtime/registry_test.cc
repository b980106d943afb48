#include "worker-sidecar/runtime/src/registry.h"

#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace rekindle {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kRoom = 4096;

// What a caller in C may put into an enum.
template <typename Enum>
void set_number(Enum& field, int number) {
  std::memcpy(&field, &number, sizeof number);
}

class RegistryWith1000Bytes : public ::testing::Test {
 protected:
  rk_tensor tensor(const char* name) {
    return {.struct_size = sizeof(rk_tensor), .name = name, .data = memory, .dtype = RK_F32, .rank = 2, .shape = {4, 8}};
  }
  void expect_refused(const rk_tensor& given, const char* part) {
    const Done done = registry.add_tensor(given, kRoom);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().status, RK_ERROR_ARGUMENT);
    EXPECT_THAT(done.error().sentence, HasSubstr(part));
    EXPECT_EQ(registry.tensors().size(), 0u);
  }

  char memory[4096] = {};
  Registry registry{1000};
};

TEST_F(RegistryWith1000Bytes, ATensorWithoutAShardIsWhole) {
  ASSERT_TRUE(registry.add_tensor(tensor("w"), kRoom));
  const TensorDescription& description = registry.tensors()[0].description;
  EXPECT_EQ(description, whole_tensor("w", Dtype::f32, {4, 8}));
  EXPECT_EQ(registry.tensors()[0].bytes, 128u);
}

TEST_F(RegistryWith1000Bytes, AShardKeepsItsPlace) {
  rk_tensor shard = tensor("w");
  shard.shard.global_shape[0] = 16;
  shard.shard.global_shape[1] = 8;
  shard.shard.offset[0] = 4;
  ASSERT_TRUE(registry.add_tensor(shard, kRoom));
  EXPECT_EQ(registry.tensors()[0].description.global_shape, (Extents{16, 8}));
  EXPECT_EQ(registry.tensors()[0].description.offset, (Extents{4, 0}));
}

TEST_F(RegistryWith1000Bytes, WhatCannotBeATensorIsRefusedByName) {
  rk_tensor wrong = tensor(nullptr);
  expect_refused(wrong, "name is NULL");
  expect_refused(tensor(""), "name");
  const std::string long_name(256, 'n');
  expect_refused(tensor(long_name.c_str()), "name");
  wrong = tensor("w");
  set_number(wrong.dtype, 99);
  expect_refused(wrong, "dtype 99 is none of rk_dtype");
  wrong = tensor("w");
  wrong.rank = 9;
  expect_refused(wrong, "9 dimensions");
  wrong = tensor("w");
  wrong.rank = -1;
  expect_refused(wrong, "-1 dimensions");
  wrong = tensor("w");
  wrong.shape[1] = -8;
  expect_refused(wrong, "shape[1] is -8");
  wrong = tensor("w");
  wrong.data = nullptr;
  expect_refused(wrong, "data is NULL");
  wrong = tensor("w");
  wrong.shape[0] = wrong.shape[1] = INT64_MAX;
  expect_refused(wrong, "\"w\"");
  wrong = tensor("w");
  set_number(wrong.written_in, 7);
  expect_refused(wrong, "written_in 7");
  wrong = tensor("w");
  wrong.shard.global_shape[0] = 4;
  wrong.shard.global_shape[1] = 4;
  expect_refused(wrong, "\"w\"");
}

TEST_F(RegistryWith1000Bytes, NamesAreUniqueOverTensorsAndStates) {
  ASSERT_TRUE(registry.add_tensor(tensor("w"), kRoom));
  EXPECT_THAT(registry.add_tensor(tensor("w"), kRoom).error().sentence, HasSubstr("registered already"));
  EXPECT_THAT(registry.add_state("w", memory, 4, kRoom).error().sentence, HasSubstr("registered already"));
  ASSERT_TRUE(registry.add_state("s", memory, 4, kRoom));
  EXPECT_THAT(registry.add_tensor(tensor("s"), kRoom).error().sentence, HasSubstr("registered already"));
}

TEST_F(RegistryWith1000Bytes, SmallStateAndTensorsWrittenAnywhereShareTheRoom) {
  rk_tensor anywhere = tensor("statistics");
  anywhere.written_in = RK_ANYWHERE;
  ASSERT_TRUE(registry.add_state("sampler", memory, 872, kRoom));
  ASSERT_TRUE(registry.add_tensor(anywhere, kRoom));
  const Done done = registry.add_state("one more", memory, 1, kRoom);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().status, RK_ERROR_ARGUMENT);
  EXPECT_THAT(done.error().sentence, HasSubstr("to 1001 bytes, over state_bytes_max = 1000; raise rk_options.state_bytes_max"));
}

TEST_F(RegistryWith1000Bytes, ASlotThatHasNoRoomForTheNamesIsSaid) {
  EXPECT_THAT(registry.add_state("sampler", memory, 100, 105).error().sentence, HasSubstr("a slot holds 105"));
}

TEST_F(RegistryWith1000Bytes, AStateOfBytesNeedsAnAddress) {
  EXPECT_THAT(registry.add_state("s", nullptr, 4, kRoom).error().sentence, HasSubstr("data is NULL"));
  EXPECT_THAT(registry.add_state(nullptr, memory, 4, kRoom).error().sentence, HasSubstr("name is NULL"));
  EXPECT_TRUE(registry.add_state("nothing", nullptr, 0, kRoom));
}

TEST_F(RegistryWith1000Bytes, CapturedValuesKeepTheOrderOfRegistration) {
  rk_tensor anywhere = tensor("b");
  anywhere.written_in = RK_ANYWHERE;
  ASSERT_TRUE(registry.add_state("a", memory, 1, kRoom));
  ASSERT_TRUE(registry.add_tensor(tensor("not captured"), kRoom));
  ASSERT_TRUE(registry.add_tensor(anywhere, kRoom));
  ASSERT_TRUE(registry.add_state("c", memory, 1, kRoom));
  const std::vector<CapturedValue> values = registry.captured_values();
  ASSERT_EQ(values.size(), 3u);
  EXPECT_EQ(values[0].name, "a");
  EXPECT_EQ(values[1].name, "b");
  EXPECT_EQ(values[2].name, "c");
  EXPECT_EQ(registry.find_tensor("b")->captured_index, 1u);
  EXPECT_FALSE(registry.find_tensor("not captured")->captured_index);
}

TEST_F(RegistryWith1000Bytes, RemovingATensorRenumbersWhatIsCaptured) {
  rk_tensor anywhere = tensor("first");
  anywhere.written_in = RK_ANYWHERE;
  ASSERT_TRUE(registry.add_tensor(anywhere, kRoom));
  anywhere.name = "second";
  ASSERT_TRUE(registry.add_tensor(anywhere, kRoom));
  ASSERT_TRUE(registry.remove_tensor("first"));
  EXPECT_EQ(registry.find_tensor("second")->captured_index, 0u);
  EXPECT_EQ(registry.captured_values().size(), 1u);
  EXPECT_THAT(registry.remove_tensor("first").error().sentence, HasSubstr("no tensor 'first'"));
}

TEST_F(RegistryWith1000Bytes, AMovedTensorHasItsNewAddress) {
  ASSERT_TRUE(registry.add_tensor(tensor("w"), kRoom));
  ASSERT_TRUE(registry.move_tensor("w", memory + 512));
  EXPECT_EQ(registry.find_tensor("w")->data, memory + 512);
  EXPECT_FALSE(registry.move_tensor("w", nullptr));
  EXPECT_FALSE(registry.move_tensor("v", memory));
  EXPECT_FALSE(registry.move_tensor(nullptr, memory));
}

}  // namespace
}  // namespace rekindle
