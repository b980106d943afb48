// What is chosen where several things can be said or done: the save that counts, pods that somebody
// else has decided about, news that people know.
#include <gtest/gtest.h>

#include <algorithm>

#include "operator/reconcile/reconcile.h"

namespace rekindle::op {
namespace {

using std::chrono::seconds;

const WallTime kNoon = *parse_wall_time("2026-11-21T12:00:00Z");

// A job of two pods that has trained for a while.
struct TrainingJob {
  TrainingJob() {
    seen.webhook = {.answers = true, .answering_since = kNoon - seconds(3600)};
    seen.operator_started = kNoon - seconds(3600);
    seen.certificate_ensured = true;
    Job job{.namespace_name = "team-a", .name = "digits", .uid = "j1", .phase = JobPhase::running};
    job.settings.scheduling = "grace";
    job.tasks = {{.name = "worker", .replicas = 2, .is_protected = true}};
    seen.job = std::make_shared<Job>(job);
    for (std::int32_t i = 0; i < 2; ++i) {
      const std::string name = "digits-worker-" + std::to_string(i);
      const std::string uid = "u" + std::to_string(i);
      seen.pods.push_back(std::make_shared<Pod>(Pod{.namespace_name = "team-a",
                                                    .name = name,
                                                    .uid = uid,
                                                    .job_name = "digits",
                                                    .job_uid = "j1",
                                                    .task = "worker",
                                                    .created = kNoon - seconds(600),
                                                    .index = i,
                                                    .phase = PodPhase::running,
                                                    .is_protected = true,
                                                    .injected = true}));
      seen.reports.push_back({.sender = {.pod_name = name, .pod_uid = uid, .ordinal = static_cast<std::uint32_t>(i)},
                              .sync = {.attempt = 1, .step = 100, .phase = SidecarPhase::training},
                              .received = kNoon,
                              .phase_since = kNoon - seconds(500),
                              .attempt_since = kNoon - seconds(500)});
    }
  }

  void park() {
    for (SidecarReport& report : seen.reports) report.sync.phase = SidecarPhase::parked;
  }

  // The record of a fault, whose attempt the two pods are of.
  void record_fault(BreakpointState state) {
    Breakpoint record{.namespace_name = "team-a",
                      .name = "digits-1",
                      .uid = "b1",
                      .resource_version = "7",
                      .created = kNoon - seconds(5),
                      .owner_uid = "j1"};
    record.spec = {.job_name = "digits", .job_uid = "j1", .trigger = Trigger::container_died};
    record.spec.pods = {{"digits-worker-0", "u0"}, {"digits-worker-1", "u1"}};
    record.status.state = state;
    seen.breakpoints = {std::make_shared<Breakpoint>(record)};
  }

  template <typename Kind>
  std::vector<Kind> wants() const {
    std::vector<Kind> found;
    for (const Action& action : reconcile(seen, {}, kNoon).actions) {
      if (const Kind* each = std::get_if<Kind>(&action)) found.push_back(*each);
    }
    return found;
  }

  Observation seen{.namespace_name = "team-a", .job_name = "digits"};
};

// A round of a higher term may have been left behind at an earlier step.
TEST(ReconcileChoices, OfTwoSavesTheOneThatGotFurtherIsRecorded) {
  TrainingJob job;
  job.record_fault(BreakpointState::requested);
  job.seen.reports[0].sync.breakpoints = {
      {.id = "digits-1", .term = 1, .state = SaveState::durable, .step = 200, .path = "further"}};
  job.seen.reports[1].sync.breakpoints = {
      {.id = "digits-1", .term = 5, .state = SaveState::durable, .step = 150, .path = "later"}};
  const std::vector<WriteBreakpointStatus> writes = job.wants<WriteBreakpointStatus>();
  ASSERT_EQ(writes.size(), 1u);
  EXPECT_EQ(writes[0].status.path, "further");
}

TEST(ReconcileChoices, ParkedPodsThatNoRecordNamesAreRestarted) {
  TrainingJob job;
  job.park();
  EXPECT_EQ(job.wants<DeletePod>().size(), 2u);
}

// Such as one that was left to people, because the program fails again and again.
TEST(ReconcileChoices, ParkedPodsOfARecordThatIsClosedAreLeftAsTheyAre) {
  TrainingJob job;
  job.park();
  job.record_fault(BreakpointState::failed);
  EXPECT_TRUE(job.wants<DeletePod>().empty());
}

TEST(ReconcileChoices, WhatWasRecordedForPeopleIsNotRecordedAgain) {
  TrainingJob job;
  job.seen.reports[0].sync.problems = {{"storage", "the checkpoint folder is read-only: mount it writable"}};
  const std::vector<RecordEvent> events = job.wants<RecordEvent>();
  ASSERT_EQ(events.size(), 1u);
  job.seen.events_recorded.insert(events[0].once_key);
  EXPECT_TRUE(job.wants<RecordEvent>().empty());
}

}  // namespace
}  // namespace rekindle::op
