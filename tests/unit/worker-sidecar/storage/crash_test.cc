// A whole save, broken at every single call in every way we know: afterwards the old or the new
// checkpoint restores, bit for bit, never a mix, and nothing of the old one is lost.
#include <gtest/gtest.h>

#include "common/base/format.h"
#include "tests/support/checkpoint_builder.h"
#include "tests/support/faulty_file_system.h"
#include "tests/support/temporary_folder.h"
#include "worker-sidecar/storage/attempt_store.h"
#include "worker-sidecar/storage/prune.h"
#include "worker-sidecar/storage/scan.h"
#include "worker-sidecar/storage/verifier.h"

namespace rekindle {
namespace {

struct Outcome {
  std::size_t calls = 0;
  std::size_t old_restored = 0;
  std::size_t new_restored = 0;
};

void walk_every_call(const char* name, const Breakage& kind, Outcome& outcome) {
  const RankMemory old_memory = make_memory(1, small_layout());
  const RankMemory new_memory = make_memory(2, small_layout());
  for (std::size_t k = 1;; ++k) {
    SCOPED_TRACE(format("{}, call {}", name, k));
    const TemporaryFolder root;
    const std::string folder =
        open_job_folder(real_file_system(), {.root = root.path(), .job = make_job(), .nonce = "n0"})->path;
    ASSERT_TRUE(claim_attempt(real_file_system(), folder, {}, "n1"));
    ASSERT_TRUE(save_checkpoint(real_file_system(), folder, make_job(), {1, 100, "x"}, old_memory));

    Breakage breakage = kind;
    breakage.at_call = k;
    FaultyFileSystem broken(breakage);
    const Result<std::string> saved = save_checkpoint(broken, folder, make_job(), {1, 101, "x"}, new_memory);
    if (saved) {
      const Result<PruneReport> pruned = prune_checkpoints(broken, folder, make_job(), {.keep = 2, .own_attempt = 1});
      static_cast<void>(pruned);  // may fail as well; what it leaves is looked at below
    }
    if (broken.broken().empty()) {
      ASSERT_TRUE(saved.has_value());
      outcome.calls = k - 1;
      return;
    }

    const Result<FolderScan> scan = scan_job_folder(real_file_system(), folder);
    ASSERT_TRUE(scan.has_value());
    const CandidateOrder order = order_candidates(*scan, make_job());
    ASSERT_FALSE(order.usable.empty());
    const Candidate& newest = order.usable.front();
    const Result<RankMemory> loaded =
        load_checkpoint(real_file_system(), folder, newest.path, old_memory.layout, old_memory.states);
    ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
    if (newest.step == 101) {
      ASSERT_TRUE(*loaded == new_memory);
      ++outcome.new_restored;
    } else {
      ASSERT_EQ(newest.step, 100u);
      // A save that reported success is durable and found.
      ASSERT_FALSE(saved.has_value());
      ASSERT_TRUE(*loaded == old_memory);
      ++outcome.old_restored;
    }
    ASSERT_TRUE(verify_checkpoint(real_file_system(), folder, "a1-s100-x", make_job()).fine());

    // And the next save works, whatever was left behind.
    ASSERT_TRUE(save_checkpoint(real_file_system(), folder, make_job(), {1, 102, "y"}, new_memory));
  }
}

TEST(BrokenSave, RestoresTheOldOrTheNewCheckpointNeverAMix) {
  const std::pair<const char*, Breakage> kinds[] = {
      {"input/output error", {.error_number = EIO}},
      {"disk full", {.error_number = ENOSPC}},
      {"interrupted", {.error_number = EINTR}},
      {"short write", {.error_number = EIO, .short_write = true}},
      {"killed", {.error_number = EIO, .power_off = true}},
      {"killed in the middle of a write", {.error_number = EIO, .short_write = true, .power_off = true}},
  };
  for (const auto& [name, kind] : kinds) {
    Outcome outcome;
    walk_every_call(name, kind, outcome);
    if (testing::Test::HasFatalFailure()) return;
    EXPECT_GT(outcome.calls, 60u) << name;
    if (kind.power_off) {
      EXPECT_GT(outcome.old_restored, 30u) << name;
    }
    EXPECT_GT(outcome.new_restored, 0u) << name;
  }
}

}  // namespace
}  // namespace rekindle
