// What a periodic checkpoint without a sidecar is made of: the copy that its snapshot was taken
// into, and that of its own step.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <condition_variable>
#include <cstring>
#include <mutex>

#include "tests/support/checkpoint_builder.h"
#include "tests/support/faulty_file_system.h"
#include "tests/support/temporary_folder.h"
#include "worker-sidecar/runtime/src/background_saver.h"
#include "worker-sidecar/runtime/src/control_mapping.h"
#include "worker-sidecar/storage/scan.h"

namespace rekindle::runtime {
namespace {

using ::testing::HasSubstr;

// Storage whose next call after hold() does not return before go_on().
class HeldStorage : public FaultyFileSystem {
 public:
  HeldStorage() : FaultyFileSystem({}) {}
  void hold() {
    const std::lock_guard held(mutex_);
    held_ = true;
  }
  void wait_until_somebody_waits() {
    std::unique_lock held(mutex_);
    changed_.wait(held, [&] { return waits_; });
  }
  void go_on() {
    const std::lock_guard held(mutex_);
    held_ = false;
    changed_.notify_all();
  }
  std::function<void()> after_sync;
  int fsync(int descriptor) override {
    const int result = FaultyFileSystem::fsync(descriptor);
    if (after_sync) after_sync();
    return result;
  }

 private:
  void before_call(std::size_t) override {
    std::unique_lock held(mutex_);
    waits_ = held_;
    changed_.notify_all();
    changed_.wait(held, [&] { return !held_; });
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  bool held_ = false;
  bool waits_ = false;
};

class ASnapshot : public ::testing::Test {
 protected:
  ASnapshot() {
    options.checkpoint_dir = root.path();
    alone = std::make_unique<StandAlone>(*StandAlone::open(storage, options));
    small_state.attach(*block);
    gates.attach(*block);
    add("weights", weights.data());
    EXPECT_TRUE(alone->restore(registry));
  }
  void add(const char* name, float* data) {
    const rk_tensor tensor{
        .struct_size = sizeof(rk_tensor), .name = name, .data = data, .dtype = RK_F32, .rank = 1, .shape = {4}};
    EXPECT_TRUE(registry.add_tensor(tensor, small_state.room()));
    small_state.set_values(registry.captured_values());
    keeper.registry_changed();
  }
  // Commits the next step and takes a snapshot of it, as a session does at its gate.
  void take_snapshot() {
    const std::uint64_t step = gates.word().step + 1;
    weights.fill(static_cast<float>(step));
    const std::uint8_t slot = gates.word().slot ^ 1u;
    ASSERT_TRUE(small_state.capture(slot, step, 1));
    gates.publish({step, RankPhase::between, slot});
    keeper.at_gate(step, gates.word(), 1);
  }
  std::vector<Candidate> published() {
    return order_candidates(*scan_job_folder(real_file_system(), root.at("local.local")),
                            {.namespace_name = "local", .name = "local"})
        .usable;
  }
  float first_weight(const Candidate& candidate) {
    const Result<RankMemory> loaded = load_checkpoint(real_file_system(), root.at("local.local"), candidate.path,
                                                      {{whole_tensor("weights", Dtype::f32, {4})}}, {}, 0, 1);
    if (!loaded) {
      ADD_FAILURE() << loaded.error().message;
      return -1;
    }
    float value = 0;
    std::memcpy(&value, loaded->tensor_bytes_held[0].data(), sizeof value);
    return value;
  }

  TemporaryFolder root;
  HeldStorage storage;
  OpenOptions options;
  std::unique_ptr<StandAlone> alone;
  ControlMapping block = *ControlMapping::make_private(0, 1, 4096);
  Gates gates;
  SmallState small_state;
  Registry registry{4096};
  ShadowKeeper keeper{registry, small_state};
  std::array<float, 4> weights{};
  std::array<float, 4> late{};
};

TEST_F(ASnapshot, ThatWaitsKeepsItsCopyWhenSomethingIsRegisteredMeanwhile) {
  auto saver = std::make_unique<BackgroundSaver>(
      *alone, SnapshotSettings{.rhythm = SnapshotRhythm::steps, .every_steps = 1}, *block, keeper, 0);
  keeper.set_report([&](const SnapshottedMessage& taken, const std::shared_ptr<const ShadowMapping>& mapping) {
    StandAlone::Snapshot snapshot = StandAlone::describe(registry, small_state, taken.step, gates.word().slot & 1u);
    snapshot.copy = mapping;
    saver->taken(taken, std::move(snapshot));
  });
  saver->plan(registry);
  storage.hold();
  take_snapshot();
  storage.wait_until_somebody_waits();
  take_snapshot();
  add("late", late.data());
  saver->plan(registry);
  storage.go_on();
  saver.reset();  // which waits until everything is durable
  const std::vector<Candidate> found = published();
  // Of step 1 there is nothing: the test has overwritten its copy before it was read.
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].step, 2u);
  EXPECT_EQ(first_weight(found[0]), 2.0f);
}

class ACopy : public ASnapshot {
 protected:
  ACopy() {
    Result<ShadowPlan> plan = plan_shadow({.snapshots = true}, registry.layout(), {{"weights", 0, 4}});
    mapping = std::make_shared<ShadowMapping>(*ShadowMapping::make_private(*std::move(plan)));
    keeper.offer(mapping);
    keeper.set_report([&](const SnapshottedMessage& taken, const std::shared_ptr<const ShadowMapping>& copy) {
      snapshot = StandAlone::describe(registry, small_state, taken.step, gates.word().slot & 1u);
      snapshot.copy = copy;
    });
    take_snapshot();
  }
  std::atomic<std::uint64_t>& stamp() { return mapping->header_of(mapping->plan().snapshot_slot).step; }

  std::shared_ptr<ShadowMapping> mapping;
  StandAlone::Snapshot snapshot;
};

TEST_F(ACopy, OfTheStepIsSaved) {
  ASSERT_EQ(snapshot.copy, mapping);
  EXPECT_TRUE(alone->save(snapshot, "every step"));
  ASSERT_EQ(published().size(), 1u);
  EXPECT_EQ(first_weight(published()[0]), 1.0f);
}

TEST_F(ACopy, OfAnotherStepIsNotEvenBegun) {
  stamp() = 7;
  std::size_t calls = storage.calls();
  const Outcome<std::string> saved = alone->save(snapshot, "every step");
  ASSERT_FALSE(saved);
  EXPECT_THAT(saved.error().message, HasSubstr("the copy that was made of step 1 now is of step 7"));
  EXPECT_EQ(storage.calls(), calls);
}

TEST_F(ACopy, ThatIsOverwrittenWhileItIsReadIsNotPublished) {
  storage.after_sync = [&] { stamp() = 0; };
  EXPECT_FALSE(alone->save(snapshot, "every step"));
  EXPECT_TRUE(published().empty());
}

}  // namespace
}  // namespace rekindle::runtime
