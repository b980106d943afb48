// Which checkpoint a process without a sidecar goes on from when its storage fails, and for how
// long it tries. Time is the test's.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <filesystem>

#include "tests/support/faulty_file_system.h"
#include "tests/support/manual_waiter.h"
#include "tests/support/temporary_folder.h"
#include "worker-sidecar/checkpoint/names.h"
#include "worker-sidecar/runtime/src/control_mapping.h"
#include "worker-sidecar/runtime/src/stand_alone.h"
#include "worker-sidecar/storage/attempt_store.h"

namespace rekindle::runtime {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;

// Opening a file whose path contains `where` fails so many times, after the first `good` times.
class FailingOpen : public FaultyFileSystem {
 public:
  FailingOpen(std::string where, int error_number, std::size_t times, std::size_t good = 0)
      : FaultyFileSystem({}), where_(std::move(where)), error_number_(error_number), times_(times), good_(good) {}
  int open(const std::string& path, int flags, mode_t mode) override {
    if (path.find(where_) == std::string::npos || times_ == 0) return FaultyFileSystem::open(path, flags, mode);
    if (good_ > 0) {
      --good_;
      return FaultyFileSystem::open(path, flags, mode);
    }
    --times_;
    return -error_number_;
  }
  std::size_t left() const { return times_; }

 private:
  const std::string where_;
  const int error_number_;
  std::size_t times_;
  std::size_t good_;
};

constexpr std::size_t kForEver = 1'000'000;

// A job with checkpoints of steps 3 and 6; the weights are the number of the step.
class ARestoreThatMeetsErrors : public ::testing::Test {
 protected:
  ARestoreThatMeetsErrors() {
    options.checkpoint_dir = root.path();
    small_state.attach(*block);
    const rk_tensor tensor{.struct_size = sizeof(rk_tensor),
                           .name = "weights",
                           .data = weights.data(),
                           .dtype = RK_F32,
                           .rank = 1,
                           .shape = {4}};
    EXPECT_TRUE(registry.add_tensor(tensor, small_state.room()));
    EXPECT_TRUE(registry.add_state("counter", &counter, sizeof counter, small_state.room()));
    small_state.set_values(registry.captured_values());
    for (const std::uint64_t step : {3u, 6u}) {
      StandAlone alone = *StandAlone::open(real_file_system(), options);
      EXPECT_TRUE(alone.restore(registry));
      weights.fill(static_cast<float>(step));
      counter = step;
      EXPECT_TRUE(small_state.capture(0, step, 1));
      EXPECT_TRUE(alone.checkpoint(registry, small_state, step, 0));
    }
    weights.fill(-1);
  }
  Outcome<StandAlone::Restored> restore(FileSystem& storage) {
    Outcome<StandAlone> alone = StandAlone::open(storage, options, waiter);
    if (!alone) return std::unexpected(alone.error());
    return alone->restore(registry);
  }
  std::string newest() const {
    for (const auto& entry : std::filesystem::directory_iterator(root.at("local.local"))) {
      if (entry.path().filename().string().starts_with("a2-s6-")) return entry.path();
    }
    return "";
  }
  void forget_newer_attempts() {
    const Result<std::vector<FoundAttempt>> attempts = list_attempts(real_file_system(), root.at("local.local"));
    ASSERT_TRUE(attempts);
    for (const FoundAttempt& found : *attempts) {
      if (found.attempt > 2)
        std::filesystem::remove(root.at("local.local/attempts/" + attempt_file_name(found.attempt)));
    }
  }
  std::string name_of_newest() const { return std::filesystem::path(newest()).filename(); }

  TemporaryFolder root;
  OpenOptions options;
  ManualWaiter waiter;
  ControlMapping block = *ControlMapping::make_private(0, 1, 4096);
  SmallState small_state;
  Registry registry{4096};
  std::array<float, 4> weights{};
  std::uint64_t counter = 0;
};

TEST_F(ARestoreThatMeetsErrors, WaitsForStorageThatComesBack) {
  for (const int number : {EIO, ESTALE, EMFILE, ETIMEDOUT}) {
    for (const char* file : {"/manifest.json", "/rank-0.safetensors", "/state-0.safetensors"}) {
      FailingOpen storage(name_of_newest() + file, number, 3);
      const Outcome<StandAlone::Restored> restored = restore(storage);
      ASSERT_TRUE(restored) << file << ", " << strerror(number) << ": " << restored.error().message;
      EXPECT_EQ(restored->step, 6u) << file << ", " << strerror(number);
      EXPECT_EQ(storage.left(), 0u) << file;
      EXPECT_EQ(weights[3], 6.0f);
    }
  }
  EXPECT_GT(waiter.pauses(), 0);
}

TEST_F(ARestoreThatMeetsErrors, NoSingleErrorGivesUpTheNewest) {
  std::size_t restores = 0;
  for (std::size_t k = 1;; ++k) {
    FaultyFileSystem storage({.at_call = k, .error_number = EIO});
    const Outcome<StandAlone::Restored> restored = restore(storage);
    if (restored) {
      ASSERT_EQ(restored->step, 6u) << "call " << k << " (" << storage.broken() << ")";
      ++restores;
    }
    if (storage.broken().empty()) break;
    forget_newer_attempts();
  }
  EXPECT_GT(restores, 10u);
}

TEST_F(ARestoreThatMeetsErrors, StopsTheStartWhenStorageGoesOnFailing) {
  for (const char* file : {"/manifest.json", "/rank-0.safetensors"}) {
    FailingOpen storage(name_of_newest() + file, EIO, kForEver);
    const Duration begin = waiter.now();
    const Outcome<StandAlone::Restored> restored = restore(storage);
    ASSERT_FALSE(restored) << file << ": went on from step " << restored->step;
    EXPECT_EQ(restored.error().status, RK_ERROR_STORAGE);
    EXPECT_THAT(restored.error().message,
                HasSubstr("No older checkpoint is taken instead, because " + name_of_newest()));
    EXPECT_THAT(restored.error().message, HasSubstr("Input/output error"));
    EXPECT_GE(waiter.now() - begin, seconds(60));
    EXPECT_LT(waiter.now() - begin, seconds(70));
  }
}

TEST_F(ARestoreThatMeetsErrors, AFileThatWasMovedForAMomentIsWaitedFor) {
  FailingOpen storage(name_of_newest() + "/rank-0.safetensors", ENOENT, 3);
  const Outcome<StandAlone::Restored> restored = restore(storage);
  ASSERT_TRUE(restored) << restored.error().message;
  EXPECT_EQ(restored->step, 6u);
}

TEST_F(ARestoreThatMeetsErrors, AFileThatStaysAwayGivesWayToTheCheckpointBefore) {
  FailingOpen storage(name_of_newest() + "/rank-0.safetensors", ENOENT, kForEver);
  const Outcome<StandAlone::Restored> restored = restore(storage);
  ASSERT_TRUE(restored) << restored.error().message;
  EXPECT_EQ(restored->step, 3u);
  EXPECT_GE(waiter.now(), seconds(5));
}

// The patience is the policy's alone: nothing below waits again inside a try.
TEST_F(ARestoreThatMeetsErrors, AManifestThatVanishesIsLookedForOnceATry) {
  constexpr std::size_t kOfTheScan = 1;
  FailingOpen storage(name_of_newest() + "/manifest.json", ENOENT, kForEver, kOfTheScan);
  const Outcome<StandAlone::Restored> restored = restore(storage);
  ASSERT_TRUE(restored) << restored.error().message;
  EXPECT_EQ(restored->step, 3u);
  EXPECT_EQ(waiter.now(), seconds(5));
  EXPECT_EQ(kForEver - storage.left(), 6u);
}

TEST_F(ARestoreThatMeetsErrors, AFifoIsDamageAndNothingIsWaitedFor) {
  for (const char* file : {"/rank-0.safetensors", "/manifest.json"}) {
    const std::string path = newest() + file;
    std::filesystem::remove(path);
    ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
    const Outcome<StandAlone::Restored> restored = restore(real_file_system());
    ASSERT_TRUE(restored) << file << ": " << restored.error().message;
    EXPECT_EQ(restored->step, 3u) << file;
    // The attempt that has just begun leaves the newest behind.
    forget_newer_attempts();
  }
  EXPECT_EQ(waiter.pauses(), 0);
}

}  // namespace
}  // namespace rekindle::runtime
