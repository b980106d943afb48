#include "worker-sidecar/runtime/src/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "common/base/format.h"
#include "tests/unit/worker-sidecar/runtime/rank.h"

namespace rekindle::runtime {
namespace {

using ::testing::HasSubstr;
using testing::Rank;
using testing::ScriptedSidecar;
using Values = std::vector<std::pair<std::string, std::string>>;

std::string bytes_of(std::uint64_t value) { return std::string(reinterpret_cast<const char*>(&value), sizeof value); }

// The calls themselves, without a sidecar: what fits the moment and what does not.
class SessionAlone : public ::testing::Test {
 protected:
  SessionAlone() : rank("") {}
  void expect_refused(rk_status got, rk_status status, const char* part) {
    EXPECT_EQ(got, status);
    EXPECT_THAT(last_error(), HasSubstr(part));
  }
  Rank rank;
};

TEST_F(SessionAlone, StepsCountFromOne) {
  rank.start();
  EXPECT_EQ(rank.position.step, 0u);
  EXPECT_EQ(rank.position.path, nullptr);
  for (int step = 1; step <= 3; ++step) EXPECT_EQ(rank.one_step(), RK_OK);
  EXPECT_EQ(rank.session->close(), 0);
}

TEST_F(SessionAlone, AStepThatIsNotTheNextIsRefusedWithBothNumbers) {
  rank.start();
  ASSERT_EQ(rank.one_step(), RK_OK);
  expect_refused(rank.session->step_begin(1), RK_ERROR_ARGUMENT, "step 1 is committed, so the next one is 2");
  expect_refused(rank.session->step_begin(3), RK_ERROR_ARGUMENT, "rk_step_begin(3)");
}

TEST_F(SessionAlone, CallsBeforeRestoreAreToldToRestore) {
  ASSERT_TRUE(rank.open());
  expect_refused(rank.session->step_begin(1), RK_ERROR_STATE, "before rk_restore");
  expect_refused(rank.session->update_begin(), RK_ERROR_STATE, "before rk_restore");
  expect_refused(rank.session->checkpoint(), RK_ERROR_STATE, "before rk_restore");
  expect_refused(rank.session->set_phase(RK_EVALUATING), RK_ERROR_STATE, "before rk_restore");
  expect_refused(rank.session->collective_failed("x"), RK_ERROR_STATE, "before rk_restore");
  EXPECT_EQ(rank.session->close(), 0);
}

TEST_F(SessionAlone, TheBracketIsKeptInOrder) {
  rank.start();
  Session& session = *rank.session;
  expect_refused(session.update_begin(), RK_ERROR_STATE, "rk_step_begin comes first");
  expect_refused(session.update_end(), RK_ERROR_STATE, "without rk_update_begin");
  expect_refused(session.step_end(), RK_ERROR_STATE, "rk_step_begin comes first");
  ASSERT_EQ(session.step_begin(1), RK_OK);
  EXPECT_EQ(session.step_begin(1), RK_OK) << "a batch that is rejected before its update is tried again";
  expect_refused(session.step_end(), RK_ERROR_STATE, "has to be made first");
  expect_refused(session.checkpoint(), RK_ERROR_STATE, "inside a step");
  ASSERT_EQ(session.update_begin(), RK_OK);
  expect_refused(session.update_begin(), RK_ERROR_STATE, "rk_update_end comes first");
  expect_refused(session.step_begin(2), RK_ERROR_STATE, "rk_update_end comes first");
  expect_refused(session.collective_failed("x"), RK_ERROR_STATE, "inside the update bracket");
  expect_refused(session.set_phase(RK_EVALUATING), RK_ERROR_STATE, "inside the update bracket");
  ASSERT_EQ(session.update_end(), RK_OK);
  expect_refused(session.update_begin(), RK_ERROR_STATE, "one update a step");
  expect_refused(session.update_skip(), RK_ERROR_STATE, "one update a step");
  EXPECT_EQ(session.step_begin(2), RK_OK) << "rk_step_end may be left out";
}

TEST_F(SessionAlone, RestoreIsCalledOnce) {
  rank.start();
  expect_refused(rank.session->restore(rank.position), RK_ERROR_STATE, "called once");
}

TEST_F(SessionAlone, APositionWithoutStructSizeIsRefusedAndUntouched) {
  ASSERT_TRUE(rank.open());
  rank.position.struct_size = 0;
  rank.position.step = 99;
  expect_refused(rank.session->restore(rank.position), RK_ERROR_ARGUMENT, "rk_position.struct_size is 0");
  EXPECT_EQ(rank.position.step, 99u);
}

TEST_F(SessionAlone, AnOlderCallersPositionIsFilledAsFarAsItGoes) {
  ASSERT_TRUE(rank.open());
  rank.position.struct_size = offsetof(rk_position, path);
  rank.position.flags = 77;
  ASSERT_EQ(rank.session->restore(rank.position), RK_OK);
  EXPECT_EQ(rank.position.attempt, 1u);
  EXPECT_EQ(rank.position.flags, 77u);
}

TEST_F(SessionAlone, ASkippedUpdateCommitsTheStep) {
  rank.start();
  ASSERT_EQ(rank.session->step_begin(1), RK_OK);
  ASSERT_EQ(rank.session->update_skip(), RK_OK);
  ASSERT_EQ(rank.session->step_end(), RK_OK);
  EXPECT_EQ(rank.session->step_begin(2), RK_OK);
}

TEST_F(SessionAlone, AFailedCollectiveEndsTheRunWith143) {
  rank.start();
  ASSERT_EQ(rank.session->step_begin(1), RK_OK);
  EXPECT_EQ(rank.session->collective_failed(nullptr), RK_STOP);
  EXPECT_EQ(rank.session->step_begin(1), RK_STOP);
  EXPECT_EQ(rank.session->update_begin(), RK_STOP);
  expect_refused(rank.session->update_end(), RK_ERROR_STATE, "without rk_update_begin");
  EXPECT_EQ(rank.session->step_end(), RK_STOP);
  EXPECT_EQ(rank.session->close(), 143);
}

TEST_F(SessionAlone, ClosingInsideTheBracketIsNoSuccess) {
  rank.start();
  ASSERT_EQ(rank.session->step_begin(1), RK_OK);
  ASSERT_EQ(rank.session->update_begin(), RK_OK);
  EXPECT_EQ(rank.session->close(), 1);
}

TEST_F(SessionAlone, TensorsAreNotChangedInTheMiddleOfAStep) {
  rank.start();
  ASSERT_EQ(rank.session->step_begin(1), RK_OK);
  std::array<float, 4> more{};
  expect_refused(rank.session->add_tensor(testing::vector_of_4("late", more.data())), RK_ERROR_STATE,
                 "rk_register inside a step");
  expect_refused(rank.session->add_state("late", more.data(), 4), RK_ERROR_STATE, "rk_register_state inside a step");
  expect_refused(rank.session->move_tensor("weights", more.data()), RK_ERROR_STATE, "rk_move inside a step");
  expect_refused(rank.session->remove_tensor("weights"), RK_ERROR_STATE, "rk_unregister inside a step");
}

// With a sidecar: what the words in the control block say at each moment.
class SessionAtSidecar : public ::testing::Test {
 protected:
  SessionAtSidecar() : rank(sidecar.socket_path()) {}
  ~SessionAtSidecar() override { sidecar.control.release(GateOrder::stop); }

  void start() {
    auto started = std::async(std::launch::async, [&] { rank.start(); });
    sidecar.welcome();
    registered = sidecar.begin();
    started.get();
  }
  RankStatus word() const { return sidecar.control.word(); }

  ScriptedSidecar sidecar;
  Rank rank;
  RegisteredMessage registered;
};

TEST_F(SessionAtSidecar, OpeningSaysHelloWithAHandleOnTheProcess) {
  auto started = std::async(std::launch::async, [&] { rank.start(); });
  const HelloMessage hello = sidecar.welcome();
  EXPECT_EQ(hello.rank, 0u);
  EXPECT_EQ(hello.world_size, 1u);
  EXPECT_EQ(hello.pid, ::getpid());
  EXPECT_GE(hello.state_bytes_max, 65536u);
  EXPECT_EQ(hello.library_version, rk_version());
  EXPECT_GE(sidecar.passed_descriptor(), 0) << "a pidfd comes with hello";
  EXPECT_EQ(sidecar.last_attempt_seen, 0u);
  sidecar.begin();
  started.get();
}

TEST_F(SessionAtSidecar, RegisteredTellsTensorsAndStates) {
  start();
  ASSERT_EQ(registered.layout.tensors.size(), 2u);
  EXPECT_EQ(registered.layout.tensors[0], whole_tensor("weights", Dtype::f32, {4}));
  EXPECT_EQ(registered.layout.tensors[1], whole_tensor("statistics", Dtype::f32, {4}, WrittenIn::anywhere));
  EXPECT_EQ(registered.states, (std::vector<StateDescription>{{"counter", 8}}));
  EXPECT_FALSE(registered.late);
}

TEST_F(SessionAtSidecar, TheWordFollowsTheStep) {
  start();
  EXPECT_EQ(sidecar.control->attempt.load(), 1u);
  EXPECT_EQ(word().phase, RankPhase::between);
  ASSERT_EQ(rank.session->step_begin(1), RK_OK);
  EXPECT_EQ(word().phase, RankPhase::computing);
  ASSERT_EQ(rank.session->set_phase(RK_COMPILING), RK_OK);
  EXPECT_EQ(word().phase, RankPhase::compiling);
  ASSERT_EQ(rank.session->set_phase(RK_TRAINING), RK_OK);
  EXPECT_EQ(word().phase, RankPhase::computing);
  ASSERT_EQ(rank.session->update_begin(), RK_OK);
  EXPECT_EQ(word().phase, RankPhase::updating);
  const std::uint8_t slot_before = word().slot;
  ASSERT_EQ(rank.session->update_end(), RK_OK);
  EXPECT_EQ(word(), (RankStatus{1, RankPhase::between, static_cast<std::uint8_t>(slot_before ^ 1)}));
  ASSERT_EQ(rank.session->set_phase(RK_EVALUATING), RK_OK);
  EXPECT_EQ(word().phase, RankPhase::evaluating);
  ASSERT_EQ(rank.session->step_end(), RK_OK);
  EXPECT_EQ(word().phase, RankPhase::evaluating) << "rk_step_end stores nothing new";
  ASSERT_EQ(rank.session->set_phase(RK_WAITING_FOR_DATA), RK_OK);
  EXPECT_EQ(word().phase, RankPhase::waiting_for_data);
  ASSERT_EQ(rank.session->set_phase(RK_TRAINING), RK_OK);
  EXPECT_EQ(word().phase, RankPhase::between);
}

TEST_F(SessionAtSidecar, EachCommitIsInTheSlotThatItsWordNames) {
  start();
  for (std::uint64_t step = 1; step <= 5; ++step) {
    ASSERT_EQ(rank.one_step(), RK_OK);
    const auto slot = sidecar.control.slot(word().slot);
    EXPECT_EQ(slot.fault, "");
    EXPECT_EQ(slot.step, step);
    EXPECT_EQ(slot.attempt, 1u);
    ASSERT_EQ(slot.values.size(), 2u);
    EXPECT_EQ(slot.values[1], (std::pair<std::string, std::string>{"counter", bytes_of(step)}));
  }
}

TEST_F(SessionAtSidecar, WhatAProgramFillsInAfterAFirstStartIsInTheSlotWhenItsStepBegins) {
  start();
  rank.counter = 41;
  ASSERT_EQ(rank.session->step_begin(1), RK_OK);
  const auto slot = sidecar.control.slot(word().slot);
  EXPECT_EQ(slot.step, 0u);
  EXPECT_EQ(slot.values[1].second, bytes_of(41));
}

TEST_F(SessionAtSidecar, ALateTensorIsToldAndCaptured) {
  start();
  ASSERT_EQ(rank.one_step(), RK_OK);
  std::array<float, 4> moments{1, 2, 3, 4};
  ASSERT_EQ(rank.session->add_tensor(testing::vector_of_4("moments", moments.data(), RK_ANYWHERE)), RK_OK);
  const auto announced = sidecar.expect<RegisteredMessage>("registered");
  EXPECT_TRUE(announced.late);
  EXPECT_EQ(announced.layout.tensors.back().name, "moments");
  EXPECT_EQ(sidecar.last_attempt_seen, 1u);
  const auto slot = sidecar.control.slot(word().slot);
  EXPECT_EQ(slot.step, 1u);
  EXPECT_EQ(slot.values.back().first, "moments");
  EXPECT_EQ(sidecar.control.slot(word().slot ^ 1).values.size(), 2u) << "the other slot keeps what it held";
  ASSERT_EQ(rank.session->remove_tensor("moments"), RK_OK);
  EXPECT_EQ(sidecar.expect<RegisteredMessage>("registered").layout.tensors.size(), 2u);
}

TEST_F(SessionAtSidecar, ManyLateTensorsAreToldTogether) {
  start();
  ASSERT_EQ(rank.one_step(), RK_OK);
  constexpr std::size_t kMany = 5'000;
  std::array<float, 4> moments{};
  for (std::size_t i = 0; i < kMany; ++i) {
    ASSERT_EQ(rank.session->add_tensor(testing::vector_of_4((format("moments.{}", i)).c_str(), moments.data())), RK_OK);
  }
  // Nobody has read yet: one description for each tensor would fill the socket with the first fifty
  // or so.
  std::size_t messages = 0;
  std::size_t announced = 0;
  while (announced < kMany + 2) {
    announced = sidecar.expect<RegisteredMessage>("registered").layout.tensors.size();
    ASSERT_LT(++messages, 500u);
  }
}

TEST_F(SessionAtSidecar, ATensorThatMovedIsCapturedFromItsNewAddress) {
  start();
  std::array<float, 4> elsewhere{9, 9, 9, 9};
  ASSERT_EQ(rank.session->step_begin(1), RK_OK);
  ASSERT_EQ(rank.session->update_begin(), RK_OK);
  ASSERT_EQ(rank.session->move_tensor("statistics", elsewhere.data()), RK_OK) << "inside the bracket";
  ASSERT_EQ(rank.session->update_end(), RK_OK);
  EXPECT_EQ(sidecar.control.slot(word().slot).values[0].second,
            std::string(reinterpret_cast<char*>(elsewhere.data()), sizeof elsewhere));
  ASSERT_EQ(rank.session->move_tensor("statistics", rank.statistics.data()), RK_OK) << "between steps";
}

TEST_F(SessionAtSidecar, MemoryIsNotGivenBackDuringAHold) {
  start();
  sidecar.control.hold();
  auto removing = std::async(std::launch::async, [&] { return rank.session->remove_tensor("weights"); });
  sidecar.control.wait_for_phase(RankPhase::waiting_at_step);
  sidecar.control.release(GateOrder::go_on);
  EXPECT_EQ(removing.get(), RK_OK);
}

TEST_F(SessionAtSidecar, AHoldStopsTrainingAndGoOnContinuesIt) {
  start();
  auto trained = std::async(std::launch::async, [&] { return rank.train_until_stopped(); });
  testing::wait_until([&] { return word().step >= 10; }, "ten steps are made");
  sidecar.control.hold();
  testing::wait_until(
      [&] { return word().phase == RankPhase::waiting_at_step || word().phase == RankPhase::waiting_at_update; },
      "the rank waits at a gate");
  const std::uint64_t step = word().step;
  EXPECT_EQ(rank.weights[3], static_cast<float>(step));
  sidecar.control.release(GateOrder::go_on);
  testing::wait_until([&] { return word().step > step + 10; }, "training goes on");
  sidecar.control.hold();
  sidecar.control.release(GateOrder::stop);
  EXPECT_EQ(sidecar.expect<FinishedMessage>("finished").exit_code, 143);
  EXPECT_EQ(trained.get(), 143);
}

TEST_F(SessionAtSidecar, ASkippedUpdateWaitsForAHoldLikeAnUpdate) {
  start();
  ASSERT_EQ(rank.one_step(), RK_OK);
  ASSERT_EQ(rank.session->step_begin(2), RK_OK);
  sidecar.control.hold();
  auto skipping = std::async(std::launch::async, [&] { return rank.session->update_skip(); });
  sidecar.control.wait_for_phase(RankPhase::waiting_at_update);
  EXPECT_EQ(word().step, 1u);
  sidecar.control.release(GateOrder::go_on);
  EXPECT_EQ(skipping.get(), RK_OK);
  EXPECT_EQ(word().step, 2u);
}

TEST_F(SessionAtSidecar, ASkippedUpdateIsNotCommittedByARankThatIsToStop) {
  start();
  ASSERT_EQ(rank.one_step(), RK_OK);
  ASSERT_EQ(rank.session->step_begin(2), RK_OK);
  sidecar.control.hold();
  sidecar.control.release(GateOrder::stop);
  EXPECT_EQ(rank.session->update_skip(), RK_STOP);
  EXPECT_EQ(word().step, 1u);
}

TEST_F(SessionAtSidecar, ClosingIsAGateAndSaysGoodbye) {
  start();
  ASSERT_EQ(rank.one_step(), RK_OK);
  sidecar.control.hold();
  auto closed = std::async(std::launch::async, [&] { return rank.session->close(); });
  sidecar.control.wait_for_phase(RankPhase::waiting_at_step);
  sidecar.control.release(GateOrder::go_on);
  EXPECT_EQ(sidecar.expect<FinishedMessage>("finished").exit_code, 0);
  EXPECT_TRUE(sidecar.sees_end());
  EXPECT_EQ(closed.get(), 0);
  EXPECT_EQ(word().phase, RankPhase::finished);
  EXPECT_EQ(sidecar.control->owner.load() & kFutexOwnerDied, 0u) << "an orderly end is no death";
}

TEST_F(SessionAtSidecar, AFailedCollectiveIsReportedAndBlocksUntilTheOrder) {
  start();
  ASSERT_EQ(rank.session->step_begin(1), RK_OK);
  auto answered = std::async(std::launch::async, [&] { return rank.session->collective_failed("ring broken"); });
  EXPECT_EQ(sidecar.expect<CollectiveFailedMessage>("collective_failed"), (CollectiveFailedMessage{0, "ring broken"}));
  EXPECT_EQ(word().phase, RankPhase::collective_failed);
  EXPECT_TRUE(is_clean(word()));
  sidecar.control.hold();
  EXPECT_EQ(answered.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  sidecar.control.release(GateOrder::stop);
  EXPECT_EQ(answered.get(), RK_STOP);
}

TEST_F(SessionAtSidecar, ACheckpointIsAskedForWithoutWaiting) {
  start();
  ASSERT_EQ(rank.one_step(), RK_OK);
  ASSERT_EQ(rank.session->checkpoint(), RK_OK);
  EXPECT_EQ(sidecar.expect<CheckpointWantedMessage>("checkpoint_wanted").step, 1u);
}

// The final state was lost silently: rk_close freed the memory that was still to be read.
TEST_F(SessionAtSidecar, CloseWaitsForTheCheckpointOfItsLastStep) {
  start();
  ASSERT_EQ(rank.one_step(), RK_OK);
  ASSERT_EQ(rank.session->checkpoint(), RK_OK);
  sidecar.expect<CheckpointWantedMessage>("checkpoint_wanted");
  auto closed = std::async(std::launch::async, [&] { return rank.session->close(); });
  sidecar.send(CheckpointDoneMessage{.requested = 1, .outcome = HookOutcome::durable, .step = 1, .path = "a1-s1-x"});
  EXPECT_EQ(closed.get(), 0);
}

TEST_F(SessionAtSidecar, CloseSaysWhenItsLastStepIsNotDurable) {
  start();
  ASSERT_EQ(rank.one_step(), RK_OK);
  ASSERT_EQ(rank.session->checkpoint(), RK_OK);
  sidecar.expect<CheckpointWantedMessage>("checkpoint_wanted");
  auto closed = std::async(std::launch::async, [&] {
    const int code = rank.session->close();
    EXPECT_THAT(last_error(), HasSubstr("step 1 is not durable, which rk_checkpoint asked for: the volume is full"));
    return code;
  });
  sidecar.send(CheckpointDoneMessage{.requested = 1, .message = "the volume is full"});
  EXPECT_EQ(closed.get(), 1);
}

TEST_F(SessionAtSidecar, ACheckpointThatFailedStepsAgoIsNoReasonToFail) {
  start();
  ASSERT_EQ(rank.one_step(), RK_OK);
  ASSERT_EQ(rank.session->checkpoint(), RK_OK);
  sidecar.expect<CheckpointWantedMessage>("checkpoint_wanted");
  ASSERT_EQ(rank.one_step(), RK_OK);
  auto closed = std::async(std::launch::async, [&] { return rank.session->close(); });
  sidecar.send(CheckpointDoneMessage{.requested = 1, .message = "the volume is full"});
  EXPECT_EQ(closed.get(), 0);
}

TEST_F(SessionAtSidecar, AParkedRankThatMustNotBeEndedLeavesItsGateWithStop) {
  rank.options.never_exit = true;
  start();
  sidecar.control.hold();
  auto trained = std::async(std::launch::async, [&] { return rank.train_until_stopped(); });
  sidecar.control.wait_for_phase(RankPhase::waiting_at_step);
  sidecar.send(EndMessage{.exit_code = 143});
  EXPECT_EQ(trained.get(), 143);
}

TEST(ParkedRank, IsEndedByTheSidecarWhenItsContainerIs) {
  ScriptedSidecar sidecar;
  const pid_t child = ::fork();
  if (child == 0) {
    Rank rank(sidecar.socket_path());
    rank.start();
    rank.train_until_stopped();
    ::_exit(1);
  }
  sidecar.welcome();
  sidecar.begin();
  sidecar.control.hold();
  testing::wait_until(
      [&] {
        return sidecar.control.word().phase == RankPhase::waiting_at_step ||
               sidecar.control.word().phase == RankPhase::waiting_at_update;
      },
      "the rank is parked");
  sidecar.send(EndMessage{.exit_code = 143});
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 143);
}

TEST(KilledRank, LeavesItsStateOfTheLastCommitInTheSlotAndItsDeathInTheFutex) {
  ScriptedSidecar sidecar;
  const pid_t child = ::fork();
  if (child == 0) {
    Rank rank(sidecar.socket_path());
    rank.start();
    rank.train_until_stopped();
    ::_exit(1);
  }
  sidecar.welcome();
  sidecar.begin();
  testing::wait_until([&] { return sidecar.control.word().step >= 100; }, "a hundred steps are made");
  ASSERT_EQ(::kill(child, SIGKILL), 0);
  testing::wait_until([&] { return (sidecar.control->owner.load() & kFutexOwnerDied) != 0; },
                      "the kernel reports the death");
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  const RankStatus word = sidecar.control.word();
  const auto slot = sidecar.control.slot(word.slot);
  EXPECT_EQ(slot.fault, "");
  EXPECT_EQ(slot.step, word.step);
  EXPECT_EQ(slot.values[1].second, bytes_of(word.step));
}

}  // namespace
}  // namespace rekindle::runtime
