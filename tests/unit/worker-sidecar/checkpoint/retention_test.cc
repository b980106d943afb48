#include "worker-sidecar/checkpoint/retention.h"

#include <gtest/gtest.h>

#include "tests/unit/worker-sidecar/checkpoint/job.h"

namespace rekindle {
namespace {

const ParentPoint kParent{1, 30, "a1-s30-x"};

FoundFolder complete(std::uint64_t attempt, std::uint64_t step, std::optional<ParentPoint> parent = {}) {
  const FolderName name{attempt, step, "x"};
  Manifest manifest{.job = kJob, .attempt = attempt, .step = step, .world_size = 1, .parent = std::move(parent)};
  return {checkpoint_folder_name(name), name, SealedManifest{std::move(manifest), "hash"}};
}

FoundFolder incomplete(std::uint64_t attempt, std::uint64_t step) {
  const FolderName name{attempt, step, "x"};
  return {checkpoint_folder_name(name), name, std::nullopt};
}

FoundFolder unreadable(std::uint64_t attempt, std::uint64_t step) {
  FoundFolder folder = incomplete(attempt, step);
  folder.manifest = fail(ErrorCode::refused, "the manifest has version 9");
  return folder;
}

FoundAttempt record(std::uint64_t attempt, std::optional<ParentPoint> parent = {}) {
  return {attempt, AttemptRecord{.attempt = attempt, .parent = std::move(parent)}};
}

std::vector<std::string> removed(const FolderScan& scan, RetentionPolicy policy) {
  std::vector<std::string> paths;
  for (const Removal& removal : plan_retention(scan, kJob, policy)) paths.push_back(removal.path);
  return paths;
}

using Paths = std::vector<std::string>;

TEST(Retention, TheNewestStay) {
  const FolderScan scan{{record(1)}, {complete(1, 10), complete(1, 20), complete(1, 30), complete(1, 40)}};
  EXPECT_EQ(removed(scan, {.keep = 3, .own_attempt = 1}), (Paths{"a1-s10-x"}));
  EXPECT_EQ(removed(scan, {.keep = 9, .own_attempt = 1}), Paths{});
}

TEST(Retention, TheLastOneNeverGoes) {
  const FolderScan scan{{record(1)}, {complete(1, 10), complete(1, 20)}};
  EXPECT_EQ(removed(scan, {.keep = 0, .own_attempt = 1}), (Paths{"a1-s10-x"}));
}

TEST(Retention, ALateProcessOfAnOldAttemptRemovesNothing) {
  const FolderScan scan{{record(1), record(2, kParent)}, {complete(1, 10), complete(1, 20), complete(1, 30)}};
  EXPECT_EQ(removed(scan, {.keep = 1, .own_attempt = 1}), Paths{});
  EXPECT_EQ(removed(scan, {.keep = 1, .own_attempt = 2}), (Paths{"a1-s20-x", "a1-s10-x"}));
}

TEST(Retention, NothingGoesWhileNothingIsUsable) {
  const FolderScan scan{{record(1), record(2)}, {complete(1, 10), incomplete(1, 20)}};
  EXPECT_EQ(removed(scan, {.keep = 1, .own_attempt = 2}), Paths{});
}

TEST(Retention, UnfinishedSavesOfEarlierAttemptsGoAfterANewerOneIsDurable) {
  const FolderScan scan{
      {record(1), record(2, kParent)},
      {complete(1, 30), incomplete(1, 50), complete(2, 40, kParent), incomplete(2, 35), incomplete(2, 45)}};
  EXPECT_EQ(removed(scan, {.keep = 3, .own_attempt = 2}), (Paths{"a1-s50-x"}));
}

TEST(Retention, UnfinishedSavesStayUntilThen) {
  const FolderScan scan{{record(1), record(2, kParent)}, {complete(1, 30), incomplete(1, 50)}};
  EXPECT_EQ(removed(scan, {.keep = 3, .own_attempt = 2}), Paths{});
}

TEST(Retention, AbandonedStepsGoAndWhatNobodyUnderstandsStays) {
  const FolderScan scan{{record(1), record(2, kParent)},
                        {complete(1, 30), complete(1, 33), unreadable(1, 34), complete(2, 40, kParent)}};
  EXPECT_EQ(removed(scan, {.keep = 3, .own_attempt = 2}), (Paths{"a1-s33-x"}));
}

FoundFolder made_at(std::uint64_t step, const std::string& time) {
  FoundFolder folder = complete(1, step);
  (*folder.manifest)->manifest.time = time;
  return folder;
}

TEST(Retention, KeepsOneOfEachTimeInstead) {
  const FolderScan scan{
      {record(1)},
      {made_at(10, "2026-11-21T10:00:00Z"), made_at(20, "2026-11-21T10:04:00.5Z"), made_at(30, "2026-11-21T10:10:00Z"),
       made_at(40, "2026-11-21T10:19:59Z"), made_at(50, "2026-11-21T10:20:30Z")}};
  const RetentionPolicy policy{.keep = 1, .keep_one_each = std::chrono::minutes(10), .own_attempt = 1};
  EXPECT_EQ(removed(scan, policy), (Paths{"a1-s20-x", "a1-s40-x"}));
}

TEST(Retention, ATimeAheadOfAllOthersRemovesNoneOfThoseAfterIt) {
  const FolderScan scan{
      {record(1)},
      {made_at(10, "2026-11-21T10:00:00Z"), made_at(20, "2030-01-01T00:00:00Z"), made_at(30, "2026-11-21T10:20:00Z"),
       made_at(40, "2026-11-21T10:40:00Z"), made_at(50, "2026-11-21T11:00:00Z")}};
  EXPECT_EQ(removed(scan, {.keep = 1, .keep_one_each = std::chrono::minutes(10), .own_attempt = 1}), Paths{});
}

TEST(Retention, OfATimeThatCannotBeReadNothingGoes) {
  const FolderScan scan{
      {record(1)},
      {made_at(10, "yesterday"), made_at(20, "2026-13-41T10:04:00Z"), made_at(30, "2026-11-21T10:10:00Z")}};
  EXPECT_EQ(removed(scan, {.keep = 1, .keep_one_each = std::chrono::minutes(10), .own_attempt = 1}), Paths{});
}

}  // namespace
}  // namespace rekindle
