// A rank for the tests of what can be registered: one tensor and one state of each kind, at a
// scripted sidecar.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <future>
#include <stdexcept>
#include <string>

#include "tests/support/checkpoint_builder.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/worker-sidecar/runtime/fake_device.h"
#include "tests/unit/worker-sidecar/runtime/rank.h"

namespace rekindle::runtime::testing {

class EveryKind : public ::testing::Test {
 protected:
  explicit EveryKind(std::uint32_t world_size = 1)
      : sidecar(ControlMemory::Shape{.world_size = world_size}), rank(sidecar.socket_path()) {
    rank.options.world_size = world_size;
    rank.limits = testing::kQuick;
    job_folder = open_job_folder(real_file_system(), {.root = root.path(), .job = make_job(), .nonce = "abc"})->path;
    sidecar.job_folder = job_folder;
    for (std::size_t i = 0; i < matrix.size(); ++i) matrix[i] = static_cast<float>(i);
    device.bytes().replace(0, 17, "bytes on a device");
    functions = device.functions();
  }
  ~EveryKind() override {
    sidecar.die();
    sidecar.control.release(GateOrder::stop);
    if (restored.valid()) restored.wait();
  }

  // A transposed view of `matrix`, 17 bytes on a device, one tensor that nobody saves, and a device
  // tensor that changes in the forward pass.
  void register_all() {
    rk_tensor view{.struct_size = sizeof(rk_tensor),
                   .name = "view",
                   .data = matrix.data(),
                   .dtype = RK_F32,
                   .rank = 2,
                   .shape = {3, 2},
                   .stride = {1, 3}};
    ASSERT_EQ(rank.session->add_tensor(view), RK_OK) << last_error();
    view.name = "cache";
    view.written_in = RK_DERIVED;
    ASSERT_EQ(rank.session->add_tensor(view), RK_OK) << last_error();
    const rk_tensor there{.struct_size = sizeof(rk_tensor),
                          .name = "there",
                          .data = device.at(0),
                          .memory = &functions,
                          .dtype = RK_U8,
                          .rank = 1,
                          .shape = {17}};
    ASSERT_EQ(rank.session->add_tensor(there), RK_OK) << last_error();
    functions = {};  // copied
    ASSERT_EQ(rank.session->add_state("loader", 64, {VariableState::save, &loader}, {VariableState::load, &loader}),
              RK_OK)
        << last_error();
    ASSERT_EQ(rank.session->add_cursor(&cursor), RK_OK) << last_error();
  }
  // To the point at which the rank waits for an offer.
  void open_and_register() {
    restored = std::async(std::launch::async, [&] {
      if (Done done = rank.open(); !done) throw std::runtime_error(done.error().message);
      register_all();
      const rk_status status = rank.session->restore(rank.position);
      return Failure{status, status == RK_OK ? "" : last_error()};
    });
    sidecar.welcome();
    registered = sidecar.expect<RegisteredMessage>("registered");
  }
  void start() {
    open_and_register();
    sidecar.send(OfferMessage{});
    sidecar.expect<LoadedMessage>("loaded");
    sidecar.attempt = 1;
    sidecar.send(TakeMessage{.attempt = 1, .path = "", .step = 0, .manifest_hash = ""});
    const Failure failure = restored.get();
    ASSERT_EQ(failure.status, RK_OK) << failure.message;
  }
  rk_status step(std::uint64_t number) {
    if (const rk_status status = rank.session->step_begin(number); status != RK_OK) return status;
    if (const rk_status status = rank.session->update_begin(); status != RK_OK) return status;
    cursor.samples += 128;
    if (const rk_status status = rank.session->update_end(); status != RK_OK) return status;
    return rank.session->step_end();
  }
  WriteMessage order(std::vector<PiecePlan> pieces) {
    const std::string path =
        *create_checkpoint_folder(real_file_system(), job_folder, {.attempt = 1, .step = 1, .nonce = "abc"});
    return {.term = 5,
            .hold = sidecar.control.hold(),
            .step = 1,
            .path = path,
            .file = "rank-0.safetensors",
            .pieces = std::move(pieces)};
  }
  template <typename Value>
  static std::string bytes_of(const Value& value) {
    return std::string(reinterpret_cast<const char*>(&value), sizeof value);
  }
  static std::string cursor_bytes(std::uint64_t epoch, std::uint64_t samples) {
    return bytes_of(epoch) + bytes_of(samples);
  }

  std::future<Failure> restored;
  TemporaryFolder root;
  ScriptedSidecar sidecar;
  Rank rank;
  std::string job_folder;
  RegisteredMessage registered;
  std::array<float, 6> matrix{};
  FakeDevice device{64};
  rk_memory functions;
  VariableState loader{.value = "epoch 1"};
  rk_cursor cursor{.struct_size = sizeof(rk_cursor), .epoch = 2, .samples = 0, .reserved = {}};
};

}  // namespace rekindle::runtime::testing
