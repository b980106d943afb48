// The owner thread's round, driven by hand in virtual time: what came in, what it wants performed.
#include "operator/io/operator_loop.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "common/base/format.h"

namespace rekindle::op {
namespace {

using namespace std::chrono_literals;

const WallTime kStart = *parse_wall_time("2026-11-22T10:00:00Z");
const ObjectKey kJob{"team-a", "digits"};

struct Performed {
  std::string job_uid;
  std::vector<Action> actions;
};

class OperatorLoopTest : public testing::Test {
 protected:
  // Fills the stores and looks at the job once.
  void SetUp() override {
    go_round({Init{}, InitApply<Job>{kJob, make_job("j1")}, InitDone{}},
             {Init{}, InitApply<Pod>{key_of(0), make_pod(0, "j1")}, InitApply<Pod>{key_of(1), make_pod(1, "j1")},
              InitDone{}},
             {Init{}, InitDone{}});
    ASSERT_TRUE(loop.ready());
  }

  static Job make_job(const std::string& uid) {
    Job job{.namespace_name = kJob.namespace_name, .name = kJob.name, .uid = uid, .phase = JobPhase::running};
    job.settings.scheduling = "grace";
    job.tasks = {{.name = "worker", .replicas = 2, .is_protected = true}};
    return job;
  }

  static Pod make_pod(std::int32_t index, const std::string& job_uid) {
    return {.namespace_name = kJob.namespace_name,
            .name = key_of(index).name,
            .uid = format("{}-u{}", job_uid, index),
            .job_name = kJob.name,
            .job_uid = job_uid,
            .task = "worker",
            .created = kStart - 10min,
            .index = index,
            .phase = PodPhase::running,
            .is_protected = true,
            .injected = true};
  }

  static ObjectKey key_of(std::int32_t index) { return {kJob.namespace_name, format("digits-worker-{}", index)}; }

  void go_round(std::deque<OperatorInput> inputs = {}) { loop.go_round(std::move(inputs)); }
  void go_round(std::vector<StoreEvent<Job>> of_jobs, std::vector<StoreEvent<Pod>> of_pods,
                std::vector<StoreEvent<Breakpoint>> of_breakpoints) {
    std::deque<OperatorInput> inputs;
    std::ranges::move(of_jobs, std::back_inserter(inputs));
    std::ranges::move(of_pods, std::back_inserter(inputs));
    std::ranges::move(of_breakpoints, std::back_inserter(inputs));
    go_round(std::move(inputs));
  }

  // Everything wanted so far is done, and nothing of it goes wrong.
  void all_is_done() {
    for (const Performed& each : std::exchange(wanted, {})) {
      ActionsDone done{.job = kJob, .job_uid = each.job_uid};
      for (const Action& action : each.actions) {
        if (std::holds_alternative<CreateCertificateSecret>(action)) done.certificate_ensured = true;
        if (const auto* event = std::get_if<RecordEvent>(&action)) done.events_recorded.push_back(event->once_key);
      }
      go_round({std::move(done)});
    }
  }

  void time_passes(std::chrono::milliseconds time) { elapsed += time; }

  template <typename Kind>
  std::vector<Kind> all_wanted() const {
    std::vector<Kind> found;
    for (const Performed& each : wanted) {
      for (const Action& action : each.actions) {
        if (const Kind* one = std::get_if<Kind>(&action)) found.push_back(*one);
      }
    }
    return found;
  }

  // Pod 0 goes at once, and the job is to be restarted.
  void pod_is_lost() {
    all_is_done();
    go_round({StoreEvent<Pod>(Delete<Pod>{key_of(0), make_pod(0, "j1")})});
    time_passes(5s);
    go_round();
    ASSERT_EQ(all_wanted<CreateBreakpoint>().size(), 1u);
  }

  // As the API server has it after that write.
  static Breakpoint shown(Breakpoint written, const std::string& resource_version) {
    written.uid = "b1";
    written.resource_version = resource_version;
    return written;
  }

  void show(const Breakpoint& breakpoint) {
    const ObjectKey key{breakpoint.namespace_name, breakpoint.name};
    go_round({StoreEvent<Breakpoint>(Apply<Breakpoint>{key, breakpoint})});
  }

  // The next of its actions fails; how long it is until it wants them again.
  std::chrono::milliseconds pause_after_a_failure() {
    const std::string uid = std::exchange(wanted, {}).at(0).job_uid;
    go_round({ActionsDone{.job = kJob, .job_uid = uid, .error = Error{ErrorCode::unavailable, "as the test wants"}}});
    const std::chrono::milliseconds before = elapsed;
    while (wanted.empty() && elapsed < before + 1h) {
      time_passes(10ms);
      go_round();
    }
    return elapsed - before;
  }

  // What a sidecar of that job asks that has such a pod.
  static SyncArrived sync_of(const std::string& job_uid, const Pod& pod, const std::shared_ptr<SyncReply>& reply,
                             std::uint64_t seen = 0, int wait_seconds = 0) {
    const Json body{{"pod", {{"name", pod.name}, {"uid", pod.uid}}},
                    {"address", "10.0.0.9"},
                    {"port", 8471},
                    {"seen", seen},
                    {"wait_seconds", wait_seconds},
                    {"report", {{"phase", "waiting"}, {"attempt", 0}}}};
    return {{kJob.namespace_name, job_uid}, dump_json(body), reply};
  }

  // What a sidecar with the certificate of that job is told about that pod.
  SyncOutcome answer_for(const std::string& job_uid, const Pod& pod) {
    const auto reply = std::make_shared<SyncReply>();
    go_round({sync_of(job_uid, pod, reply)});
    return reply->wait(0ns).value();
  }

  std::chrono::milliseconds elapsed{0};
  std::vector<Performed> wanted;
  Mailbox<OperatorInput> mailbox{16};
  JobCache jobs;
  Metrics metrics;
  OperatorLoop loop{
      {.clock = {.monotonic = [this] { return Instant(1h) + elapsed; }, .wall = [this] { return kStart + elapsed; }}},
      mailbox,
      jobs,
      metrics,
      [this](const ObjectKey&, std::string job_uid, std::vector<Action> actions) {
        wanted.push_back({std::move(job_uid), std::move(actions)});
      }};
};

TEST_F(OperatorLoopTest, MakesTheCertificateOfAJobOnce) {
  ASSERT_EQ(all_wanted<CreateCertificateSecret>().size(), 1u);
  EXPECT_EQ(wanted[0].job_uid, "j1");
  all_is_done();
  time_passes(1s);
  go_round();
  EXPECT_TRUE(all_wanted<CreateCertificateSecret>().empty());
}

TEST_F(OperatorLoopTest, WhatWasDoneForAnotherJobOfTheNameIsNotTakenForThisOne) {
  go_round({ActionsDone{.job = kJob, .job_uid = "j0", .certificate_ensured = true}});
  wanted.clear();
  time_passes(1s);
  go_round();
  EXPECT_EQ(all_wanted<CreateCertificateSecret>().size(), 1u);
}

TEST_F(OperatorLoopTest, PodsOfAFormerJobOfTheNameAreNotThisJobs) {
  all_is_done();
  go_round(
      {StoreEvent<Job>(Apply<Job>{kJob, make_job("j2")}), StoreEvent<Pod>(Apply<Pod>{key_of(0), make_pod(0, "j2")})});
  EXPECT_EQ(answer_for("j2", make_pod(0, "j2")).status, 200);
  EXPECT_EQ(answer_for("j2", make_pod(1, "j1")).status, 503) << "it belongs to the job before";
}

// The kubelet deletes again, at once, when the containers have ended. Seen in a list alone, that
// looks as if the container had died first.
TEST_F(OperatorLoopTest, ADeletionThatAListShowsAgainKeepsItsFirstTime) {
  all_is_done();
  Pod deleted = make_pod(0, "j1");
  deleted.deletion_time = kStart + 30s;
  deleted.deletion_grace_seconds = 30;
  go_round({StoreEvent<Pod>(Apply<Pod>{key_of(0), deleted})});

  time_passes(1500ms);
  Pod ended = deleted;
  ended.phase = PodPhase::failed;
  ended.ended = {{.name = "main", .reason = "Error", .exit_code = 143, .finished = kStart + 1s}};
  ended.deletion_time = kStart + 1400ms;
  ended.deletion_grace_seconds = 0;
  go_round({}, {Init{}, InitApply<Pod>{key_of(0), ended}, InitApply<Pod>{key_of(1), make_pod(1, "j1")}, InitDone{}},
           {});

  time_passes(1s);
  go_round();
  const std::vector<CreateBreakpoint> intents = all_wanted<CreateBreakpoint>();
  ASSERT_EQ(intents.size(), 1u);
  EXPECT_EQ(intents[0].object.spec.trigger, Trigger::pre_stop) << intents[0].object.spec.reason;
}

// A job whose pods are not listed yet looks like one that has none.
TEST(OperatorLoopStart, NothingIsDecidedBeforeEverythingWasListedOnce) {
  Mailbox<OperatorInput> mailbox{16};
  JobCache jobs;
  Metrics metrics;
  bool performed = false;
  OperatorLoop loop({}, mailbox, jobs, metrics, [&](auto&&...) { performed = true; });
  Job job{.namespace_name = kJob.namespace_name, .name = kJob.name, .uid = "j1", .phase = JobPhase::running};
  job.settings.scheduling = "grace";
  job.tasks = {{.name = "worker", .replicas = 2, .is_protected = true}};
  const auto listed = [](auto... events) { return std::deque<OperatorInput>{std::move(events)...}; };
  loop.go_round(listed(StoreEvent<Job>(Init{}), StoreEvent<Job>(InitApply<Job>{kJob, job}), StoreEvent<Job>(InitDone{}),
                       StoreEvent<Breakpoint>(Init{}), StoreEvent<Breakpoint>(InitDone{})));
  EXPECT_FALSE(performed) << "nobody knows its pods yet";
  loop.go_round(listed(StoreEvent<Pod>(Init{}), StoreEvent<Pod>(InitDone{})));
  EXPECT_TRUE(performed);
}

TEST_F(OperatorLoopTest, WhatFailsIsTriedAgainLaterAndLater) {
  ASSERT_FALSE(wanted.empty());
  const std::chrono::milliseconds first = pause_after_a_failure();
  const std::chrono::milliseconds second = pause_after_a_failure();
  EXPECT_GT(second, first);
}

TEST_F(OperatorLoopTest, SidecarsOfAJobThatWasMadeAnewAreToldThatTheirsIsGone) {
  all_is_done();
  ASSERT_EQ(answer_for("j1", make_pod(0, "j1")).status, 200);
  go_round({StoreEvent<Job>(Apply<Job>{kJob, make_job("j2")})});
  EXPECT_EQ(answer_for("j1", make_pod(0, "j1")).status, 404);
}

// The record as it was before its own change is no reason to make the change again.
TEST_F(OperatorLoopTest, AStatusThatItWroteIsWaitedForUntilItsVersionIsANewOne) {
  all_is_done();
  Breakpoint request{.namespace_name = kJob.namespace_name, .name = "now", .created = kStart};
  request.spec = {.job_name = kJob.name, .job_uid = "j1", .trigger = Trigger::user};
  show(shown(request, "7"));
  ASSERT_EQ(all_wanted<AdoptBreakpoint>().size(), 1u);
  wanted.clear();
  go_round({ActionsDone{
      .job = kJob,
      .job_uid = "j1",
      .expectations = {{Expectation::Kind::breakpoint_changed, {request.namespace_name, request.name}, "b1", "7"}}}});
  time_passes(20ms);
  go_round();
  EXPECT_TRUE(all_wanted<AdoptBreakpoint>().empty()) << "a watch may be late";
  show(shown(request, "8"));
  ASSERT_EQ(all_wanted<AdoptBreakpoint>().size(), 1u) << "somebody else has changed it";
  EXPECT_EQ(all_wanted<AdoptBreakpoint>()[0].resource_version, "8");
}

// Until the record of the fault is in sight, nothing would hold the newcomer and a pod of the
// attempt that is over from starting together.
TEST_F(OperatorLoopTest, ANewPodIsServedWhenItsOwnWritesAreInSight) {
  pod_is_lost();
  const Breakpoint written = all_wanted<CreateBreakpoint>()[0].object;
  Pod newcomer = make_pod(0, "j1");
  newcomer.uid = "newcomer";
  go_round(
      {ActionsDone{
           .job = kJob,
           .job_uid = "j1",
           .expectations = {{Expectation::Kind::breakpoint_there, {written.namespace_name, written.name}, "", ""}}},
       StoreEvent<Pod>(Apply<Pod>{key_of(0), newcomer})});
  time_passes(20ms);
  go_round();
  EXPECT_EQ(answer_for("j1", newcomer).status, 503);

  show(shown(written, "9"));
  const SyncOutcome told = answer_for("j1", newcomer);
  EXPECT_EQ(told.status, 200);
  EXPECT_FALSE(parse_json(told.body, "answer").value()["go"].get<bool>());
}

// Such as a record that its user deletes before a watch shows it.
TEST_F(OperatorLoopTest, WhatItWroteAndNeverSeesIsWaitedForTenSecondsAndThenDecidedAnew) {
  pod_is_lost();
  const Breakpoint written = all_wanted<CreateBreakpoint>()[0].object;
  wanted.clear();
  go_round({ActionsDone{
      .job = kJob,
      .job_uid = "j1",
      .expectations = {{Expectation::Kind::breakpoint_there, {written.namespace_name, written.name}, "", ""}}}});
  time_passes(20ms);
  go_round();
  time_passes(9s);
  go_round();
  EXPECT_TRUE(all_wanted<CreateBreakpoint>().empty()) << "a watch may be late";
  time_passes(1s);
  go_round();
  EXPECT_EQ(all_wanted<CreateBreakpoint>().size(), 1u);
}

// Whoever deletes the record of a fault that is long over wants no restart.
TEST_F(OperatorLoopTest, APodThatWentLongAgoIsNoFaultOfToday) {
  pod_is_lost();
  all_is_done();
  time_passes(3min);
  go_round();
  EXPECT_TRUE(all_wanted<CreateBreakpoint>().empty());
}

TEST_F(OperatorLoopTest, SidecarsThatWaitWhenItStopsAreToldToComeAgain) {
  all_is_done();
  const Json told = parse_json(answer_for("j1", make_pod(0, "j1")).body, "answer").value();
  const auto reply = std::make_shared<SyncReply>();
  ASSERT_TRUE(mailbox.push(sync_of("j1", make_pod(0, "j1"), reply, told["version"].get<std::uint64_t>(), 30), {}));
  ASSERT_TRUE(mailbox.push(StopRequested{}, {}));
  loop.run();
  const std::optional<SyncOutcome> outcome = reply->wait(0ns);
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->status, 503);
}

TEST_F(OperatorLoopTest, IsAliveForAsLongAsItGoesRound) {
  EXPECT_TRUE(loop.alive());
  time_passes(40s);
  EXPECT_FALSE(loop.alive());
  go_round();
  EXPECT_TRUE(loop.alive());
}

}  // namespace
}  // namespace rekindle::op
