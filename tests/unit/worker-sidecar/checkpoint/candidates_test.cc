#include "worker-sidecar/checkpoint/candidates.h"

#include <gtest/gtest.h>

#include "tests/unit/worker-sidecar/checkpoint/job.h"

namespace rekindle {
namespace {

// The folder of a job, written as a story.
class Story {
 public:
  Story& attempt(std::uint64_t number, std::optional<ParentPoint> parent = {}) {
    scan_.attempts.push_back({number, AttemptRecord{.attempt = number, .parent = parent}});
    parents_[number] = parent;
    return *this;
  }
  Story& checkpoint(std::uint64_t attempt, std::uint64_t step, const std::string& nonce = "x", std::uint64_t term = 1,
                    JobIdentity job = kJob) {
    const FolderName name{attempt, step, nonce};
    Manifest manifest{.job = std::move(job),
                      .attempt = attempt,
                      .step = step,
                      .term = term,
                      .world_size = 1,
                      .parent = parents_[attempt]};
    scan_.folders.push_back({checkpoint_folder_name(name), name, SealedManifest{std::move(manifest), "hash"}});
    return *this;
  }
  Story& incomplete(std::uint64_t attempt, std::uint64_t step) {
    const FolderName name{attempt, step, "x"};
    scan_.folders.push_back({checkpoint_folder_name(name), name, std::nullopt});
    return *this;
  }
  Story& unread(std::uint64_t attempt, std::uint64_t step, ErrorCode code = ErrorCode::io) {
    const FolderName name{attempt, step, "x"};
    scan_.folders.push_back({checkpoint_folder_name(name), name, fail(code, "reading the manifest failed")});
    return *this;
  }
  Story& unread_attempt(std::uint64_t number) {
    scan_.attempts.push_back({number, fail(ErrorCode::io, "reading the record failed")});
    return *this;
  }
  std::string newest_unread() const {
    const std::optional<Error> unread = order_candidates(scan_, kJob).unread;
    return unread ? unread->message : "";
  }
  FolderScan& scan() { return scan_; }

  std::vector<std::string> usable() const {
    std::vector<std::string> paths;
    for (const Candidate& candidate : order_candidates(scan_, kJob).usable) paths.push_back(candidate.path);
    return paths;
  }
  std::string reason_of(const std::string& path) const {
    for (const RefusedFolder& refused : order_candidates(scan_, kJob).refused) {
      if (refused.path == path) return refused.reason;
    }
    return "";
  }

 private:
  FolderScan scan_;
  std::map<std::uint64_t, std::optional<ParentPoint>> parents_;
};

using Paths = std::vector<std::string>;

TEST(Candidates, AnEmptyFolderHasNone) {
  const CandidateOrder order = order_candidates({}, kJob);
  EXPECT_TRUE(order.usable.empty());
  EXPECT_TRUE(order.refused.empty());
  EXPECT_EQ(newest_attempt({}), 0u);
}

TEST(Candidates, NewestStepComesFirst) {
  EXPECT_EQ(Story().attempt(1).checkpoint(1, 9).checkpoint(1, 100).checkpoint(1, 20).usable(),
            (Paths{"a1-s100-x", "a1-s20-x", "a1-s9-x"}));
}

TEST(Candidates, StepsBeyondThePointWhereTheNextAttemptLeftAreRefused) {
  Story story;
  story.attempt(1)
      .checkpoint(1, 100)
      .checkpoint(1, 184)
      .checkpoint(1, 190)
      .attempt(2, ParentPoint{1, 184, "a1-s184-x"})
      .checkpoint(2, 186);
  EXPECT_EQ(story.usable(), (Paths{"a2-s186-x", "a1-s184-x", "a1-s100-x"}));
  EXPECT_EQ(story.reason_of("a1-s190-x"), "attempt 2 left attempt 1 at step 184, this is step 190");
}

TEST(Candidates, AnAbandonedLineIsRefusedEvenWhenItsStepIsHigher) {
  Story story;
  story.attempt(1)
      .checkpoint(1, 100)
      .attempt(2, ParentPoint{1, 100, "a1-s100-x"})
      .checkpoint(2, 900)
      .attempt(3, ParentPoint{1, 100, "a1-s100-x"});
  EXPECT_EQ(story.usable(), (Paths{"a1-s100-x"}));
  EXPECT_EQ(story.reason_of("a2-s900-x"), "attempt 2 was abandoned: the newest attempt does not descend from it");
}

TEST(Candidates, AnAttemptThatBeganAtZeroLeavesEverythingBehind) {
  EXPECT_EQ(Story().attempt(1).checkpoint(1, 100).attempt(2).usable(), Paths{});
}

TEST(Candidates, ALimitOfAnOlderAttemptReachesThroughTheChain) {
  Story story;
  story.attempt(1)
      .checkpoint(1, 50)
      .checkpoint(1, 60)
      .attempt(2, ParentPoint{1, 50, "a1-s50-x"})
      .checkpoint(2, 70)
      .checkpoint(2, 80)
      .attempt(3, ParentPoint{2, 70, "a2-s70-x"});
  EXPECT_EQ(story.usable(), (Paths{"a2-s70-x", "a1-s50-x"}));
}

TEST(Candidates, OneStepPublishedTwiceIsTriedByLaterTermFirst) {
  EXPECT_EQ(Story().attempt(1).checkpoint(1, 10, "old", 1).checkpoint(1, 10, "new", 2).usable(),
            (Paths{"a1-s10-new", "a1-s10-old"}));
}

TEST(Candidates, ANewerOneThatStorageDidNotGiveIsTold) {
  EXPECT_EQ(Story().attempt(1).checkpoint(1, 10).unread(1, 20).newest_unread(),
            "reading the manifest failed. No older checkpoint is taken instead, because a1-s20-x may be whole: make "
            "the storage readable and start again, or move a1-s20-x away to go on from the one before it");
  EXPECT_NE(Story().attempt(1).unread(1, 20).newest_unread(), "");
  EXPECT_NE(Story().attempt(1).checkpoint(1, 10).unread(1, 20, ErrorCode::refused).newest_unread(), "");
  EXPECT_NE(Story().attempt(1).checkpoint(1, 10).unread_attempt(2).newest_unread(), "");
}

TEST(Candidates, OneThatIsDamagedOrOlderOrAbandonedIsNotWaitedFor) {
  EXPECT_EQ(Story().attempt(1).checkpoint(1, 10).unread(1, 20, ErrorCode::corrupt).newest_unread(), "");
  EXPECT_EQ(Story().attempt(1).checkpoint(1, 10).unread(1, 20, ErrorCode::invalid_input).newest_unread(), "");
  EXPECT_EQ(Story().attempt(1).checkpoint(1, 20).unread(1, 10).newest_unread(), "");
  EXPECT_EQ(
      Story().attempt(1).checkpoint(1, 10).attempt(2, ParentPoint{1, 10, "a1-s10-x"}).unread(1, 20).newest_unread(),
      "");
  EXPECT_EQ(Story().unread_attempt(1).attempt(2).checkpoint(2, 10).newest_unread(), "");
}

TEST(Candidates, WhatDidNotFinishSaysSo) {
  Story story;
  story.attempt(1).checkpoint(1, 10).incomplete(1, 11);
  EXPECT_EQ(story.usable(), (Paths{"a1-s10-x"}));
  EXPECT_EQ(story.reason_of("a1-s11-x"), "it has no manifest: the save did not finish");
}

TEST(Candidates, AManifestThatCannotBeReadIsRefusedWithItsReason) {
  Story story;
  story.attempt(1).checkpoint(1, 10).checkpoint(1, 11);
  story.scan().folders.back().manifest = fail(ErrorCode::corrupt, "the manifest is cut short");
  EXPECT_EQ(story.usable(), (Paths{"a1-s10-x"}));
  EXPECT_EQ(story.reason_of("a1-s11-x"), "the manifest is cut short");
}

TEST(Candidates, AForeignJobsCheckpointIsRefused) {
  Story story;
  story.attempt(1).checkpoint(1, 10).checkpoint(1, 11, "x", 1, {"team-a", "other", "1"});
  EXPECT_EQ(story.usable(), (Paths{"a1-s10-x"}));
  EXPECT_EQ(story.reason_of("a1-s11-x"), "the checkpoint belongs to job team-a/other, not to team-a/digits");
}

TEST(Candidates, ARenamedFolderIsRefused) {
  Story story;
  story.attempt(1).checkpoint(1, 10);
  story.scan().folders[0].name.step = 500;
  EXPECT_EQ(story.usable(), Paths{});
}

TEST(Candidates, ALostRecordIsReplacedByWhatTheManifestsSay) {
  Story story;
  story.attempt(1)
      .checkpoint(1, 100)
      .checkpoint(1, 184)
      .attempt(2, ParentPoint{1, 100, "a1-s100-x"})
      .checkpoint(2, 110);
  story.scan().attempts.pop_back();
  EXPECT_EQ(story.usable(), (Paths{"a2-s110-x", "a1-s100-x"}));
  EXPECT_EQ(order_candidates(story.scan(), kJob).notes.size(), 1u);
}

TEST(Candidates, AnUnreadableRecordOfAnAttemptThatPublishedNothingIsSteppedOver) {
  Story story;
  story.attempt(1).checkpoint(1, 100).attempt(2, ParentPoint{1, 100, "a1-s100-x"});
  story.scan().attempts.back().record = fail(ErrorCode::corrupt, "damaged");
  EXPECT_EQ(story.usable(), (Paths{"a1-s100-x"}));
  EXPECT_EQ(newest_attempt(story.scan()), 2u);
}

}  // namespace
}  // namespace rekindle
