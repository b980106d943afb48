// Write orders: what a pinned rank puts into a checkpoint, and what ends a write.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/faulty_file_system.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/worker-sidecar/runtime/rank.h"
#include "worker-sidecar/checkpoint/hash.h"
#include "worker-sidecar/storage/folder.h"

namespace rekindle::runtime {
namespace {

using ::testing::HasSubstr;
using testing::Rank;
using testing::ScriptedSidecar;

// Stops in the middle of a file until the test has changed something.
class PausingFileSystem : public FaultyFileSystem {
 public:
  PausingFileSystem() : FaultyFileSystem({}) {}

  ssize_t pwrite(int descriptor, const void* data, std::size_t bytes, std::uint64_t offset) override {
    if (pausing && ++writes_ == 1) {
      reached_.set_value();
      go_on_.get_future().wait();
    }
    return FaultyFileSystem::pwrite(descriptor, data, bytes, offset);
  }
  void wait_until_reached() { reached_.get_future().wait(); }
  void go_on() { go_on_.set_value(); }

  bool pausing = false;

 private:
  int writes_ = 0;
  std::promise<void> reached_;
  std::promise<void> go_on_;
};

int train(testing::Rank& rank) { return rank.train_until_stopped(); }
// It updates memory that is being written: a race, on purpose, and the only one that the thread
// sanitizer is told of (tests/sanitizers/tsan.supp).
int train_under_the_writers_hands(testing::Rank& rank) { return rank.train_until_stopped(); }

class WriteOrder : public ::testing::Test {
 protected:
  WriteOrder() : rank(sidecar.socket_path()) {
    rank.limits.file_system = &file_system;
    sidecar.job_folder = folder.path();
    path = *create_checkpoint_folder(real_file_system(), folder.path(), {.attempt = 1, .step = 3, .nonce = "abc"});
  }
  ~WriteOrder() override {
    sidecar.control.release(GateOrder::stop);
    if (training.valid()) training.wait();
  }

  // Three steps made, held at a gate with step 3 committed.
  void pin_at_step_3(int (*go_on)(testing::Rank&) = train) {
    auto started = std::async(std::launch::async, [&] { rank.start(); });
    sidecar.welcome();
    sidecar.begin();
    started.get();
    for (int i = 0; i < 3; ++i) ASSERT_EQ(rank.one_step(), RK_OK);
    hold = sidecar.control.hold();
    training = std::async(std::launch::async, [this, go_on] { return go_on(rank); });
    sidecar.control.wait_for_phase(RankPhase::waiting_at_step);
  }
  WriteMessage order(std::vector<PiecePlan> pieces) {
    return {
        .term = 5, .hold = hold, .step = 3, .path = path, .file = "rank-0.safetensors", .pieces = std::move(pieces)};
  }
  std::string file() const { return folder.at(path + "/rank-0.safetensors"); }
  Error failure() { return sidecar.expect<WriteFailedMessage>("write_failed").error; }
  static std::string bytes_of(float value, std::size_t count) {
    const std::vector<float> values(count, value);
    return std::string(reinterpret_cast<const char*>(values.data()), count * sizeof(float));
  }

  std::future<int> training;
  TemporaryFolder folder;
  PausingFileSystem file_system;
  ScriptedSidecar sidecar;
  Rank rank;
  std::string path;
  std::uint32_t hold = 0;
};

TEST_F(WriteOrder, PutsRowsOfRegisteredMemoryIntoAFile) {
  pin_at_step_3();
  sidecar.send(order({{"weights", 1, 4}, {"statistics", 0, 4}}));
  const auto report = sidecar.expect<WrittenMessage>("written");
  EXPECT_EQ(report.term, 5u);
  const std::string bytes = read_bytes(file());
  EXPECT_EQ(report.written.bytes, bytes.size());
  EXPECT_EQ(report.written.hash, hash_of(bytes));
  ASSERT_EQ(report.written.entries.size(), 2u);
  const WrittenEntry& weights = report.written.entries[0];
  EXPECT_EQ(weights.key, "weights[1:4]");
  EXPECT_EQ(weights.end_row, 4u);
  EXPECT_EQ(bytes.substr(weights.begin_byte, weights.end_byte - weights.begin_byte), bytes_of(3, 3));
}

TEST_F(WriteOrder, TensorsWrittenAnywhereComeFromTheCommitNotFromTheForwardPass) {
  pin_at_step_3();
  rank.statistics.fill(-1);  // a forward pass of step 4 that goes on during the hold
  sidecar.send(order({{"statistics", 0, 4}}));
  const auto report = sidecar.expect<WrittenMessage>("written");
  const WrittenEntry& entry = report.written.entries[0];
  EXPECT_EQ(read_bytes(file()).substr(entry.begin_byte, entry.end_byte - entry.begin_byte), bytes_of(3.5f, 4));
}

TEST_F(WriteOrder, IsCarriedOutWhileTheTrainingThreadComputes) {
  auto started = std::async(std::launch::async, [&] { rank.start(); });
  sidecar.welcome();
  sidecar.begin();
  started.get();
  for (int i = 0; i < 3; ++i) ASSERT_EQ(rank.one_step(), RK_OK);
  ASSERT_EQ(rank.session->step_begin(4), RK_OK);
  hold = sidecar.control.hold();
  EXPECT_EQ(sidecar.control.word(), (RankStatus{3, RankPhase::computing, sidecar.control.word().slot}));
  sidecar.send(order({{"weights", 0, 4}}));
  sidecar.expect<WrittenMessage>("written");
}

TEST_F(WriteOrder, WhatItCannotMeanIsAnsweredWithTheReason) {
  pin_at_step_3();
  sidecar.send(order({{"biases", 0, 4}}));
  EXPECT_THAT(failure().message, HasSubstr("'biases', which this rank has not registered"));
  sidecar.send(order({{"weights", 2, 9}}));
  EXPECT_THAT(failure().message, HasSubstr("rows 2 to 9 of tensor 'weights', which has 4"));
  WriteMessage elsewhere = order({{"weights", 0, 4}});
  elsewhere.path = "elsewhere";
  sidecar.send(elsewhere);
  EXPECT_THAT(failure().message, HasSubstr("no names of a checkpoint"));
}

TEST_F(WriteOrder, ThatLeadsOutOfTheJobsFolderEndsTheConnection) {
  pin_at_step_3();
  WriteMessage outside = order({{"weights", 0, 4}});
  outside.path = "../elsewhere";
  sidecar.send(outside);
  EXPECT_TRUE(sidecar.sees_end());
}

TEST_F(WriteOrder, OfALowerTermIsRefused) {
  pin_at_step_3();
  sidecar.send(order({{"weights", 0, 4}}));
  sidecar.expect<WrittenMessage>("written");
  WriteMessage older = order({{"weights", 0, 4}});
  older.term = 4;
  older.file = "rank-9.safetensors";
  sidecar.send(older);
  const auto answer = sidecar.expect<WriteFailedMessage>("write_failed");
  EXPECT_EQ(answer.term, 4u);
  EXPECT_THAT(answer.error.message, HasSubstr("has seen term 5 and takes no order of term 4"));
}

TEST_F(WriteOrder, ForAnotherHoldOrAnotherStepIsNotBegun) {
  pin_at_step_3();
  WriteMessage wrong = order({{"weights", 0, 4}});
  wrong.hold = hold + 1;
  sidecar.send(wrong);
  EXPECT_THAT(failure().message, HasSubstr("has ended"));
  wrong = order({{"weights", 0, 4}});
  wrong.step = 2;
  sidecar.send(wrong);
  EXPECT_THAT(failure().message, HasSubstr("no longer clean at step 2"));
  EXPECT_FALSE(std::filesystem::exists(file()));
}

TEST_F(WriteOrder, IsDiscardedWhenThePinIsLostInTheMiddle) {
  file_system.pausing = true;
  pin_at_step_3(train_under_the_writers_hands);
  sidecar.send(order({{"weights", 0, 4}}));
  file_system.wait_until_reached();
  EXPECT_TRUE(std::filesystem::exists(file()));
  sidecar.control.release(GateOrder::go_on);
  testing::wait_until([&] { return sidecar.control.word().step > 3; }, "the rank updates under the writer's hands");
  file_system.go_on();
  EXPECT_EQ(failure().code, ErrorCode::conflict);
  EXPECT_FALSE(std::filesystem::exists(file()));
}

TEST_F(WriteOrder, IsCancelledByAHigherTerm) {
  file_system.pausing = true;
  pin_at_step_3();
  sidecar.send(order({{"weights", 0, 2}}));
  file_system.wait_until_reached();
  WriteMessage newer = order({{"weights", 0, 4}});
  newer.term = 6;
  newer.file = "rank-0-again.safetensors";
  sidecar.send(newer);
  file_system.go_on();
  const auto cancelled = sidecar.expect<WriteFailedMessage>("write_failed");
  EXPECT_EQ(cancelled.term, 5u);
  EXPECT_EQ(cancelled.error.code, ErrorCode::gone);
  EXPECT_FALSE(std::filesystem::exists(file()));
  EXPECT_EQ(sidecar.expect<WrittenMessage>("written").term, 6u);
}

TEST_F(WriteOrder, IsDiscardedWhenItsSidecarDies) {
  file_system.pausing = true;
  pin_at_step_3();
  sidecar.send(order({{"weights", 0, 4}}));
  file_system.wait_until_reached();
  sidecar.hang_up();
  file_system.go_on();
  const HelloMessage again = sidecar.greet();
  EXPECT_EQ(again.term, 5u) << "a sidecar that comes back learns the highest term";
  EXPECT_FALSE(std::filesystem::exists(file()));
}

TEST_F(WriteOrder, AFolderThatIsNotThereIsAnsweredWithItsPath) {
  pin_at_step_3();
  WriteMessage nowhere = order({{"weights", 0, 4}});
  nowhere.path = "a1-s3-zzz";
  sidecar.send(nowhere);
  EXPECT_THAT(failure().message, HasSubstr("a1-s3-zzz"));
}

}  // namespace
}  // namespace rekindle::runtime
