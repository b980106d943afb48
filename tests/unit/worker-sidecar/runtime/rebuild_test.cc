// RK_REBUILD and rk_rebuild at a scripted sidecar: who keeps its memory, who loads, and what comes
// in between.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/format.h"
#include "tests/unit/worker-sidecar/runtime/every_kind.h"

namespace rekindle::runtime {
namespace {

using testing::EveryKind;
using ::testing::HasSubstr;
using testing::ScriptedSidecar;

class Rebuilding : public ::testing::Test {
 protected:
  Rebuilding() : rank(sidecar.socket_path()) {
    rank.options.rebuilds = true;
    job_folder = open_job_folder(real_file_system(), {.root = root.path(), .job = make_job(), .nonce = "abc"})->path;
    sidecar.job_folder = job_folder;
  }
  ~Rebuilding() override { sidecar.control.release(GateOrder::stop); }

  // A rank that has made `steps` steps.
  void train(std::uint64_t steps) {
    auto started = std::async(std::launch::async, [&] { rank.start(); });
    hello = sidecar.welcome();
    sidecar.begin();
    started.get();
    for (std::uint64_t step = 1; step <= steps; ++step) ASSERT_EQ(rank.one_step(), RK_OK);
  }
  // What another rank has saved of `step`.
  RebuildOrder save(std::uint64_t term, std::uint64_t step, std::uint32_t world_size = 1) {
    const Layout layout{
        {whole_tensor("weights", Dtype::f32, {4}), whole_tensor("statistics", Dtype::f32, {4}, WrittenIn::anywhere)}};
    memory = make_memory(step, layout, {{"counter", 8}});
    const FolderName name{.attempt = 1, .step = step, .nonce = format("n{}", term)};
    const std::string path = *save_checkpoint(real_file_system(), job_folder, make_job(), name, memory, {}, world_size);
    return {.term = term,
            .step = step,
            .path = path,
            .manifest_hash = read_manifest(real_file_system(), job_folder, path)->hash};
  }
  static RebuildOrder stay_at(std::uint64_t step, std::uint64_t term = 65536) {
    return {.term = term, .step = step, .path = "", .manifest_hash = ""};
  }
  void order(const RebuildOrder& rebuild) {
    sidecar.control.hold();
    sidecar.control.release_to_rebuild(rebuild);
  }
  template <typename Value>
  static std::string bytes_of(const Value& value) {
    return std::string(reinterpret_cast<const char*>(&value), sizeof value);
  }
  RankStatus word() const { return sidecar.control.word(); }

  TemporaryFolder root;
  ScriptedSidecar sidecar;
  testing::Rank rank;
  HelloMessage hello;
  std::string job_folder;
  RankMemory memory;
};

TEST_F(Rebuilding, ItsHelloSaysThatItCan) {
  train(0);
  EXPECT_TRUE(hello.rebuilds);
}

TEST_F(Rebuilding, ARankAtTheStepKeepsItsMemoryAndPutsBackWhatTheStepInProgressChanged) {
  train(3);
  ASSERT_EQ(rank.session->step_begin(4), RK_OK);
  rank.statistics.fill(99);
  rank.counter = 99;
  order(stay_at(3));
  EXPECT_EQ(rank.session->update_begin(), RK_REBUILD);
  EXPECT_EQ(word(), (RankStatus{3, RankPhase::collective_failed, word().slot})) << "clean";
  ASSERT_EQ(rank.session->rebuild(rank.position), RK_OK) << last_error();
  EXPECT_EQ(rank.position.step, 3u);
  EXPECT_EQ(rank.position.attempt, 1u);
  EXPECT_EQ(rank.position.path, nullptr);
  EXPECT_EQ(rank.position.flags, 0u);
  EXPECT_EQ(rank.weights[0], 3.0f);
  EXPECT_EQ(rank.statistics[0], 3.5f);
  EXPECT_EQ(rank.counter, 3u);
  EXPECT_EQ(sidecar.expect<RebuiltMessage>("rebuilt"), (RebuiltMessage{65536, 3}));
  EXPECT_EQ(sidecar.control->rebuilt.load(), 65536u);
  EXPECT_EQ(rank.one_step(), RK_OK);
  EXPECT_EQ(word().step, 4u);
}

TEST_F(Rebuilding, ARankThatIsBehindLoadsWhatTheOthersHave) {
  train(3);
  ASSERT_EQ(rank.session->step_begin(4), RK_OK);
  const RebuildOrder ahead = save(65536, 4);
  order(ahead);
  EXPECT_EQ(rank.session->update_begin(), RK_REBUILD);
  ASSERT_EQ(rank.session->rebuild(rank.position), RK_OK) << last_error();
  EXPECT_EQ(rank.position.step, 4u);
  EXPECT_EQ(rank.position.path, format("{}/{}", job_folder, ahead.path));
  EXPECT_EQ(bytes_of(rank.weights), memory.tensor_bytes_held[0]);
  EXPECT_EQ(bytes_of(rank.statistics), memory.tensor_bytes_held[1]);
  EXPECT_EQ(bytes_of(rank.counter), memory.state_bytes_held[0]);
  EXPECT_EQ(word().step, 4u);
  EXPECT_EQ(word().phase, RankPhase::between);
  const auto slot = sidecar.control.slot(word().slot);
  EXPECT_EQ(slot.step, 4u);
  EXPECT_EQ(slot.values[1].second, memory.state_bytes_held[0]);
  EXPECT_EQ(rank.session->step_begin(5), RK_OK);
}

TEST_F(Rebuilding, AManifestThatAppearsLateIsWaitedFor) {
  train(3);
  ASSERT_EQ(rank.session->step_begin(4), RK_OK);
  const RebuildOrder ahead = save(65536, 4);
  const std::string manifest = format("{}/{}/manifest.json", job_folder, ahead.path);
  std::filesystem::rename(manifest, manifest + ".hidden");
  order(ahead);
  EXPECT_EQ(rank.session->update_begin(), RK_REBUILD);
  auto rebuilt = std::async(std::launch::async, [&] { return rank.session->rebuild(rank.position); });
  testing::wait_until([&] { return word().phase == RankPhase::restoring; }, "the rank looks for the manifest");
  std::filesystem::rename(manifest + ".hidden", manifest);
  ASSERT_EQ(rebuilt.get(), RK_OK);
  EXPECT_EQ(rank.position.step, 4u);
}

TEST_F(Rebuilding, SmallStateThatWasNotSavedIsMissing) {
  train(3);
  order(save(65536, 4, 2));
  EXPECT_EQ(rank.session->step_begin(4), RK_REBUILD);
  ASSERT_EQ(rank.session->rebuild(rank.position), RK_OK) << last_error();
  EXPECT_EQ(rank.position.flags, static_cast<std::uint32_t>(RK_STATE_MISSING));
  EXPECT_EQ(rank.counter, 3u);
  rank.counter = 4;  // derived by the program
  ASSERT_EQ(rank.session->step_begin(5), RK_OK);
  EXPECT_EQ(sidecar.control.slot(word().slot).values[1].second, bytes_of(std::uint64_t{4}));
}

TEST_F(Rebuilding, EveryCallSaysItAgainUntilItIsDone) {
  train(3);
  order(stay_at(3));
  Session& session = *rank.session;
  EXPECT_EQ(session.step_begin(4), RK_REBUILD);
  EXPECT_EQ(session.step_begin(4), RK_REBUILD);
  EXPECT_EQ(session.update_begin(), RK_REBUILD);
  EXPECT_EQ(session.update_skip(), RK_REBUILD);
  EXPECT_EQ(session.step_end(), RK_REBUILD);
  EXPECT_EQ(session.collective_failed("again"), RK_REBUILD);
  EXPECT_EQ(session.checkpoint(), RK_REBUILD);
  EXPECT_EQ(session.set_phase(RK_EVALUATING), RK_REBUILD);
  EXPECT_EQ(session.remove_tensor("weights"), RK_ERROR_STATE);
  EXPECT_THAT(last_error(), HasSubstr("after RK_REBUILD"));
  ASSERT_EQ(session.rebuild(rank.position), RK_OK);
  EXPECT_EQ(session.rebuild(rank.position), RK_ERROR_STATE);
  EXPECT_THAT(last_error(), HasSubstr("rk_rebuild without RK_REBUILD"));
}

TEST_F(Rebuilding, AFailedCollectiveIsAnsweredByTheOrder) {
  train(3);
  ASSERT_EQ(rank.session->step_begin(4), RK_OK);
  auto answered = std::async(std::launch::async, [&] { return rank.session->collective_failed("ring broken"); });
  EXPECT_EQ(sidecar.expect<CollectiveFailedMessage>("collective_failed"),
            (CollectiveFailedMessage{3, "ring broken", 0}));
  order(stay_at(3));
  EXPECT_EQ(answered.get(), RK_REBUILD);
  ASSERT_EQ(rank.session->rebuild(rank.position), RK_OK);
  sidecar.expect<RebuiltMessage>("rebuilt");
  ASSERT_EQ(rank.session->step_begin(4), RK_OK);
  auto again = std::async(std::launch::async, [&] { return rank.session->collective_failed("ring broken"); });
  EXPECT_EQ(sidecar.expect<CollectiveFailedMessage>("collective_failed").rebuilt, 65536u)
      << "of the communicators that were made after that order";
  order(stay_at(3, 131072));
  EXPECT_EQ(again.get(), RK_REBUILD);
}

TEST_F(Rebuilding, ARankThatHangsForMinutesIsAnsweredAtOnce) {
  train(3);
  ASSERT_EQ(rank.session->step_begin(4), RK_OK);
  order(stay_at(3));
  EXPECT_EQ(rank.session->collective_failed("timed out"), RK_REBUILD);
  ASSERT_EQ(rank.session->rebuild(rank.position), RK_OK);
  EXPECT_EQ(sidecar.expect<RebuiltMessage>("rebuilt").step, 3u) << "and nobody was told of a failure";
}

TEST_F(Rebuilding, NothingIsLoadedWhileABreakpointReadsTheMemory) {
  train(3);
  const RebuildOrder ahead = save(65536, 4);
  order(ahead);
  ASSERT_EQ(rank.session->step_begin(4), RK_REBUILD);
  sidecar.control.hold();
  auto rebuilt = std::async(std::launch::async, [&] { return rank.session->rebuild(rank.position); });
  sidecar.control.wait_for_phase(RankPhase::waiting_at_step);
  EXPECT_EQ(rank.weights[0], 3.0f);
  EXPECT_TRUE(is_clean(word()));
  sidecar.control.release(GateOrder::go_on);
  EXPECT_EQ(rebuilt.get(), RK_OK);
  EXPECT_EQ(rank.position.step, 4u);
}

TEST_F(Rebuilding, AnotherOrderThatComesMeanwhileIsCarriedOutInstead) {
  train(3);
  order(save(65536, 4));
  ASSERT_EQ(rank.session->step_begin(4), RK_REBUILD);
  const RebuildOrder newer = save(131072, 6);
  sidecar.control.hold();
  auto rebuilt = std::async(std::launch::async, [&] { return rank.session->rebuild(rank.position); });
  sidecar.control.wait_for_phase(RankPhase::waiting_at_step);
  sidecar.control.release_to_rebuild(newer);
  ASSERT_EQ(rebuilt.get(), RK_OK) << last_error();
  EXPECT_EQ(rank.position.step, 6u);
  EXPECT_EQ(sidecar.control->rebuilt.load(), newer.term);
}

TEST_F(Rebuilding, AStopInBetweenIsTheAnswer) {
  train(3);
  order(stay_at(3));
  ASSERT_EQ(rank.session->step_begin(4), RK_REBUILD);
  sidecar.control.hold();
  sidecar.control.release(GateOrder::stop);
  EXPECT_EQ(rank.session->rebuild(rank.position), RK_STOP);
  EXPECT_EQ(rank.session->close(), 143);
}

TEST_F(Rebuilding, AProgramThatLeavesInsteadIsNotComplete) {
  train(3);
  order(stay_at(3));
  ASSERT_EQ(rank.session->step_begin(4), RK_REBUILD);
  EXPECT_EQ(rank.session->close(), 143);
  EXPECT_EQ(word().phase, RankPhase::finished);
}

TEST_F(Rebuilding, AProgramThatWasAtItsEndAnywayIsComplete) {
  train(3);
  order(stay_at(3));
  EXPECT_EQ(rank.session->close(), 0);
}

TEST_F(Rebuilding, ACheckpointThatCannotBeReadEndsTheRank) {
  train(3);
  RebuildOrder ahead = save(65536, 4);
  ahead.manifest_hash = std::string(32, '0');
  order(ahead);
  ASSERT_EQ(rank.session->step_begin(4), RK_REBUILD);
  EXPECT_EQ(rank.session->rebuild(rank.position), RK_ERROR_CORRUPT);
  EXPECT_FALSE(is_clean(word())) << "no source of anything";
  EXPECT_EQ(rank.session->step_begin(4), RK_ERROR_STATE);
  EXPECT_EQ(rank.session->close(), 1);
}

TEST_F(Rebuilding, AnOrderThatLeadsBackIsRefused) {
  train(3);
  order(save(65536, 2));
  ASSERT_EQ(rank.session->step_begin(4), RK_REBUILD);
  EXPECT_EQ(rank.session->rebuild(rank.position), RK_ERROR_INTERNAL);
  EXPECT_THAT(last_error(), HasSubstr("this rank is at step 3"));
}

TEST_F(Rebuilding, WhatAProgramFillsInBeforeItsFirstStepStays) {
  train(0);
  rank.counter = 41;
  order(stay_at(0));
  ASSERT_EQ(rank.session->step_begin(1), RK_REBUILD);
  ASSERT_EQ(rank.session->rebuild(rank.position), RK_OK);
  EXPECT_EQ(rank.counter, 41u);
  ASSERT_EQ(rank.session->step_begin(1), RK_OK);
  EXPECT_EQ(sidecar.control.slot(word().slot).values[1].second, bytes_of(std::uint64_t{41}));
}

TEST_F(Rebuilding, ARankThatCannotTakesTheOrderAsAStop) {
  rank.options.rebuilds = false;
  train(3);
  order(stay_at(3));
  EXPECT_EQ(rank.session->step_begin(4), RK_STOP);
  EXPECT_EQ(rank.session->close(), 143);
}

TEST_F(EveryKind, RebuildsWhenTheDeviceIsDone) {
  rank.options.rebuilds = true;
  start();
  ASSERT_EQ(step(1), RK_OK);
  ASSERT_EQ(rank.session->step_begin(2), RK_OK);
  sidecar.control.hold();
  sidecar.control.release_to_rebuild({.term = 65536, .step = 1, .path = "", .manifest_hash = ""});
  ASSERT_EQ(rank.session->update_begin(), RK_REBUILD);
  device.enqueue([](std::string& bytes) { bytes[0] = 'R'; });
  device.wait_answer = 719;
  EXPECT_EQ(rank.session->rebuild(rank.position), RK_ERROR_STATE);
  EXPECT_NE(std::string(last_error()).find("rk_rebuild after step 1"), std::string::npos) << last_error();
  EXPECT_NE(sidecar.control->rebuilt.load(), 65536u) << "nobody is told that this rank is ready";
  device.wait_answer = 0;
  EXPECT_EQ(rank.session->rebuild(rank.position), RK_OK) << last_error();
  EXPECT_EQ(device.bytes()[0], 'R');
}

// What has functions of its own, or changes in size, or lies on a device.
TEST_F(EveryKind, ComesBackToItsCommitWhenTheRankRebuilds) {
  rank.options.rebuilds = true;
  start();
  ASSERT_EQ(step(1), RK_OK);
  ASSERT_EQ(rank.session->step_begin(2), RK_OK);
  loader.value = "read on in the step that is not made";
  cursor.samples = 7;
  sidecar.control.hold();
  sidecar.control.release_to_rebuild({.term = 65536, .step = 1, .path = "", .manifest_hash = ""});
  ASSERT_EQ(rank.session->update_begin(), RK_REBUILD);
  ASSERT_EQ(rank.session->rebuild(rank.position), RK_OK) << last_error();
  EXPECT_EQ(loader.loaded, "epoch 1");
  EXPECT_EQ(cursor.samples, 128u);
  EXPECT_EQ(step(2), RK_OK);
}

}  // namespace
}  // namespace rekindle::runtime
