// Edges of the decision that the scenarios (tests/scenario/operator) do not reach.
#include "operator/reconcile/reconcile.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "common/base/format.h"
#include "operator/model/names.h"

namespace rekindle::op {
namespace {

using std::chrono::seconds;

const WallTime kNow = *parse_wall_time("2026-11-21T10:00:00Z");

struct Story {
  Story() {
    job.namespace_name = "team-a";
    job.name = "digits";
    job.uid = "j1";
    job.phase = JobPhase::running;
    job.settings.scheduling = "grace";
    job.tasks = {{.name = "worker", .replicas = 2, .is_protected = true}};
    for (std::int32_t i = 0; i < 2; ++i) {
      const std::string text = std::to_string(i);
      pods.push_back({.namespace_name = "team-a",
                      .name = "digits-worker-" + text,
                      .uid = "u" + text,
                      .job_name = "digits",
                      .job_uid = "j1",
                      .task = "worker",
                      .created = kNow - seconds(600),
                      .index = i,
                      .phase = PodPhase::running,
                      .is_protected = true,
                      .injected = true});
      reports.push_back({.sender = {.pod_name = "digits-worker-" + text,
                                    .pod_uid = "u" + text,
                                    .ordinal = static_cast<std::uint32_t>(i)},
                         .sync = {.attempt = 1, .step = 100, .phase = SidecarPhase::training},
                         .received = kNow,
                         .phase_since = kNow - seconds(500),
                         .attempt_since = kNow - seconds(500)});
    }
  }

  Plan plan() const {
    Observation seen{.namespace_name = "team-a", .job_name = "digits", .job = std::make_shared<Job>(job)};
    for (const Pod& pod : pods) seen.pods.push_back(std::make_shared<Pod>(pod));
    for (const Breakpoint& each : breakpoints) seen.breakpoints.push_back(std::make_shared<Breakpoint>(each));
    seen.reports = reports;
    seen.gone_pods = gone_pods;
    seen.webhook = webhook;
    seen.operator_started = operator_started;
    seen.certificate_ensured = true;
    seen.writes_unseen = writes_unseen;
    return reconcile(seen, {}, kNow);
  }

  void remove(std::size_t index, seconds ago) {
    pods[index].deletion_grace_seconds = 75;
    pods[index].deletion_time = kNow - ago + seconds(75);
  }

  // The pod goes, and Volcano restarts the job.
  void take_away(std::size_t index) {
    gone_pods.push_back({std::make_shared<Pod>(pods[index]), std::make_shared<Job>(job), kNow});
    pods.erase(pods.begin() + static_cast<std::ptrdiff_t>(index));
    job.phase = JobPhase::restarting;
    job.version = 1;
    job.phase_since = kNow;
    for (Pod& pod : pods) {
      pod.out_of_sync = true;
      pod.deletion_grace_seconds = 75;
      pod.deletion_time = kNow + seconds(75);
    }
  }

  Breakpoint& add_breakpoint(const std::string& name, Trigger trigger, BreakpointState state, seconds age) {
    Breakpoint each{.namespace_name = "team-a",
                    .name = name,
                    .uid = name,
                    .resource_version = "7",
                    .generation = 1,
                    .created = kNow - age,
                    .owner_uid = "j1"};
    each.spec.job_name = "digits";
    each.spec.job_uid = "j1";
    each.spec.trigger = trigger;
    if (!training_goes_on(trigger)) each.spec.pods = {{"digits-worker-0", "u0"}, {"digits-worker-1", "u1"}};
    each.status.state = state;
    breakpoints.push_back(each);
    return breakpoints.back();
  }

  Job job;
  std::vector<Pod> pods;
  std::vector<SidecarReport> reports;
  std::vector<GonePod> gone_pods;
  std::vector<Breakpoint> breakpoints;
  WebhookHealth webhook{.answers = true, .answering_since = kNow - seconds(3600)};
  WallTime operator_started = kNow - seconds(3600);
  std::uint32_t writes_unseen = 0;
};

template <typename Kind>
std::vector<Kind> all(const Plan& plan) {
  std::vector<Kind> found;
  for (const Action& action : plan.actions) {
    if (const Kind* each = std::get_if<Kind>(&action)) found.push_back(*each);
  }
  return found;
}

// Seen on a cluster: the pods were deleted in the same moment, "since the job was scaled".
TEST(Reconcile, PodsThatAreParkedForAFaultAreNotRestartedBesideIt) {
  Story story;
  for (SidecarReport& report : story.reports) {
    report.sync.phase = SidecarPhase::parked;
    report.phase_since = kNow - seconds(10);
  }
  story.reports[0].sync.breakpoints = {{.cause = TriggerCause::pod_lost,
                                        .pod = "digits-worker-1",
                                        .detail = "pod 1 cannot be reached",
                                        .state = SaveState::durable,
                                        .step = 100}};
  const Plan plan = story.plan();
  EXPECT_EQ(all<CreateBreakpoint>(plan).size(), 1u);
  EXPECT_TRUE(all<DeletePod>(plan).empty());
  for (const RecordEvent& event : all<RecordEvent>(plan)) EXPECT_NE(event.reason, names::reason::kStrandedPods);
}

// Seen on a cluster: rank 2 was killed, rank 0 told of its broken ring first, and the record spoke
// of CollectiveFailed in a pod where nothing was wrong.
TEST(Reconcile, ACollectiveThatFailedWaitsAMomentForTheDeathThatBrokeIt) {
  Story story;
  for (SidecarReport& report : story.reports) {
    report.sync.phase = SidecarPhase::saving;
    report.phase_since = kNow - std::chrono::milliseconds(20);
  }
  ReportedBreakpoint failed{.cause = TriggerCause::collective_failed,
                            .pod = "digits-worker-0",
                            .detail = "rank 0: rank 2: the connection ended",
                            .state = SaveState::collecting};
  story.reports[0].sync.breakpoints = {failed};
  EXPECT_TRUE(all<CreateBreakpoint>(story.plan()).empty());
  EXPECT_TRUE(story.plan().requeue_after.has_value());

  ReportedBreakpoint died = failed;
  died.cause = TriggerCause::rank_died;
  died.pod = "digits-worker-1";
  story.reports[0].sync.breakpoints = {died};
  const std::vector<CreateBreakpoint> records = all<CreateBreakpoint>(story.plan());
  ASSERT_EQ(records.size(), 1u);
  EXPECT_EQ(records[0].object.spec.trigger, Trigger::rank_died);
  EXPECT_EQ(records[0].object.spec.broken->name, "digits-worker-1");

  story.reports[0].sync.breakpoints = {failed};
  story.reports[0].phase_since = kNow - seconds(1);
  EXPECT_EQ(all<CreateBreakpoint>(story.plan()).size(), 1u) << "nobody died";
}

TEST(Reconcile, LeavesAHealthyJobAlone) {
  const Plan plan = Story().plan();
  EXPECT_TRUE(plan.actions.empty());
  EXPECT_TRUE(plan.orders.empty());
  EXPECT_FALSE(plan.hold_start);
  EXPECT_EQ(plan.requeue_after, std::nullopt);
}

TEST(Reconcile, ADeletionIsBelievedOnlyAfterVolcanoHadTimeToSayThatItWasIts) {
  Story story;
  story.remove(0, seconds(1));
  const Plan early = story.plan();
  EXPECT_TRUE(all<CreateBreakpoint>(early).empty());
  ASSERT_TRUE(early.requeue_after);
  EXPECT_EQ(*early.requeue_after, seconds(1));
  story.remove(0, seconds(2));
  EXPECT_EQ(all<CreateBreakpoint>(story.plan()).size(), 1u);
  story.job.phase = JobPhase::restarting;
  EXPECT_TRUE(story.plan().actions.empty());
}

TEST(Reconcile, ADeletionIsRecordedWhenTheJobWasRestartedBeforeItWasBelieved) {
  Story story;
  story.remove(0, seconds(1));
  story.take_away(0);
  const std::vector<CreateBreakpoint> intents = all<CreateBreakpoint>(story.plan());
  ASSERT_EQ(intents.size(), 1u);
  EXPECT_EQ(intents[0].object.spec.reason, "pod digits-worker-0 deleted");
  EXPECT_EQ(intents[0].object.spec.attempt, 1u);
  EXPECT_EQ(intents[0].object.spec.pods, (std::vector<PodRef>{{"digits-worker-0", "u0"}, {"digits-worker-1", "u1"}}));
  EXPECT_TRUE(all<DeletePod>(story.plan()).empty()) << "Volcano restarts the job";
}

TEST(Reconcile, ThePodsThatFollowTheLostOnesAreNotPartOfTheirRecord) {
  Story story;
  story.remove(0, seconds(1));
  story.take_away(0);
  Pod next = story.pods[0];
  next.name = "digits-worker-0";
  next.uid = "u2";
  next.index = 0;
  next.job_version = 1;
  next.out_of_sync = false;
  next.deletion_time.reset();
  next.created = kNow;
  story.pods.push_back(next);
  const std::vector<CreateBreakpoint> intents = all<CreateBreakpoint>(story.plan());
  ASSERT_EQ(intents.size(), 1u);
  EXPECT_EQ(intents[0].object.spec.pods, (std::vector<PodRef>{{"digits-worker-0", "u0"}, {"digits-worker-1", "u1"}}));
}

// What the sidecar that is gone has said of the save counts only where its pod is in the record.
TEST(Reconcile, APodThatTheRestartTookAwayFirstIsPartOfTheRecordOfWhatLedToIt) {
  Story story;
  story.pods[1].ended = {{.name = "main", .exit_code = 1, .finished = kNow - seconds(1)}};
  story.pods[0].out_of_sync = true;
  story.take_away(0);
  const std::vector<CreateBreakpoint> intents = all<CreateBreakpoint>(story.plan());
  ASSERT_EQ(intents.size(), 1u);
  EXPECT_EQ(intents[0].object.spec.broken->uid, "u1");
  EXPECT_EQ(intents[0].object.spec.pods, (std::vector<PodRef>{{"digits-worker-0", "u0"}, {"digits-worker-1", "u1"}}));
}

TEST(Reconcile, WhomARestartTakesAwayDoesNotTrainBesideAPodThatIsGone) {
  Story story;
  story.remove(0, seconds(1));
  story.take_away(0);
  story.job.phase = JobPhase::pending;
  const Plan plan = story.plan();
  EXPECT_EQ(all<CreateBreakpoint>(plan).size(), 1u);
  EXPECT_TRUE(std::ranges::any_of(plan.reasons, [](const std::string& reason) {
    return reason.find("while restarting -> join") != std::string::npos;
  })) << (plan.reasons.empty() ? "" : plan.reasons.front());
}

TEST(Reconcile, APodThatWentForADutyIsNotRecorded) {
  const auto recorded = [](auto change) {
    Story story;
    story.remove(0, seconds(1));
    change(story);
    return !all<CreateBreakpoint>(story.plan()).empty();
  };
  EXPECT_TRUE(recorded([](Story& s) { s.take_away(0); }));
  EXPECT_FALSE(recorded([](Story& s) {
    s.pods[0].out_of_sync = true;
    s.take_away(0);
  })) << "Volcano had marked it";
  EXPECT_FALSE(recorded([](Story& s) {
    s.job.phase = JobPhase::restarting;
    s.take_away(0);
    s.pods[0].out_of_sync = false;
  })) << "the job was restarting already, by a Volcano that marks nothing";
  EXPECT_FALSE(recorded([](Story& s) {
    s.take_away(0);
    s.job.phase = JobPhase::aborting;
  })) << "suspended";
  EXPECT_FALSE(recorded([](Story& s) {
    s.take_away(0);
    s.job.phase = JobPhase::terminating;
  })) << "terminated";
  EXPECT_FALSE(recorded([](Story& s) {
    s.take_away(0);
    s.job.deleting = true;
  })) << "the job is deleted";
  EXPECT_FALSE(recorded([](Story& s) {
    s.take_away(1);
    s.job.tasks[0].replicas = 1;
  })) << "scaled down";
  EXPECT_FALSE(recorded([](Story& s) {
    s.pods[0].injected = false;
    s.take_away(0);
  })) << "never protected";
  EXPECT_FALSE(recorded([](Story& s) {
    s.reports[0].sync.attempt = 0;
    s.take_away(0);
  })) << "it had not begun to train";
  EXPECT_FALSE(recorded([](Story& s) {
    s.reports[0].sync.phase = SidecarPhase::finished;
    s.take_away(0);
  })) << "its program was done";
  EXPECT_FALSE(recorded([](Story& s) {
    s.take_away(0);
    s.reports[1].sync.attempt = 2;
    s.pods[0].out_of_sync = false;
    s.pods[0].job_version = 1;
  })) << "another attempt has begun since";
}

TEST(Reconcile, APodThatVanishedWhileNobodyWatchedIsBelievedGoneWhenTheJobHadTimeToSayWhy) {
  Story story;
  story.gone_pods.push_back({std::make_shared<Pod>(story.pods[0]), nullptr, kNow - seconds(1)});
  story.pods.erase(story.pods.begin());
  const Plan early = story.plan();
  EXPECT_TRUE(all<CreateBreakpoint>(early).empty());
  EXPECT_TRUE(early.requeue_after);
  story.gone_pods[0].gone = kNow - seconds(2);
  EXPECT_EQ(all<CreateBreakpoint>(story.plan()).size(), 1u);
  story.job.phase = JobPhase::aborting;
  EXPECT_TRUE(all<CreateBreakpoint>(story.plan()).empty());
}

TEST(Reconcile, NothingIsDoneWhileOwnWritesAreUnseenButOrdersStay) {
  Story story;
  story.add_breakpoint("now", Trigger::user, BreakpointState::requested, seconds(1));
  EXPECT_EQ(story.plan().orders.size(), 1u);
  story.remove(0, seconds(5));
  story.writes_unseen = 1;
  const Plan plan = story.plan();
  EXPECT_TRUE(plan.actions.empty());
  EXPECT_EQ(plan.orders.size(), 1u);
}

TEST(Reconcile, AnOperatorThatHasJustStartedRecordsWhatGoesWithItsPod) {
  Story story;
  story.remove(0, seconds(5));
  story.reports.clear();
  story.operator_started = kNow - seconds(1);
  const std::vector<CreateBreakpoint> intents = all<CreateBreakpoint>(story.plan());
  ASSERT_EQ(intents.size(), 1u);
  EXPECT_EQ(intents[0].object.spec.pods.size(), 2u) << "silent sidecars may well be in the attempt";
  EXPECT_TRUE(all<DeletePod>(story.plan()).empty());
}

TEST(Reconcile, ADeadContainerBeforeTheFirstStepCostsOnlyItsPod) {
  Story story;
  for (SidecarReport& report : story.reports) {
    report.sync.attempt = 0;
    report.sync.phase = SidecarPhase::waiting;
  }
  story.pods[1].ended = {{.name = "main", .exit_code = 1, .finished = kNow - seconds(1)}};
  const std::vector<CreateBreakpoint> intents = all<CreateBreakpoint>(story.plan());
  ASSERT_EQ(intents.size(), 1u);
  EXPECT_EQ(intents[0].object.spec.pods, (std::vector<PodRef>{{"digits-worker-1", "u1"}}));
}

TEST(Reconcile, DeletesNameOnlyPodsOfTheIntent) {
  Story story;
  story.add_breakpoint("r", Trigger::container_died, BreakpointState::restarting, seconds(5)).status.restart_time =
      kNow;
  story.pods[1].uid = "u9";  // made anew meanwhile
  story.reports[1].sender.pod_uid = "u9";
  story.reports[1].sync.attempt = 0;
  story.reports[1].sync.phase = SidecarPhase::waiting;
  const std::vector<DeletePod> deletes = all<DeletePod>(story.plan());
  ASSERT_EQ(deletes.size(), 1u);
  EXPECT_EQ(deletes[0].uid, "u0");
  EXPECT_TRUE(story.plan().hold_start);
}

TEST(Reconcile, WhenVolcanoDoesNotReactInTimeTheRestIsDeleted) {
  Story story;
  story.job.policies = {{.events = {"PodEvicted"}, .action = "RestartJob"}};
  story.add_breakpoint("r", Trigger::pre_stop, BreakpointState::restarting, seconds(400)).status.restart_time =
      kNow - seconds(30);
  story.breakpoints[0].spec.broken = PodRef{"digits-worker-0", "u0"};
  story.pods.erase(story.pods.begin());
  story.reports.erase(story.reports.begin());
  EXPECT_TRUE(all<DeletePod>(story.plan()).empty());
  EXPECT_TRUE(story.plan().requeue_after);
  story.breakpoints[0].status.restart_time = kNow - seconds(61);
  EXPECT_EQ(all<DeletePod>(story.plan()).size(), 1u);
}

TEST(Reconcile, KeepsTwentyRecordsAndNeverDropsAnOpenOne) {
  Story story;
  for (int i = 0; i < 23; ++i) {
    story.add_breakpoint(format("b{}", 100 + i), Trigger::user,
                         i == 1 ? BreakpointState::saving : BreakpointState::saved, seconds(1000 - i));
  }
  std::vector<std::string> dropped;
  for (const DeleteBreakpoint& each : all<DeleteBreakpoint>(story.plan())) dropped.push_back(each.name);
  EXPECT_EQ(dropped, (std::vector<std::string>{"b100", "b102", "b103"}));
}

// A start of eight pods that all fail, each in a record of its own, as an operator made them that
// heard of one after the other.
void add_failed_start(Story& story, int start, BreakpointState last) {
  for (int pod = 0; pod < 8; ++pod) {
    Breakpoint& each =
        story.add_breakpoint(format("s{}-{}", start, pod), Trigger::container_died,
                             pod == 7 ? last : BreakpointState::superseded, seconds(1000 - 10 * start - pod));
    each.spec.pods = {{format("digits-worker-{}", pod), format("s{}u{}", start, pod)}};
  }
}

// The last pod of the newest start has been recorded, and nothing can be saved.
Plan plan_after_failed_starts(int starts) {
  Story story;
  story.reports.clear();
  story.pods.clear();
  story.job.tasks[0].replicas = 8;
  for (int start = 1; start <= starts; ++start)
    add_failed_start(story, start, start == starts ? BreakpointState::requested : BreakpointState::superseded);
  story.pods.push_back({.namespace_name = "team-a",
                        .name = "digits-worker-7",
                        .uid = format("s{}u7", starts),
                        .job_name = "digits",
                        .job_uid = "j1",
                        .task = "worker",
                        .created = kNow - seconds(20),
                        .index = 7,
                        .phase = PodPhase::failed,
                        .is_protected = true,
                        .injected = true});
  return story.plan();
}

BreakpointState state_after_failed_starts(int starts) {
  const auto writes = all<WriteBreakpointStatus>(plan_after_failed_starts(starts));
  return writes.empty() ? BreakpointState::requested : writes.front().status.state;
}

TEST(Reconcile, AStartThatFailsInEveryPodCountsOnce) {
  EXPECT_EQ(state_after_failed_starts(1), BreakpointState::restarting);
  EXPECT_EQ(state_after_failed_starts(5), BreakpointState::restarting);
  EXPECT_EQ(state_after_failed_starts(6), BreakpointState::failed);
}

TEST(Reconcile, RecordsByWhichFailedStartsAreCountedAreKept) {
  EXPECT_TRUE(all<DeleteBreakpoint>(plan_after_failed_starts(5)).empty()) << "forty, of which twenty would be kept";
  EXPECT_EQ(all<DeleteBreakpoint>(plan_after_failed_starts(26)).size(), 8u) << "two hundred is the most";
}

TEST(Reconcile, WhatIsLeftToPeopleIsToldInOneEvent) {
  std::vector<std::string> reasons;
  for (const RecordEvent& each : all<RecordEvent>(plan_after_failed_starts(6))) reasons.push_back(each.reason);
  EXPECT_EQ(reasons, (std::vector<std::string>{"BreakpointFailed"}));
}

TEST(Reconcile, ARecoveryThatWasLeftToPeopleEndsAnOlderOneThatIsOpen) {
  Story story;
  story.add_breakpoint("old", Trigger::container_died, BreakpointState::restarting, seconds(60));
  story.add_breakpoint("new", Trigger::container_died, BreakpointState::failed, seconds(30));
  const auto writes = all<WriteBreakpointStatus>(story.plan());
  ASSERT_EQ(writes.size(), 1u);
  EXPECT_EQ(writes[0].name, "old");
  EXPECT_EQ(writes[0].status.state, BreakpointState::superseded);
}

// Nothing brings back a Job that Volcano has given up.
TEST(Reconcile, ARecoveryOfAJobThatIsFailedSaysThatItHasToBeCreatedAgain) {
  Story story;
  story.add_breakpoint("r", Trigger::container_died, BreakpointState::restarting, seconds(60));
  story.job.phase = JobPhase::failed;
  const auto writes = all<WriteBreakpointStatus>(story.plan());
  ASSERT_EQ(writes.size(), 1u);
  EXPECT_EQ(writes[0].status.state, BreakpointState::ended);
  EXPECT_NE(writes[0].status.message.find("delete it and create it again"), std::string::npos)
      << writes[0].status.message;
}

TEST(Reconcile, EventsComeBehindTheWritesTheyAreAbout) {
  Story story;
  story.add_breakpoint("r", Trigger::pre_stop, BreakpointState::requested, seconds(1));
  story.reports[0].sync.phase = story.reports[1].sync.phase = SidecarPhase::parked;
  story.reports[0].sync.breakpoints = {
      {.cause = TriggerCause::hook, .state = SaveState::durable, .step = 100, .path = "a1-s100-x", .ranks = 2}};
  const Plan plan = story.plan();
  ASSERT_GE(plan.actions.size(), 2u);
  const auto first_event =
      std::ranges::find_if(plan.actions, [](const Action& a) { return std::holds_alternative<RecordEvent>(a); });
  EXPECT_TRUE(std::all_of(first_event, plan.actions.end(),
                          [](const Action& a) { return std::holds_alternative<RecordEvent>(a); }));
  EXPECT_EQ(all<WriteBreakpointStatus>(plan).at(0).resource_version, "7");
}

TEST(Reconcile, AnAgreedStepIsWrittenWhileTheWritingGoesOn) {
  Story story;
  story.add_breakpoint("r", Trigger::pre_stop, BreakpointState::requested, seconds(1));
  story.reports[0].sync.breakpoints = {{.cause = TriggerCause::hook, .state = SaveState::writing, .step = 100}};
  const std::vector<WriteBreakpointStatus> writes = all<WriteBreakpointStatus>(story.plan());
  ASSERT_EQ(writes.size(), 1u);
  EXPECT_EQ(writes[0].status.state, BreakpointState::saving);
  story.breakpoints[0].status = writes[0].status;
  EXPECT_TRUE(all<WriteBreakpointStatus>(story.plan()).empty());
}

// The job of the story is back in new pods, which have restored this; the record of the fault is
// still open.
struct Comeback : Story {
  explicit Comeback(ReportedRestore restore) {
    add_breakpoint("r", Trigger::pre_stop, BreakpointState::restarting, seconds(60));
    breakpoints[0].spec.pods = {{"digits-worker-0", "x0"}, {"digits-worker-1", "x1"}};
    breakpoints[0].status.attempt = 1;
    for (SidecarReport& report : reports) {
      report.sync.attempt = restore.attempt;
      report.sync.step = restore.first_step;
      report.sync.restored = restore;
    }
  }

  BreakpointStatus& status() { return breakpoints[0].status; }
  BreakpointStatus end() const {
    const std::vector<WriteBreakpointStatus> writes = all<WriteBreakpointStatus>(plan());
    EXPECT_EQ(writes.size(), 1u);
    return writes.empty() ? BreakpointStatus{} : writes[0].status;
  }
};

const ReportedRestore kRestore{.attempt = 2,
                               .step = 100,
                               .path = "a1-s100-x",
                               .first_step = 101,
                               .manifest_hash = "7d",
                               .bytes = 1212000,
                               .ranks = RankCounts{.expected = 4, .live = 3},
                               .agreed_milliseconds = 6};

TEST(Reconcile, TheOperatorWasAwayWhileTheSidecarsSavedAndTheRecordEndsComplete) {
  Comeback story(kRestore);
  set_condition(story.status(), "Durable", "False", "SaveFailed", "no pod of the attempt is left to tell",
                kNow - seconds(30));
  const BreakpointStatus status = story.end();
  EXPECT_EQ(status.state, BreakpointState::restored);
  EXPECT_EQ(status.step, 100u);
  EXPECT_EQ(status.path, "a1-s100-x");
  EXPECT_EQ(status.manifest_hash, "7d");
  EXPECT_EQ(status.bytes, 1212000u);
  EXPECT_EQ(status.ranks_saved, 3u);
  EXPECT_EQ(status.ranks_expected, 4u);
  EXPECT_EQ(status.agreed_milliseconds, 6u);
  EXPECT_EQ(status.durable_milliseconds, std::nullopt) << "nobody knows";
  EXPECT_EQ(status.first_step, 101u);
  EXPECT_EQ(find_condition(status, "Durable")->status, "True");
}

TEST(Reconcile, AnOperatorThatDidNotKnowTheAttemptLearnsItFromWhatWasRestored) {
  Comeback story(kRestore);
  story.status().attempt = 0;
  EXPECT_EQ(story.end().attempt, 1u);
  EXPECT_EQ(story.end().bytes, 1212000u);
}

TEST(Reconcile, WhatWasHeardOfTheSaveStays) {
  Comeback story(kRestore);
  story.status().step = 100;
  story.status().path = "a1-s100-x";
  story.status().ranks_saved = story.status().ranks_expected = 4;
  story.status().agreed_milliseconds = 5;
  set_condition(story.status(), "Durable", "True", "Published", "m", kNow - seconds(30));
  const BreakpointStatus status = story.end();
  EXPECT_EQ(status.ranks_saved, 4u);
  EXPECT_EQ(status.agreed_milliseconds, 5u);
  EXPECT_EQ(status.manifest_hash, "7d") << "this was not heard";
}

TEST(Reconcile, ARoundThatCameToNothingLeavesNothingInTheRecordOfTheNext) {
  Comeback story(kRestore);
  story.status().step = 99;
  story.status().path = "a1-s99-given-up";
  story.status().ranks_saved = story.status().ranks_expected = 4;
  story.status().agreed_milliseconds = 5;
  const BreakpointStatus status = story.end();
  EXPECT_EQ(status.path, "a1-s100-x");
  EXPECT_EQ(status.ranks_saved, 3u);
  EXPECT_EQ(status.agreed_milliseconds, 6u);
}

TEST(Reconcile, AnOlderCheckpointThatWasRestoredTellsNothingAboutThisBreakpoint) {
  Comeback story(kRestore);
  story.status().attempt = 2;  // whose own save is damaged, say
  for (SidecarReport& report : story.reports) report.sync.attempt = report.sync.restored->attempt = 3;
  const BreakpointStatus status = story.end();
  EXPECT_EQ(status.restored_step, 100u);
  EXPECT_EQ(status.step, 0u);
  EXPECT_EQ(status.bytes, 0u);
  EXPECT_EQ(find_condition(status, "Durable"), nullptr);
}

TEST(Reconcile, OnePodThatKnowsTheRestoredCheckpointIsEnough) {
  Comeback story(kRestore);
  story.reports[0].sync.restored = ReportedRestore{.attempt = 2, .step = 100, .path = "a1-s100-x", .first_step = 101};
  EXPECT_EQ(story.end().bytes, 1212000u);
  EXPECT_EQ(story.end().ranks_saved, 3u);
}

TEST(Reconcile, ARestartedSidecarDoesNotKeepTheRecoveryOpen) {
  Comeback story(kRestore);
  story.reports[1].sync.restored.reset();
  EXPECT_EQ(story.end().state, BreakpointState::restored);
  story.reports[1].sync.step = 100;
  EXPECT_TRUE(all<WriteBreakpointStatus>(story.plan()).empty()) << "its ranks have not made their first step";
}

TEST(Reconcile, AnOlderOpenRecordIsOvertakenByTheNewer) {
  Story story;
  story.add_breakpoint("old", Trigger::pre_stop, BreakpointState::restarting, seconds(60)).spec.pods = {
      {"digits-worker-0", "x0"}};
  story.add_breakpoint("new", Trigger::pre_stop, BreakpointState::requested, seconds(1));
  bool seen = false;
  for (const WriteBreakpointStatus& write : all<WriteBreakpointStatus>(story.plan())) {
    if (write.name == "old") {
      EXPECT_EQ(write.status.state, BreakpointState::superseded);
      seen = true;
    }
  }
  EXPECT_TRUE(seen);
}

TEST(Reconcile, TheLastCheckpointNeverGoesBack) {
  Story story;
  Breakpoint& saved = story.add_breakpoint("b", Trigger::user, BreakpointState::saved, seconds(60));
  saved.status.attempt = 1;
  saved.status.step = 50;
  set_condition(saved.status, "Durable", "True", "Published", "m", kNow - seconds(60));
  EXPECT_EQ(all<AnnotateLastCheckpoint>(story.plan()).at(0).step, 50u);
  story.job.last_step = "90";
  story.job.last_time = kNow - seconds(10);
  EXPECT_TRUE(all<AnnotateLastCheckpoint>(story.plan()).empty());
}

TEST(Reconcile, APodThatTheWebhookMissedIsMadeAnewOneAtATime) {
  Story story;
  story.reports.clear();
  for (Pod& pod : story.pods) {
    pod.gated = true;
    pod.injected = false;
    pod.phase = PodPhase::pending;
    pod.created = kNow - seconds(12);
  }
  story.webhook.answering_since = kNow - seconds(5);
  EXPECT_EQ(all<DeletePod>(story.plan()).size(), 1u);
  story.remove(0, seconds(0));
  EXPECT_TRUE(all<DeletePod>(story.plan()).empty());
}

TEST(Reconcile, AMissedPodWaitsWhileTheWebhookIsAwayAndLongerWhenItWasThere) {
  Story story;
  story.reports.clear();
  story.pods.resize(1);
  Pod& pod = story.pods[0];
  pod.gated = true;
  pod.injected = false;
  pod.phase = PodPhase::pending;
  pod.created = kNow - seconds(30);
  story.webhook = {.answers = false};
  EXPECT_TRUE(all<DeletePod>(story.plan()).empty());
  story.webhook = {.answers = true, .answering_since = kNow - seconds(3600)};
  EXPECT_TRUE(all<DeletePod>(story.plan()).empty());
  // ten seconds before the pod came: its way to us was not yet known everywhere
  story.webhook.answering_since = kNow - seconds(40);
  EXPECT_EQ(all<DeletePod>(story.plan()).size(), 1u);
  story.webhook.answering_since = kNow - seconds(3600);
  pod.created = kNow - seconds(60);
  EXPECT_EQ(all<DeletePod>(story.plan()).size(), 1u);
  pod.not_injected = "it has no container";
  const Plan plan = story.plan();
  EXPECT_TRUE(all<DeletePod>(plan).empty());
  EXPECT_EQ(all<RecordEvent>(plan).at(0).reason, "InjectionRefused");
}

TEST(Reconcile, WhatASidecarSaysToPeopleIsSaidOnce) {
  Story story;
  story.reports[0].sync.problems = {{"storage", "the checkpoint folder is read-only: mount it writable"}};
  story.reports[1].sync.problems = story.reports[0].sync.problems;
  const std::vector<RecordEvent> events = all<RecordEvent>(story.plan());
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(events[0].once_key, "j1/problem/storage");
}

TEST(Reconcile, WithoutAJobThereIsNothingToDo) {
  Observation seen{.namespace_name = "team-a", .job_name = "digits"};
  EXPECT_TRUE(reconcile(seen, {}, kNow).actions.empty());
}

}  // namespace
}  // namespace rekindle::op
