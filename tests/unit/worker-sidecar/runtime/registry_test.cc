#include "worker-sidecar/runtime/src/registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "common/base/format.h"
#include "tests/unit/worker-sidecar/runtime/fake_device.h"
#include "worker-sidecar/checkpoint/cursor.h"

namespace rekindle::runtime {
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
    return {
        .struct_size = sizeof(rk_tensor), .name = name, .data = memory, .dtype = RK_F32, .rank = 2, .shape = {4, 8}};
  }
  void expect_refused(const rk_tensor& given, const char* part) {
    const Done done = registry.add_tensor(given, kRoom);
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().status, RK_ERROR_ARGUMENT);
    EXPECT_THAT(done.error().message, HasSubstr(part));
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

TEST_F(RegistryWith1000Bytes, EveryTypeHasItsSize) {
  const std::pair<rk_dtype, std::uint64_t> sizes[] = {
      {RK_BOOL, 32}, {RK_U8, 32},      {RK_I8, 32},      {RK_I16, 64},     {RK_U16, 64},         {RK_F16, 64},
      {RK_BF16, 64}, {RK_I32, 128},    {RK_U32, 128},    {RK_F32, 128},    {RK_F64, 256},        {RK_I64, 256},
      {RK_U64, 256}, {RK_F8_E4M3, 32}, {RK_F8_E5M2, 32}, {RK_F8_E8M0, 32}, {RK_F8_E4M3FNUZ, 32}, {RK_F8_E5M2FNUZ, 32},
      {RK_C64, 256}, {RK_F4, 16},      {RK_F6_E2M3, 24}, {RK_F6_E3M2, 24}};
  for (const auto& [dtype, bytes] : sizes) {
    const std::string name = format("w{}", dtype);
    rk_tensor one = tensor(name.c_str());
    one.dtype = dtype;
    ASSERT_TRUE(registry.add_tensor(one, kRoom)) << dtype;
    EXPECT_EQ(registry.tensors().back().bytes, bytes) << dtype;
  }
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
  wrong.dtype = RK_F6_E2M3;
  wrong.shape[1] = 6;
  expect_refused(wrong, "in its shape the last dimension is 6 and has to be a multiple of 4");
  wrong.shape[1] = 8;
  wrong.stride[0] = 16;
  wrong.stride[1] = 2;
  expect_refused(wrong, "stride[1] is 2 and has to be 1");
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
  EXPECT_THAT(registry.add_tensor(tensor("w"), kRoom).error().message, HasSubstr("registered already"));
  EXPECT_THAT(registry.add_state("w", memory, 4, kRoom).error().message, HasSubstr("registered already"));
  ASSERT_TRUE(registry.add_state("s", memory, 4, kRoom));
  EXPECT_THAT(registry.add_tensor(tensor("s"), kRoom).error().message, HasSubstr("registered already"));
}

TEST_F(RegistryWith1000Bytes, SmallStateAndTensorsWrittenAnywhereShareTheRoom) {
  rk_tensor anywhere = tensor("statistics");
  anywhere.written_in = RK_ANYWHERE;
  ASSERT_TRUE(registry.add_state("sampler", memory, 872, kRoom));
  ASSERT_TRUE(registry.add_tensor(anywhere, kRoom));
  const Done done = registry.add_state("one more", memory, 1, kRoom);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().status, RK_ERROR_ARGUMENT);
  EXPECT_THAT(done.error().message,
              HasSubstr("to 1001 bytes, over state_bytes_max = 1000; raise rk_options.state_bytes_max"));
}

TEST_F(RegistryWith1000Bytes, ASlotThatHasNoRoomForTheNamesIsSaid) {
  EXPECT_THAT(registry.add_state("sampler", memory, 100, 105).error().message, HasSubstr("a slot holds 105"));
}

TEST_F(RegistryWith1000Bytes, AStateOfBytesNeedsAnAddress) {
  EXPECT_THAT(registry.add_state("s", nullptr, 4, kRoom).error().message, HasSubstr("data is NULL"));
  EXPECT_THAT(registry.add_state(nullptr, memory, 4, kRoom).error().message, HasSubstr("name is NULL"));
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
  EXPECT_THAT(registry.remove_tensor("first").error().message, HasSubstr("no tensor 'first'"));
}

TEST_F(RegistryWith1000Bytes, AMovedTensorHasItsNewAddress) {
  ASSERT_TRUE(registry.add_tensor(tensor("w"), kRoom));
  ASSERT_TRUE(registry.move_tensor("w", memory + 512));
  EXPECT_EQ(registry.find_tensor("w")->data, memory + 512);
  EXPECT_FALSE(registry.move_tensor("w", nullptr));
  EXPECT_FALSE(registry.move_tensor("v", memory));
  EXPECT_FALSE(registry.move_tensor(nullptr, memory));
}

TEST_F(RegistryWith1000Bytes, ViewsAreKeptAndThoseThatAreNoneAreRefused) {
  rk_tensor view = tensor("w");
  view.stride[0] = 1;
  view.stride[1] = 4;
  ASSERT_TRUE(registry.add_tensor(view, kRoom));
  EXPECT_NE(registry.tensors()[0].array, nullptr);
  view.name = "dense";
  view.stride[0] = 8;
  view.stride[1] = 1;
  ASSERT_TRUE(registry.add_tensor(view, kRoom));
  EXPECT_EQ(registry.tensors()[1].array, nullptr);
  view.name = "broadcast";
  view.stride[0] = 0;
  EXPECT_THAT(registry.add_tensor(view, kRoom).error().message, HasSubstr("'broadcast' has stride 0"));
}

TEST_F(RegistryWith1000Bytes, DeviceMemoryNeedsItsFunctionsAndNoStrides) {
  testing::FakeDevice device(128);
  rk_memory functions = device.functions();
  rk_tensor there = tensor("w");
  there.data = device.at(0);
  there.memory = &functions;
  functions.copy_in = nullptr;
  expect_refused(there, "rk_memory.copy_in is NULL");
  functions = device.functions();
  functions.struct_size = 0;
  expect_refused(there, "rk_memory.struct_size is 0");
  functions = device.functions();
  there.stride[0] = 1;
  there.stride[1] = 4;
  expect_refused(there, "has strides and rk_memory");
}

TEST_F(RegistryWith1000Bytes, EachDeviceIsWaitedForOnce) {
  testing::FakeDevice device(256);
  testing::FakeDevice other(128);
  rk_memory functions = device.functions();
  rk_tensor there = tensor("a");
  there.memory = &functions;
  there.data = device.at(0);
  ASSERT_TRUE(registry.add_tensor(there, kRoom));
  there.name = "b";
  there.data = device.at(128);
  ASSERT_TRUE(registry.add_tensor(there, kRoom));
  functions = other.functions();
  there.name = "c";
  there.data = other.at(0);
  ASSERT_TRUE(registry.add_tensor(there, kRoom));
  functions.wait = nullptr;
  there.name = "waited for by the program";
  ASSERT_TRUE(registry.add_tensor(there, kRoom));
  ASSERT_EQ(registry.devices_to_wait_for().size(), 2u);
  EXPECT_EQ(registry.devices_to_wait_for()[0].context, &device);
  ASSERT_TRUE(registry.remove_tensor("c"));
  EXPECT_EQ(registry.devices_to_wait_for().size(), 1u);
}

TEST_F(RegistryWith1000Bytes, ADerivedTensorTakesItsNameAndNothingElse) {
  rk_tensor derived = tensor("gathered");
  derived.written_in = RK_DERIVED;
  ASSERT_TRUE(registry.add_tensor(derived, kRoom));
  EXPECT_TRUE(registry.layout().tensors.empty());
  EXPECT_THAT(registry.add_tensor(tensor("gathered"), kRoom).error().message, HasSubstr("registered already"));
  EXPECT_TRUE(registry.move_tensor("gathered", memory + 512));
  EXPECT_TRUE(registry.remove_tensor("gathered"));
  EXPECT_FALSE(registry.remove_tensor("gathered"));
  EXPECT_TRUE(registry.add_tensor(tensor("gathered"), kRoom));
}

TEST_F(RegistryWith1000Bytes, NamesOfTheLibraryAreNotForPrograms) {
  expect_refused(tensor("rekindle.w"), "begins with 'rekindle.'");
  EXPECT_THAT(registry.add_state("rekindle.cursor", memory, 16, kRoom).error().message,
              HasSubstr("begins with 'rekindle.'"));
}

TEST_F(RegistryWith1000Bytes, TheCursorIsAStateOfSixteenBytes) {
  rk_cursor cursor{.struct_size = sizeof(rk_cursor), .epoch = 3, .samples = 512, .reserved = {}};
  ASSERT_TRUE(registry.add_cursor(&cursor, kRoom));
  EXPECT_EQ(registry.state_descriptions(), (std::vector<StateDescription>{{"rekindle.cursor", 16}}));
  EXPECT_EQ(*decode_cursor({static_cast<const char*>(registry.captured_values()[0].data), 16}),
            (Cursor{.epoch = 3, .samples = 512}));
  EXPECT_THAT(registry.add_cursor(&cursor, kRoom).error().message, HasSubstr("a session has one"));
  cursor.struct_size = 0;
  EXPECT_THAT(registry.add_cursor(&cursor, kRoom).error().message, HasSubstr("rk_cursor.struct_size is 0"));
}

TEST_F(RegistryWith1000Bytes, AStateOfVariableSizeTakesRoomForItsLargest) {
  testing::VariableState state;
  const SaveState save{testing::VariableState::save, &state};
  const LoadState load{testing::VariableState::load, &state};
  EXPECT_THAT(registry.add_state("loader", 1001, save, load, kRoom).error().message,
              HasSubstr("over state_bytes_max = 1000"));
  EXPECT_THAT(registry.add_state("loader", 10, {}, load, kRoom).error().message, HasSubstr("save is NULL"));
  EXPECT_THAT(registry.add_state("loader", 10, save, {}, kRoom).error().message, HasSubstr("load is NULL"));
  ASSERT_TRUE(registry.add_state("loader", 900, save, load, kRoom));
  EXPECT_EQ(registry.state_descriptions(),
            (std::vector<StateDescription>{{.name = "loader", .bytes = 900, .variable = true}}));
  EXPECT_THAT(registry.add_state("sampler", memory, 101, kRoom).error().message, HasSubstr("over state_bytes_max"));
}

TEST_F(RegistryWith1000Bytes, WhatIsNotPlainIsCapturedLast) {
  testing::VariableState state;
  rk_tensor anywhere = tensor("tensor");
  anywhere.written_in = RK_ANYWHERE;
  ASSERT_TRUE(registry.add_state("loader", 100, {testing::VariableState::save, &state},
                                 {testing::VariableState::load, &state}, kRoom));
  ASSERT_TRUE(registry.add_state("sampler", memory, 4, kRoom));
  ASSERT_TRUE(registry.add_tensor(anywhere, kRoom));
  const std::vector<CapturedValue> values = registry.captured_values();
  ASSERT_EQ(values.size(), 3u);
  EXPECT_EQ(values[0].name, "sampler");
  EXPECT_EQ(values[1].name, "tensor");
  EXPECT_EQ(values[2].name, "loader");
  EXPECT_EQ(registry.states()[0].captured_index, 2u);
  EXPECT_EQ(registry.states()[1].captured_index, 0u);
  EXPECT_EQ(registry.tensors()[0].captured_index, 1u);
}

}  // namespace
}  // namespace rekindle::runtime
