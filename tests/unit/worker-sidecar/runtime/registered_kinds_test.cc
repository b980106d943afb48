// With a sidecar: what each kind of registered memory and state is in a write order and in the
// slot.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/format.h"
#include "tests/unit/worker-sidecar/runtime/every_kind.h"

namespace rekindle::runtime {
namespace {

using testing::EveryKind;
using ::testing::HasSubstr;

TEST_F(EveryKind, IsToldToTheSidecarWithoutWhatIsDerived) {
  start();
  EXPECT_EQ(registered.layout,
            (Layout{{whole_tensor("view", Dtype::f32, {3, 2}), whole_tensor("there", Dtype::u8, {17})}}));
  EXPECT_EQ(registered.states, (std::vector<StateDescription>{{.name = "loader", .bytes = 64, .variable = true},
                                                              {"rekindle.cursor", 16}}));
}

TEST_F(EveryKind, AWriteOrderGathersViewsAndFetchesFromDevices) {
  start();
  ASSERT_EQ(step(1), RK_OK);
  sidecar.send(order({{"view", 1, 3}, {"there", 6, 17}}));
  const auto report = sidecar.expect<WrittenMessage>("written");
  const std::string bytes = read_bytes(format("{}/a1-s1-abc/rank-0.safetensors", job_folder));
  const auto value = [&](std::size_t i) {
    const WrittenEntry& entry = report.written.entries[i];
    return bytes.substr(entry.begin_byte, entry.end_byte - entry.begin_byte);
  };
  EXPECT_EQ(value(0), bytes_of(std::array<float, 4>{1, 4, 2, 5}));
  EXPECT_EQ(value(1), "on a device");
}

TEST_F(EveryKind, ACopyThatFailsFailsTheSaveAndNothingElse) {
  start();
  ASSERT_EQ(step(1), RK_OK);
  device.copy_answer = 700;
  sidecar.send(order({{"there", 0, 17}}));
  const auto failed = sidecar.expect<WriteFailedMessage>("write_failed");
  EXPECT_THAT(failed.error.message,
              HasSubstr("tensor 'there' cannot be copied from its device: rk_memory.copy_out returned 700"));
  EXPECT_FALSE(std::filesystem::exists(job_folder + "/a1-s1-abc/rank-0.safetensors"));
  sidecar.control.release(GateOrder::go_on);
  device.copy_answer = 0;
  EXPECT_EQ(step(2), RK_OK);
}

TEST_F(EveryKind, AnUpdateBeginsWhenTheDeviceIsDoneAndIsCommittedWhenItIsDoneAgain) {
  start();
  ASSERT_EQ(rank.session->step_begin(1), RK_OK);
  device.enqueue([](std::string& bytes) { bytes[0] = 'g'; });
  ASSERT_EQ(rank.session->update_begin(), RK_OK);
  EXPECT_EQ(device.bytes()[0], 'g') << "gradients are complete";
  device.enqueue([](std::string& bytes) { bytes[0] = 'U'; });
  ASSERT_EQ(rank.session->update_end(), RK_OK);
  EXPECT_EQ(device.bytes()[0], 'U') << "the update is complete";
}

TEST_F(EveryKind, WorkThatFailedOnTheDeviceMakesNoUpdate) {
  start();
  ASSERT_EQ(rank.session->step_begin(1), RK_OK);
  device.wait_answer = 719;
  EXPECT_EQ(rank.session->update_begin(), RK_ERROR_STATE);
  EXPECT_THAT(
      last_error(),
      HasSubstr(
          "rk_update_begin after step 0: work that was enqueued on a device has failed (rk_memory.wait returned 719)"));
  EXPECT_EQ(sidecar.control.word().phase, RankPhase::computing) << "the gate was not passed";
  EXPECT_EQ(rank.session->update_end(), RK_ERROR_STATE);
  device.wait_answer = 0;
  EXPECT_EQ(rank.session->update_begin(), RK_OK) << "or the program tries the step again";
}

TEST_F(EveryKind, AnUpdateThatFailsOnTheDeviceIsNotCommitted) {
  start();
  ASSERT_EQ(rank.session->step_begin(1), RK_OK);
  ASSERT_EQ(rank.session->update_begin(), RK_OK);
  device.wait_answer = 719;
  EXPECT_EQ(rank.session->update_end(), RK_ERROR_STATE);
  EXPECT_EQ(sidecar.control.word().step, 0u);
  EXPECT_FALSE(is_clean(sidecar.control.word()));
  EXPECT_EQ(rank.session->close(), 1);
}

TEST_F(EveryKind, ASkippedUpdateIsCommittedWhenTheDeviceIsDone) {
  start();
  ASSERT_EQ(rank.session->step_begin(1), RK_OK);
  device.enqueue([](std::string& bytes) { bytes[0] = 'S'; });
  ASSERT_EQ(rank.session->update_skip(), RK_OK);
  EXPECT_EQ(device.bytes()[0], 'S');
  ASSERT_EQ(rank.session->step_end(), RK_OK);
  ASSERT_EQ(rank.session->step_begin(2), RK_OK);
  device.wait_answer = 719;
  EXPECT_EQ(rank.session->update_skip(), RK_ERROR_STATE);
  EXPECT_THAT(last_error(), HasSubstr("rk_update_skip after step 1"));
  EXPECT_EQ(sidecar.control.word().step, 1u);
}

TEST_F(EveryKind, SwappedWeightsAreBackWhenTheDeviceHasPutThemBack) {
  start();
  ASSERT_EQ(step(1), RK_OK);
  ASSERT_EQ(rank.session->set_phase(RK_SWAPPED), RK_OK);
  device.enqueue([](std::string& bytes) { bytes[0] = 'B'; });
  ASSERT_EQ(rank.session->set_phase(RK_TRAINING), RK_OK);
  EXPECT_EQ(device.bytes()[0], 'B');
}

TEST_F(EveryKind, ADeviceTensorWrittenAnywhereIsCapturedWithTheCommit) {
  start();
  functions = device.functions();
  rk_tensor scales{.struct_size = sizeof(rk_tensor),
                   .name = "scales",
                   .data = device.at(32),
                   .memory = &functions,
                   .dtype = RK_U8,
                   .rank = 1,
                   .shape = {4}};
  scales.written_in = RK_ANYWHERE;
  ASSERT_EQ(rank.session->add_tensor(scales), RK_OK) << last_error();
  sidecar.expect<RegisteredMessage>("registered");
  device.bytes().replace(32, 4, "then");
  ASSERT_EQ(step(1), RK_OK);
  device.bytes().replace(32, 4, "now!");
  sidecar.send(order({{"scales", 0, 4}}));
  const auto report = sidecar.expect<WrittenMessage>("written");
  EXPECT_EQ(read_bytes(job_folder + "/a1-s1-abc/rank-0.safetensors").substr(report.written.entries[0].begin_byte),
            "then");
}

TEST_F(EveryKind, WhatCouldNotBeCapturedMakesTheRankNoSourceOfThatTensor) {
  start();
  functions = device.functions();
  rk_tensor scales{.struct_size = sizeof(rk_tensor),
                   .name = "scales",
                   .data = device.at(32),
                   .memory = &functions,
                   .dtype = RK_U8,
                   .rank = 1,
                   .shape = {4}};
  scales.written_in = RK_ANYWHERE;
  ASSERT_EQ(rank.session->add_tensor(scales), RK_OK) << last_error();
  sidecar.expect<RegisteredMessage>("registered");
  device.copy_answer = 1;
  ASSERT_EQ(step(1), RK_OK) << "the commit stands";
  EXPECT_THAT(last_error(), HasSubstr("tensor 'scales' cannot be copied"));
  device.copy_answer = 0;
  sidecar.send(order({{"scales", 0, 4}}));
  EXPECT_THAT(sidecar.expect<WriteFailedMessage>("write_failed").error.message,
              HasSubstr("'scales', which changes anywhere in a step, could not be copied"));
}

// Late changes wait for devices first: what fails or hangs there has changed nothing.
class LateChange : public EveryKind {
 protected:
  // One byte beside what is registered at the start.
  rk_tensor scale() {
    functions = device.functions();
    return {.struct_size = sizeof(rk_tensor),
            .name = "scale",
            .data = device.at(32),
            .memory = &functions,
            .dtype = RK_U8,
            .rank = 1,
            .shape = {1},
            .written_in = RK_ANYWHERE};
  }
  std::string written(std::vector<PiecePlan> pieces) {
    sidecar.send(order(std::move(pieces)));
    const auto report = sidecar.expect<WrittenMessage>("written");
    const WrittenEntry& entry = report.written.entries[0];
    return read_bytes(job_folder + "/a1-s1-abc/rank-0.safetensors")
        .substr(entry.begin_byte, entry.end_byte - entry.begin_byte);
  }
};

TEST_F(LateChange, ATensorIsNotRegisteredWhereItsDeviceHasFailed) {
  start();
  ASSERT_EQ(step(1), RK_OK);
  const RankStatus before = sidecar.control.word();
  device.wait_answer = 719;
  EXPECT_EQ(rank.session->add_tensor(scale()), RK_ERROR_STATE);
  EXPECT_THAT(last_error(), HasSubstr("rk_register after step 1"));
  EXPECT_EQ(sidecar.control.word(), before) << "nothing was captured";
  device.wait_answer = 0;
  EXPECT_EQ(rank.session->add_tensor(scale()), RK_OK) << last_error();
}

TEST_F(LateChange, ATensorStaysWhereItWasWhereItsDeviceHasFailed) {
  start();
  ASSERT_EQ(step(1), RK_OK);
  device.bytes().replace(40, 17, "somewhere else...");
  device.wait_answer = 719;
  EXPECT_EQ(rank.session->move_tensor("there", device.at(40)), RK_ERROR_STATE);
  EXPECT_THAT(last_error(), HasSubstr("rk_move after step 1"));
  device.wait_answer = 0;
  EXPECT_EQ(written({{"there", 0, 17}}), "bytes on a device");
}

TEST_F(LateChange, ATensorStaysRegisteredWhereItsDeviceHasFailed) {
  start();
  ASSERT_EQ(step(1), RK_OK);
  device.wait_answer = 719;
  EXPECT_EQ(rank.session->remove_tensor("there"), RK_ERROR_STATE);
  EXPECT_THAT(last_error(), HasSubstr("rk_unregister after step 1"));
  device.wait_answer = 0;
  EXPECT_EQ(written({{"there", 0, 17}}), "bytes on a device");
}

TEST_F(LateChange, ADeviceThatHangsKeepsNoBreakpointFromBeingWritten) {
  start();
  ASSERT_EQ(step(1), RK_OK);
  std::promise<void> hangs;
  std::promise<void> comes_back;
  device.enqueue([&](std::string&) {
    hangs.set_value();
    comes_back.get_future().wait();
  });
  std::future<rk_status> registering =
      std::async(std::launch::async, [&] { return rank.session->add_tensor(scale()); });
  hangs.get_future().wait();
  EXPECT_EQ(written({{"there", 0, 17}}), "bytes on a device");
  sidecar.control.release(GateOrder::go_on);
  comes_back.set_value();
  EXPECT_EQ(registering.get(), RK_OK);
}

TEST_F(EveryKind, TheSlotHasTheStateAsLongAsItIsAndTheCursor) {
  start();
  ASSERT_EQ(step(1), RK_OK);
  loader.value = "a longer state";
  ASSERT_EQ(step(2), RK_OK);
  const auto slot = sidecar.control.slot(sidecar.control.word().slot);
  EXPECT_EQ(slot.fault, "");
  EXPECT_EQ(slot.values, (std::vector<std::pair<std::string, std::string>>{{"rekindle.cursor", cursor_bytes(2, 256)},
                                                                           {"loader", "a longer state"}}));
}

TEST_F(EveryKind, ASaveFunctionThatFailsLeavesTheCommitAndASentence) {
  start();
  loader.save_answer = -3;
  ASSERT_EQ(rank.session->step_begin(1), RK_OK);
  ASSERT_EQ(rank.session->update_begin(), RK_OK);
  EXPECT_EQ(rank.session->update_end(), RK_OK);
  EXPECT_THAT(last_error(), HasSubstr("the save function of state 'loader' returned -3"));
  const auto slot = sidecar.control.slot(sidecar.control.word().slot);
  EXPECT_EQ(slot.step, 1u);
  EXPECT_EQ(slot.values.size(), 1u) << "the state that failed is not in the slot";
}

}  // namespace
}  // namespace rekindle::runtime
