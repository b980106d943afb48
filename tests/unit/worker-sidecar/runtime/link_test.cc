// How a rank comes to its sidecar, what it does when it is refused, and how it outlives a restart
// of the sidecar.
#include "worker-sidecar/runtime/src/link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/worker-sidecar/runtime/rank.h"

namespace rekindle::runtime {
namespace {

using testing::ControlMemory;
using ::testing::HasSubstr;
using testing::Rank;
using testing::ScriptedSidecar;

class Opening : public ::testing::Test {
 protected:
  Opening() : rank(sidecar.socket_path()) { rank.options.open_time_max = std::chrono::seconds(20); }
  ~Opening() override {
    if (opened.valid()) opened.wait();
  }
  void open() {
    opened = std::async(std::launch::async, [&] { return rank.open(); });
  }
  Failure failure() {
    const Done done = opened.get();
    return done ? Failure{RK_OK, "it opened"} : done.error();
  }

  std::future<Done> opened;
  ScriptedSidecar sidecar;
  Rank rank;
};

TEST_F(Opening, WaitsForTheWholeJob) {
  open();
  sidecar.greet();
  EXPECT_EQ(opened.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  sidecar.send(WelcomeMessage{});
  EXPECT_TRUE(opened.get());
}

TEST_F(Opening, ARefusalIsPassedOnAsItIs) {
  open();
  sidecar.accept();
  sidecar.expect<HelloMessage>("hello");
  sidecar.send(RefusedMessage{{ErrorCode::already_exists, "another process has rank 0 already", Retry::no}});
  EXPECT_THAT(failure().message, HasSubstr("another process has rank 0 already"));
}

TEST_F(Opening, NobodyThereIsSaidWithTheSocketsName) {
  sidecar.stop_listening();
  rank.options.open_time_max = std::chrono::milliseconds(50);
  open();
  const Failure unanswered = failure();
  EXPECT_EQ(unanswered.status, RK_ERROR_UNAVAILABLE);
  EXPECT_THAT(unanswered.message, HasSubstr("no sidecar answered at " + sidecar.socket_path()));
  EXPECT_THAT(unanswered.message, HasSubstr("No such file or directory"));
}

TEST_F(Opening, OthersWhoDoNotComeAreToldFromASidecarThatIsAway) {
  rank.options.open_time_max = std::chrono::milliseconds(200);
  open();
  sidecar.greet();
  EXPECT_THAT(failure().message, HasSubstr("the rest of the 1 ranks did not come"));
}

TEST_F(Opening, ASidecarThatStartsLaterIsFound) {
  sidecar.stop_listening();
  open();
  EXPECT_EQ(opened.wait_for(std::chrono::milliseconds(20)), std::future_status::timeout);
  sidecar.listen();
  sidecar.welcome();
  EXPECT_TRUE(opened.get());
}

TEST_F(Opening, ABlockOfAnotherVersionFailsWithBothNumbers) {
  sidecar.control->version = 2;
  open();
  sidecar.greet();
  const Failure wrong = failure();
  EXPECT_EQ(wrong.status, RK_ERROR_VERSION);
  EXPECT_THAT(wrong.message, HasSubstr("version 2"));
}

TEST_F(Opening, ASidecarThatSpeaksNonsenseIsTriedAgain) {
  open();
  sidecar.accept();
  sidecar.expect<HelloMessage>("hello");
  sidecar.send_bytes("this is no frame, it is only long enough to be one");
  EXPECT_TRUE(sidecar.sees_end());
  sidecar.welcome();
  EXPECT_TRUE(opened.get());
}

TEST_F(Opening, AControlMessageWithoutItsBlockIsTriedAgain) {
  open();
  sidecar.accept();
  sidecar.expect<HelloMessage>("hello");
  sidecar.send(ControlMessage{.slot_bytes = 4096, .incarnation = 7, .checkpoint_dir = "/nowhere"});
  EXPECT_TRUE(sidecar.sees_end());
  sidecar.welcome();
  EXPECT_TRUE(opened.get());
}

class Restart : public ::testing::Test {
 protected:
  Restart() : rank(sidecar.socket_path()) {}
  ~Restart() override {
    sidecar.control.release(GateOrder::stop);
    if (training.valid()) training.wait();
  }
  void start() {
    auto started = std::async(std::launch::async, [&] { rank.start(); });
    sidecar.welcome();
    sidecar.begin(3);
    started.get();
  }
  void train() {
    training = std::async(std::launch::async, [&] { return rank.train_until_stopped(); });
  }
  std::uint64_t step() const { return sidecar.control.word().step; }

  std::future<int> training;
  ScriptedSidecar sidecar;
  Rank rank;
};

TEST_F(Restart, TrainingGoesOnWhileTheSidecarIsAwayAndItLearnsTheAttemptAndTheLayout) {
  start();
  train();
  sidecar.die();
  const std::uint64_t then = step();
  testing::wait_until([&] { return step() > then + 20; }, "training goes on");
  sidecar.listen();
  sidecar.greet();
  EXPECT_EQ(sidecar.last_attempt_seen, 3u);
  const auto registered = sidecar.expect<RegisteredMessage>("registered");
  EXPECT_TRUE(registered.late);
  EXPECT_EQ(registered.layout.tensors.size(), 2u);
  EXPECT_EQ(sidecar.control->owner.load() & kFutexOwnerDied, 0u) << "a sidecar's restart is not the death of a rank";
}

TEST_F(Restart, AHoldOutlivesItsSidecarAndTheNextOneDecides) {
  start();
  train();
  sidecar.control.hold();
  testing::wait_until(
      [&] {
        return sidecar.control.word().phase == RankPhase::waiting_at_step ||
               sidecar.control.word().phase == RankPhase::waiting_at_update;
      },
      "the rank waits");
  sidecar.die();
  const std::uint64_t then = step();
  sidecar.listen();
  sidecar.greet();
  EXPECT_EQ(step(), then);
  sidecar.control.release(GateOrder::go_on);
  testing::wait_until([&] { return step() > then; }, "training goes on");
}

TEST_F(Restart, AHeldGateOpensWhenNoSidecarComesBack) {
  rank.limits = testing::kQuick;
  start();
  sidecar.control.hold();
  train();
  sidecar.control.wait_for_phase(RankPhase::waiting_at_step);
  ::testing::internal::CaptureStderr();
  sidecar.die();
  testing::wait_until([&] { return step() > 20; }, "training goes on without protection");
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("training goes on WITHOUT protection"));
  EXPECT_THAT(said, HasSubstr(sidecar.socket_path()));
  // It comes back after all: its next hold counts.
  sidecar.listen();
  sidecar.greet();
  sidecar.control.hold();
  testing::wait_until(
      [&] {
        return sidecar.control.word().phase == RankPhase::waiting_at_step ||
               sidecar.control.word().phase == RankPhase::waiting_at_update;
      },
      "the gates are closed again");
}

TEST_F(Restart, AFailedCollectiveIsToldToTheNextSidecar) {
  start();
  sidecar.die();
  ASSERT_EQ(rank.session->step_begin(1), RK_OK);
  auto answered = std::async(std::launch::async, [&] { return rank.session->collective_failed("ring broken"); });
  sidecar.control.wait_for_phase(RankPhase::collective_failed);
  sidecar.listen();
  sidecar.greet();
  sidecar.expect<RegisteredMessage>("registered");
  EXPECT_EQ(sidecar.expect<CollectiveFailedMessage>("collective_failed").why, "ring broken");
  sidecar.control.hold();
  sidecar.control.release(GateOrder::stop);
  EXPECT_EQ(answered.get(), RK_STOP);
}

TEST_F(Restart, AFailedCollectiveDoesNotWaitForASidecarThatNeverComesBack) {
  rank.limits = testing::kQuick;
  start();
  sidecar.die();
  ASSERT_EQ(rank.session->step_begin(1), RK_OK);
  EXPECT_EQ(rank.session->collective_failed("ring broken"), RK_STOP);
}

TEST_F(Restart, ACheckpointCannotBeAskedForMeanwhile) {
  start();
  ASSERT_EQ(rank.one_step(), RK_OK);
  sidecar.die();
  testing::wait_until([&] { return rank.session->checkpoint() == RK_ERROR_UNAVAILABLE; }, "the loss is noticed");
  EXPECT_THAT(last_error(), HasSubstr("cannot be reached just now"));
}

TEST_F(Restart, ARequestForACheckpointIsMadeAgain) {
  start();
  ASSERT_EQ(rank.one_step(), RK_OK);
  ASSERT_EQ(rank.session->checkpoint(), RK_OK);
  sidecar.expect<CheckpointWantedMessage>("checkpoint_wanted");
  sidecar.die();
  auto closed = std::async(std::launch::async, [&] { return rank.session->close(); });
  sidecar.listen();
  sidecar.greet();
  sidecar.expect<RegisteredMessage>("registered");
  EXPECT_EQ(sidecar.expect<CheckpointWantedMessage>("checkpoint_wanted").step, 1u);
  sidecar.send(CheckpointDoneMessage{.requested = 1, .outcome = HookOutcome::durable, .step = 1, .path = "a1-s1-x"});
  EXPECT_EQ(closed.get(), 0);
}

TEST_F(Restart, CloseSaysThatNobodyMadeTheLastCheckpointWhenTheSidecarStaysAway) {
  rank.limits = testing::kQuick;
  start();
  ASSERT_EQ(rank.one_step(), RK_OK);
  ASSERT_EQ(rank.session->checkpoint(), RK_OK);
  sidecar.die();
  EXPECT_EQ(rank.session->close(), 1);
  EXPECT_THAT(last_error(), HasSubstr("nobody said that the checkpoint of step 1 is durable"));
}

TEST_F(Restart, AnotherControlBlockIsNotTakenInTheMiddleOfALife) {
  start();
  train();
  sidecar.hang_up();
  sidecar.accept();
  sidecar.expect<HelloMessage>("hello");
  const ControlMemory other({.incarnation = 8});
  sidecar.send(ControlMessage{.slot_bytes = other->slot_bytes, .incarnation = 8, .checkpoint_dir = "/nowhere"},
               other.descriptor());
  EXPECT_TRUE(sidecar.sees_end());
  const std::uint64_t then = step();
  testing::wait_until([&] { return step() > then; }, "training goes on with the old block");
}

TEST_F(Restart, BeforeTheRestoreIsDecidedTheNewSidecarStartsAnew) {
  auto started = std::async(std::launch::async, [&] { rank.start(); });
  sidecar.welcome();
  sidecar.expect<RegisteredMessage>("registered");
  sidecar.control->incarnation = 99;  // what a fresh sidecar makes: the rank has no attempt yet
  sidecar.hang_up();
  sidecar.greet();
  EXPECT_EQ(sidecar.last_attempt_seen, 0u);
  EXPECT_EQ(sidecar.begin(1).layout.tensors.size(), 2u);
  started.get();
  EXPECT_EQ(rank.one_step(), RK_OK);
  EXPECT_EQ(step(), 1u);
}

TEST_F(Restart, FramesOfAnOlderAttemptAreDropped) {
  start();
  sidecar.control.hold();
  train();
  sidecar.control.wait_for_phase(RankPhase::waiting_at_step);
  sidecar.attempt = 2;
  sidecar.send(EndMessage{.exit_code = 143});  // would end this very test
  sidecar.attempt = 3;
  sidecar.send(
      WriteMessage{.term = 1, .hold = 99, .step = 0, .path = "a3-s0-abc", .file = "rank-0.safetensors", .pieces = {}});
  sidecar.expect<WriteFailedMessage>("write_failed");
}

}  // namespace
}  // namespace rekindle::runtime
