// Without a sidecar, through the C functions: every kind of registered memory and state is saved
// and comes back.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "common/base/format.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/worker-sidecar/runtime/fake_device.h"
#include "worker-sidecar/checkpoint/manifest.h"
#include "worker-sidecar/storage/publisher.h"

namespace rekindle::runtime {
namespace {

using testing::FakeDevice;
using ::testing::HasSubstr;
using testing::VariableState;

// One life of a program: a column of a matrix, every other row of a table of two elements a byte, a
// vector on a device, running scales there, a cache, a loader's state, and the cursor.
struct Life {
  std::array<float, 12> matrix{};
  std::array<unsigned char, 12> table{};  // 4 rows of 6 elements
  FakeDevice device{32};
  VariableState loader;
  rk_cursor cursor{.struct_size = sizeof(rk_cursor), .epoch = 0, .samples = 0, .reserved = {}};
  float cache[2] = {7, 7};
  rk_position position{.struct_size = sizeof(rk_position)};
  rk_session* session = nullptr;

  explicit Life(const std::string& root) {
    const rk_options options{.struct_size = sizeof(rk_options), .checkpoint_dir = root.c_str()};
    expect_ok(rk_open(&options, &session));
    const rk_memory memory = device.functions();
    rk_tensor tensor{.struct_size = sizeof(rk_tensor),
                     .name = "column",
                     .data = matrix.data() + 1,
                     .dtype = RK_F32,
                     .rank = 2,
                     .shape = {4, 1},
                     .stride = {3, 1}};
    expect_ok(rk_register(session, &tensor));
    tensor = {.struct_size = sizeof(rk_tensor),
              .name = "rows",
              .data = table.data(),
              .dtype = RK_F4,
              .rank = 2,
              .shape = {2, 6},
              .stride = {12, 1}};
    expect_ok(rk_register(session, &tensor));
    tensor = {.struct_size = sizeof(rk_tensor),
              .name = "vector",
              .data = device.at(0),
              .memory = &memory,
              .dtype = RK_BF16,
              .rank = 1,
              .shape = {8}};
    expect_ok(rk_register(session, &tensor));
    tensor = {.struct_size = sizeof(rk_tensor),
              .name = "scales",
              .data = device.at(16),
              .memory = &memory,
              .dtype = RK_F8_E4M3,
              .rank = 1,
              .shape = {5}};
    tensor.written_in = RK_ANYWHERE;
    expect_ok(rk_register(session, &tensor));
    tensor = {
        .struct_size = sizeof(rk_tensor), .name = "cache", .data = cache, .dtype = RK_F32, .rank = 1, .shape = {2}};
    tensor.written_in = RK_DERIVED;
    expect_ok(rk_register(session, &tensor));
    expect_ok(rk_register_state_callback(session, "loader", 128, VariableState::save, VariableState::load, &loader));
    expect_ok(rk_register_cursor(session, &cursor));
  }
  ~Life() { rk_close(session); }

  static void expect_ok(rk_status status) { ASSERT_EQ(status, RK_OK) << rk_last_error(); }
  void restore() { expect_ok(rk_restore(session, &position)); }
  void step(std::uint64_t number) {
    expect_ok(rk_step_begin(session, number));
    device.bytes().replace(16, 5, "scale");
    expect_ok(rk_update_begin(session));
    for (std::size_t i = 1; i < matrix.size(); i += 3) matrix[i] = static_cast<float>(number);
    for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<unsigned char>(0x10 * number + i);
    device.bytes().replace(0, 16, "vector on device");
    loader.value = format("after step {}", number);
    cursor.epoch = 1;
    cursor.samples = 64 * number;
    expect_ok(rk_update_end(session));
    expect_ok(rk_step_end(session));
  }
};

TEST(EveryKindAlone, ComesBackAsItWasCommitted) {
  const TemporaryFolder root;
  {
    Life life(root.path());
    life.restore();
    life.step(1);
    life.step(2);
    life.device.bytes().replace(16, 5, "later");  // a forward pass after the commit
    ASSERT_EQ(rk_checkpoint(life.session), RK_OK) << rk_last_error();
  }
  Life life(root.path());
  life.matrix.fill(-1);
  life.restore();
  EXPECT_EQ(life.position.step, 2u);
  EXPECT_EQ(life.position.flags, 0u);
  EXPECT_EQ(life.matrix, (std::array<float, 12>{-1, 2, -1, -1, 2, -1, -1, 2, -1, -1, 2, -1}));
  EXPECT_EQ(life.table, (std::array<unsigned char, 12>{0x20, 0x21, 0x22, 0, 0, 0, 0x26, 0x27, 0x28, 0, 0, 0}));
  EXPECT_EQ(life.device.bytes().substr(0, 21), "vector on devicescale");
  EXPECT_EQ(life.cache[0], 7) << "a derived tensor is the program's to rebuild";
  EXPECT_EQ(life.loader.loaded, "after step 2");
  EXPECT_EQ(life.cursor.epoch, 1u);
  EXPECT_EQ(life.cursor.samples, 128u);
  life.step(3);
}

TEST(EveryKindAlone, AStateThatCannotBeSavedIsMissingAndTensorsComeAllTheSame) {
  const TemporaryFolder root;
  {
    Life life(root.path());
    life.restore();
    life.loader.save_answer = -1;
    life.step(1);
    EXPECT_THAT(rk_last_error(), HasSubstr("state 'loader' returned -1"));
    ASSERT_EQ(rk_checkpoint(life.session), RK_OK) << rk_last_error();
  }
  Life life(root.path());
  life.restore();
  EXPECT_EQ(life.position.step, 1u);
  EXPECT_EQ(life.position.flags, std::uint32_t{RK_STATE_MISSING});
  EXPECT_EQ(life.matrix[1], 1);
  EXPECT_EQ(life.loader.loaded, "never loaded");
}

TEST(EveryKindAlone, ADeviceThatCannotBeReadFailsTheCheckpointAndTheOneBeforeStands) {
  const TemporaryFolder root;
  {
    Life life(root.path());
    life.restore();
    life.step(1);
    ASSERT_EQ(rk_checkpoint(life.session), RK_OK);
    life.step(2);
    life.device.copy_answer = 700;
    EXPECT_EQ(rk_checkpoint(life.session), RK_ERROR_STORAGE);
    EXPECT_THAT(rk_last_error(), HasSubstr("tensor 'vector' cannot be copied from its device"));
    life.device.copy_answer = 0;
    life.step(3);
  }
  Life life(root.path());
  life.restore();
  EXPECT_EQ(life.position.step, 1u);
}

TEST(EveryKindAlone, AViewThatIsLargerThanTheBufferItGoesThroughComesBackWhole) {
  const TemporaryFolder root;
  constexpr std::int64_t kRows = 1100;
  constexpr std::int64_t kColumns = 1300;
  std::vector<double> matrix(kRows * kColumns);
  for (std::size_t i = 0; i < matrix.size(); ++i) matrix[i] = static_cast<double>(i);
  const std::vector<double> saved = matrix;
  // The transposed matrix without its last column: 11 MB of single elements.
  const auto open = [&](rk_position& position) {
    const rk_options options{.struct_size = sizeof(rk_options), .checkpoint_dir = root.path().c_str()};
    rk_session* session = nullptr;
    EXPECT_EQ(rk_open(&options, &session), RK_OK) << rk_last_error();
    const rk_tensor view{.struct_size = sizeof(rk_tensor),
                         .name = "view",
                         .data = matrix.data(),
                         .dtype = RK_F64,
                         .rank = 2,
                         .shape = {kColumns - 1, kRows},
                         .stride = {1, kColumns}};
    EXPECT_EQ(rk_register(session, &view), RK_OK) << rk_last_error();
    EXPECT_EQ(rk_restore(session, &position), RK_OK) << rk_last_error();
    return session;
  };
  rk_position position{.struct_size = sizeof(rk_position)};
  rk_session* session = open(position);
  ASSERT_EQ(rk_step_begin(session, 1), RK_OK);
  ASSERT_EQ(rk_update_skip(session), RK_OK);
  ASSERT_EQ(rk_checkpoint(session), RK_OK) << rk_last_error();
  rk_close(session);
  std::ranges::fill(matrix, -1);
  session = open(position);
  EXPECT_EQ(position.step, 1u);
  rk_close(session);
  for (std::size_t i = 0; i < matrix.size(); ++i) {
    const bool outside = i % kColumns == kColumns - 1;
    ASSERT_EQ(matrix[i], outside ? -1 : saved[i]) << "element " << i;
  }
}

}  // namespace
}  // namespace rekindle::runtime
