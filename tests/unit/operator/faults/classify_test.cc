#include "operator/faults/classify.h"

#include <gtest/gtest.h>

#include <functional>

namespace rekindle::op {
namespace {

const WallTime kNow = *parse_wall_time("2026-11-21T10:00:00Z");

struct Seen {
  Job job;
  Pod pod;
  SidecarReport report;
  bool has_report = true;
  bool kills_are_marked = false;
};

Seen make_seen() {
  Seen seen;
  seen.job.name = "digits";
  seen.job.uid = "j1";
  seen.job.phase = JobPhase::running;
  seen.job.version = 2;
  seen.job.tasks = {{.name = "worker", .replicas = 2, .is_protected = true}};
  seen.pod = {.name = "digits-worker-1",
              .uid = "p1",
              .job_name = "digits",
              .job_uid = "j1",
              .task = "worker",
              .job_version = 2,
              .index = 1,
              .phase = PodPhase::running,
              .is_protected = true,
              .injected = true};
  seen.report.sync.phase = SidecarPhase::training;
  seen.report.sync.attempt = 1;
  return seen;
}

void deleted(Seen& seen) {
  seen.pod.deletion_time = kNow + std::chrono::seconds(30);
  seen.pod.deletion_grace_seconds = 30;
}
void evicted(Seen& seen) {
  deleted(seen);
  seen.pod.disruption = "PreemptionByScheduler";
}
void died(Seen& seen, int exit_code, const char* reason = "Error") {
  seen.pod.ended.push_back(
      {.name = "main", .reason = reason, .exit_code = exit_code, .finished = kNow - std::chrono::seconds(5)});
}

std::string_view verdict(const std::function<void(Seen&)>& change) {
  Seen seen = make_seen();
  change(seen);
  return classify({&seen.job, &seen.pod, seen.has_report ? &seen.report : nullptr, seen.kills_are_marked}).by;
}

TEST(Classify, ARunningPodIsNoFault) {
  EXPECT_EQ(verdict([](Seen&) {}), "nothing_happened");
}

TEST(Classify, NamesWhatHappened) {
  struct Row {
    const char* expected;
    std::function<void(Seen&)> change;
  };
  const Row rows[] = {
      {"pod_evicted", evicted},
      {"pod_evicted",
       [](Seen& s) {
         s.pod.phase = PodPhase::failed;
         s.pod.reason = "Evicted";
       }},
      {"pod_deleted", deleted},
      {"out_of_memory", [](Seen& s) { died(s, 137, "OOMKilled"); }},
      {"container_died", [](Seen& s) { died(s, 1); }},
      {"container_died", [](Seen& s) { died(s, 137); }},
      {"container_died",
       [](Seen& s) {
         s.has_report = false;
         died(s, 139);
       }},
      {"container_died",
       [](Seen& s) {
         died(s, 0);
         died(s, 2);
       }},
      {"pod_failed", [](Seen& s) { s.pod.phase = PodPhase::failed; }},
      // A main that ends well because it was told to end is a deletion all the same.
      {"pod_deleted",
       [](Seen& s) {
         deleted(s);
         s.pod.ended = {{.name = "main", .exit_code = 0, .finished = kNow + std::chrono::seconds(1)}};
       }},
  };
  for (const Row& row : rows) EXPECT_EQ(verdict(row.change), row.expected);
}

TEST(Classify, ADutyIsNoFault) {
  struct Row {
    const char* expected;
    std::function<void(Seen&)> change;
  };
  const Row rows[] = {
      {"never_protected",
       [](Seen& s) {
         evicted(s);
         s.pod.injected = false;
       }},
      {"never_protected",
       [](Seen& s) {
         evicted(s);
         s.pod.is_protected = false;
       }},
      {"another_jobs_pod",
       [](Seen& s) {
         evicted(s);
         s.job.uid = "j2";
       }},
      {"job_deleted",
       [](Seen& s) {
         deleted(s);
         s.job.deleting = true;
       }},
      {"job_suspended",
       [](Seen& s) {
         deleted(s);
         s.job.phase = JobPhase::aborting;
       }},
      {"job_suspended",
       [](Seen& s) {
         deleted(s);
         s.job.phase = JobPhase::aborted;
       }},
      {"job_ending",
       [](Seen& s) {
         deleted(s);
         s.job.phase = JobPhase::terminating;
       }},
      {"job_ending",
       [](Seen& s) {
         deleted(s);
         s.job.phase = JobPhase::completing;
       }},
      {"job_ending",
       [](Seen& s) {
         died(s, 1);
         s.job.phase = JobPhase::failed;
       }},
      {"volcano_restart",
       [](Seen& s) {
         deleted(s);
         s.job.phase = JobPhase::restarting;
       }},
      {"volcano_restart",
       [](Seen& s) {
         deleted(s);
         s.job.version = 3;
       }},
      {"volcano_restart",
       [](Seen& s) {
         deleted(s);
         s.job.version = 3;
         s.job.phase_since = kNow;
       }},
      {"volcano_restart",
       [](Seen& s) {
         deleted(s);
         s.pod.out_of_sync = true;
       }},
      {"scaled_down",
       [](Seen& s) {
         deleted(s);
         s.job.tasks[0].replicas = 1;
       }},
      {"completed", [](Seen& s) { died(s, 0); }},
      {"completed", [](Seen& s) { s.pod.phase = PodPhase::succeeded; }},
      {"completed",
       [](Seen& s) {
         died(s, 0);
         deleted(s);
       }},
      {"completed",
       [](Seen& s) {
         died(s, 3);
         s.report.sync.phase = SidecarPhase::finished;
       }},
      // Set before a delete that was then refused: alone it proves nothing.
      {"nothing_happened", [](Seen& s) { s.pod.disruption = "EvictionByEvictionAPI"; }},
  };
  for (const Row& row : rows) EXPECT_EQ(verdict(row.change), row.expected);
}

TEST(Classify, AFaultThatVolcanoAnswersStaysAFault) {
  EXPECT_EQ(verdict([](Seen& s) {
              evicted(s);
              s.job.phase = JobPhase::restarting;
            }),
            "pod_evicted");
  EXPECT_EQ(verdict([](Seen& s) {
              died(s, 1);
              s.job.version = 3;
            }),
            "container_died");
  EXPECT_EQ(verdict([](Seen& s) {
              died(s, 1);
              deleted(s);
              s.pod.out_of_sync = true;
            }),
            "container_died");
}

TEST(Classify, WhereVolcanoMarksWhatItKillsAPodWithoutTheMarkWasDeletedBySomebodyElse) {
  const auto restarting = [](Seen& s) {
    deleted(s);
    s.job.phase = JobPhase::restarting;
    s.job.version = 3;
  };
  EXPECT_EQ(verdict([&](Seen& s) { restarting(s); }), "volcano_restart");
  EXPECT_EQ(verdict([&](Seen& s) {
              restarting(s);
              s.kills_are_marked = true;
            }),
            "pod_deleted");
  EXPECT_EQ(verdict([&](Seen& s) {
              restarting(s);
              s.kills_are_marked = true;
              s.pod.out_of_sync = true;
            }),
            "volcano_restart");
}

TEST(Classify, APodWhoseRanksWereParkedLongBeforeIsNoLoss) {
  const auto parked = [](Seen& s, int seconds_before) {
    deleted(s);
    s.report.sync.phase = SidecarPhase::parked;
    s.report.phase_since = *deletion_began(s.pod) - std::chrono::seconds(seconds_before);
  };
  EXPECT_EQ(verdict([&](Seen& s) { parked(s, 10); }), "parked_before");
  EXPECT_EQ(verdict([&](Seen& s) { parked(s, 1); }), "pod_deleted")
      << "parked by the hook of this deletion, as far as one knows";
  EXPECT_EQ(verdict([&](Seen& s) {
              parked(s, 10);
              evicted(s);
            }),
            "pod_evicted");
}

TEST(Classify, APodThatARestartLeftAliveIsOneLikeAnyOther) {
  const auto left_alive = [](Seen& s) {
    s.job.version = 3;
    s.job.phase_since = kNow - std::chrono::minutes(1);
  };
  EXPECT_EQ(verdict([&](Seen& s) { left_alive(s); }), "nothing_happened");
  EXPECT_EQ(verdict([&](Seen& s) {
              left_alive(s);
              deleted(s);
            }),
            "pod_deleted");
  EXPECT_EQ(verdict([&](Seen& s) {
              left_alive(s);
              died(s, 1);
            }),
            "container_died");
}

TEST(Classify, SaysItInASentence) {
  Seen seen = make_seen();
  died(seen, 139);
  const Verdict found = classify({&seen.job, &seen.pod, &seen.report});
  ASSERT_TRUE(found.fault);
  EXPECT_EQ(found.fault->message, "container main of pod digits-worker-1 died (exit code 139, signal 11)");
  EXPECT_EQ(found.fault->seen, kNow - std::chrono::seconds(5));
  EXPECT_EQ(found.fault->trigger, Trigger::container_died);
}

TEST(Classify, EveryLinkHasANameOfItsOwn) {
  std::vector<std::string_view> names;
  for (const BenignCause& each : benign_causes()) names.push_back(each.name);
  for (const Classifier& each : classifiers()) names.push_back(each.name);
  std::vector<std::string_view> unique = names;
  std::sort(unique.begin(), unique.end());
  unique.erase(std::unique(unique.begin(), unique.end()), unique.end());
  EXPECT_EQ(unique.size(), names.size());
}

}  // namespace
}  // namespace rekindle::op
