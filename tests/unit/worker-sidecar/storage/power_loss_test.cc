// The power goes off at every point of a save, and the disk keeps any part of what nobody had
// synced: the previous or the new checkpoint restores, bit for bit, and whatever is published is
// whole. That the checks can fail is shown by taking each fsync away in turn.
#include <gtest/gtest.h>

#include "common/base/format.h"
#include "tests/support/checkpoint_builder.h"
#include "tests/support/memory_file_system.h"
#include "tests/support/random_seed.h"
#include "tests/support/thoroughness.h"
#include "worker-sidecar/storage/attempt_store.h"
#include "worker-sidecar/storage/prune.h"
#include "worker-sidecar/storage/scan.h"
#include "worker-sidecar/storage/verifier.h"

namespace rekindle {
namespace {

const std::string kJobFolder = "/checkpoints/team-a.digits";

// A job that has saved step 100, comes back as attempt 2, saves step 101 and removes the older one.
// Positions count operations.
struct Story {
  MemoryFileSystem disk;
  RankMemory before = make_memory(1, small_layout());
  RankMemory after = make_memory(2, small_layout());
  std::size_t begins = 0;
  std::size_t syncs_before = 0;
  std::size_t claimed = 0;
  std::size_t saved = 0;
  std::size_t pruned = 0;
};

void prepare(Story& story) {
  ASSERT_EQ(story.disk.mkdir("/checkpoints", 0770), 0);
  const int root = story.disk.open("/", 0, 0);  // the mount is there for good
  ASSERT_EQ(story.disk.fsync(root), 0);
  ASSERT_EQ(story.disk.close(root), 0);
  const Result<JobFolder> folder =
      open_job_folder(story.disk, {.root = "/checkpoints", .job = make_job(), .nonce = "n0"});
  ASSERT_TRUE(folder) << folder.error().message;
  ASSERT_EQ(folder->path, kJobFolder);
  ASSERT_TRUE(claim_attempt(story.disk, kJobFolder, {}, "n1"));
  ASSERT_TRUE(save_checkpoint(story.disk, kJobFolder, make_job(), {1, 100, "x"}, story.before));
  story.begins = story.disk.operations().size();
  story.syncs_before = story.disk.syncs();
}

void go_on(Story& story) {
  const ParentPoint parent{1, 100, "a1-s100-x"};
  const Result<AttemptRecord> claimed = claim_attempt(story.disk, kJobFolder, {.parent = parent}, "n2");
  ASSERT_TRUE(claimed) << claimed.error().message;
  ASSERT_EQ(claimed->attempt, 2u);
  story.claimed = story.disk.operations().size();
  // Ranks write from nodes of their own.
  const auto turn = [&](std::size_t client) { story.disk.set_client(client); };
  ASSERT_TRUE(save_checkpoint(story.disk, kJobFolder, make_job(), {2, 101, "y"}, story.after, parent, 2, turn));
  story.saved = story.disk.operations().size();
  const Result<PruneReport> report =
      prune_checkpoints(story.disk, kJobFolder, make_job(), {.keep = 1, .own_attempt = 2});
  ASSERT_TRUE(report);
  ASSERT_EQ(report->removed.size(), 1u);
  story.pruned = story.disk.operations().size();
}

// What is wrong with a disk that was found after the power came back; empty: nothing.
std::string judge(const Story& story, MemoryFileSystem& found, std::size_t at) {
  if (at >= story.claimed) {
    const Result<std::vector<FoundAttempt>> attempts = list_attempts(found, kJobFolder);
    if (!attempts || attempts->size() != 2 || !attempts->back().record) return "attempt 2 was claimed and is not there";
  }
  const Result<FolderScan> scan = scan_job_folder(found, kJobFolder);
  if (!scan) return scan.error().message;
  for (const FoundFolder& folder : scan->folders) {
    if (!folder.manifest) continue;
    const Verification verification = verify_checkpoint(found, kJobFolder, folder.path, make_job());
    if (!verification.fine())
      return format("{} is published and not whole: {}", folder.path, verification.findings.front().message);
  }
  const CandidateOrder order = order_candidates(*scan, make_job());
  if (order.usable.empty()) return "nothing is left to restore";
  const Candidate& newest = order.usable.front();
  if (at >= story.saved && newest.step != 101)
    return format("step 101 was reported durable, and step {} is the newest", newest.step);
  const RankMemory& expected = newest.step == 101 ? story.after : story.before;
  const Result<RankMemory> loaded = load_checkpoint(found, kJobFolder, newest.path, expected.layout, expected.states);
  if (!loaded) return loaded.error().message;
  if (!(*loaded == expected)) return newest.path + " restores something else";
  // The next life of the job goes on from there, whatever was left behind.
  const Result<AttemptRecord> next =
      claim_attempt(found, kJobFolder, {.parent = ParentPoint{newest.attempt, newest.step, newest.path}}, "n3");
  if (!next) return next.error().message;
  const Result<std::string> saved =
      save_checkpoint(found, kJobFolder, make_job(), {next->attempt, newest.step + 1, "z"}, story.after, next->parent);
  return saved ? "" : saved.error().message;
}

struct Findings {
  std::size_t states = 0;
  std::string wrong;  // the first
};

Findings lose_power_everywhere(const Story& story, std::uint64_t seed, Sample which = Sample(1)) {
  Findings findings;
  findings.states =
      for_each_power_loss(story.disk, story.begins, story.pruned, seed, [&](MemoryFileSystem&& found, std::size_t at) {
        if (!which.takes()) return true;
        findings.wrong = judge(story, found, at);
        if (findings.wrong.empty()) return true;
        findings.wrong += format(" (power lost before operation {})", at);
        return false;
      });
  return findings;
}

void lose_power(std::uint64_t seed) {
  Story story;
  ASSERT_NO_FATAL_FAILURE(prepare(story));
  ASSERT_NO_FATAL_FAILURE(go_on(story));
  const Findings findings = lose_power_everywhere(story, seed, Sample(20));
  EXPECT_EQ(findings.wrong, "");
  EXPECT_GT(findings.states, 2000u);
  ::testing::Test::RecordProperty("states", static_cast<int>(findings.states));
}

TEST(PowerLoss, LeavesThePreviousOrTheNewCheckpointWhole) { test::for_each_seed({.fixed = {1}}, lose_power); }

// An fsync that could be left out without anybody noticing would cost every save its time for
// nothing.
void lose_power_without_each_fsync(std::uint64_t seed) {
  Story whole;
  ASSERT_NO_FATAL_FAILURE(prepare(whole));
  ASSERT_NO_FATAL_FAILURE(go_on(whole));
  const std::size_t syncs = whole.disk.syncs() - whole.syncs_before;
  EXPECT_GE(syncs, 7u);
  Sample which(4);
  for (std::size_t k = 1; k <= syncs; ++k) {
    if (!which.takes()) continue;
    Story story;
    ASSERT_NO_FATAL_FAILURE(prepare(story));
    story.disk.lie_at_sync(k);
    ASSERT_NO_FATAL_FAILURE(go_on(story));
    EXPECT_NE(lose_power_everywhere(story, seed).wrong, "") << "without its fsync number " << k << " of " << syncs;
  }
}

TEST(PowerLoss, FindsEveryFsyncThatIsMissing) { test::for_each_seed({.fixed = {1}}, lose_power_without_each_fsync); }

}  // namespace
}  // namespace rekindle
