#include "operator/faults/volcano_restart.h"

#include <gtest/gtest.h>

namespace rekindle::op {
namespace {

using std::chrono::seconds;

const WallTime kRestarted = *parse_wall_time("2026-11-21T10:00:00Z");

// A job that was restarted once and runs again, and a pod of before that.
struct Restarted {
  Restarted() {
    job.version = 3;
    job.phase = JobPhase::running;
    job.phase_since = kRestarted;
    pod.job_version = 2;
    pod.phase = PodPhase::running;
  }
  void deleted_at(WallTime time) {
    pod.deletion_time = time + seconds(30);
    pod.deletion_grace_seconds = 30;
  }

  Job job;
  Pod pod;
};

TEST(EndedByRestart, OlderPodsWhileVolcanoRestarts) {
  Restarted seen;
  seen.job.phase = JobPhase::restarting;
  EXPECT_TRUE(ended_by_restart(seen.job, seen.pod));
  seen.pod.job_version = 3;
  EXPECT_FALSE(ended_by_restart(seen.job, seen.pod));
}

TEST(EndedByRestart, AnOlderPodThatWasDeletedBeforeTheJobMovedOn) {
  Restarted seen;
  seen.deleted_at(kRestarted - seconds(5));
  EXPECT_TRUE(ended_by_restart(seen.job, seen.pod));
}

TEST(EndedByRestart, NotAnOlderPodThatLivesOn) {
  Restarted seen;
  EXPECT_FALSE(ended_by_restart(seen.job, seen.pod));
}

TEST(EndedByRestart, NotAnOlderPodThatSomebodyDeletesLater) {
  Restarted seen;
  seen.deleted_at(kRestarted + seconds(60));
  EXPECT_FALSE(ended_by_restart(seen.job, seen.pod));
}

TEST(EndedByRestart, APodThatVolcanoHasMarked) {
  Restarted seen;
  seen.pod.job_version = 3;
  seen.pod.out_of_sync = true;
  EXPECT_TRUE(ended_by_restart(seen.job, seen.pod));
}

TEST(OnlySyncs, EveryOlderPodWhetherItLivesOnOrNot) {
  Restarted seen;
  EXPECT_TRUE(only_syncs(seen.job, seen.pod));
  seen.pod.job_version = 3;
  EXPECT_FALSE(only_syncs(seen.job, seen.pod));
}

}  // namespace
}  // namespace rekindle::op
