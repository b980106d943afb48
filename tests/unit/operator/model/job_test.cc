#include "operator/model/job.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/unit/operator/model/yaml.h"

namespace rekindle::op {
namespace {

constexpr const char* kJob = R"(
apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata:
  name: digits
  namespace: team-a
  uid: 6a1f8a77-2f43
  resourceVersion: "12"
  creationTimestamp: "2026-11-20T10:00:00Z"
  labels: {fault-scheduling: grace}
  annotations:
    rekindle.dev/checkpoint-claim: checkpoints
    rekindle.dev/deadline-seconds: "90"
    rekindle.dev/ranks-per-pod: "2"
    rekindle.dev/last-checkpoint-step: "184"
spec:
  maxRetry: 100
  policies:
  - {event: PodEvicted, action: RestartJob}
  - {events: [PodFailed, TaskFailed], action: AbortJob, timeout: 1m30s}
  - {exitCode: 3, action: CompleteJob}
  tasks:
  - name: master
    replicas: 1
    template: {metadata: {labels: {rekindle.dev/protected: "true"}}}
  - replicas: 3
    policies: [{event: "*", action: RestartTask}]
    template: {metadata: {labels: {rekindle.dev/protected: "true"}}}
  - name: logger
    replicas: 5
status:
  state: {phase: Running, lastTransitionTime: "2026-11-21T10:00:00Z"}
  version: 4
  retryCount: 2
)";

TEST(Job, KeepsWhatDecisionsNeed) {
  const Result<Job> job = job_from_json(parse_yaml(kJob));
  ASSERT_TRUE(job) << job.error().message;
  EXPECT_EQ(job->phase, JobPhase::running);
  EXPECT_EQ(job->phase_since, parse_wall_time("2026-11-21T10:00:00Z"));
  EXPECT_EQ(job->version, 4);
  EXPECT_EQ(job->settings.claim, "checkpoints");
  EXPECT_EQ(job->settings.deadline_seconds, 90);
  EXPECT_EQ(job->settings.ranks_per_pod, 2);
  EXPECT_EQ(job->last_step, "184");
  ASSERT_EQ(job->policies.size(), 3u);
  EXPECT_EQ(job->policies[1].events, (std::vector<std::string>{"PodFailed", "TaskFailed"}));
  EXPECT_EQ(job->policies[1].timeout, std::chrono::seconds(90));
  EXPECT_EQ(job->policies[2].exit_code, 3);
  EXPECT_EQ(job->tasks[1].name, "default1");
  EXPECT_TRUE(is_protected(*job));
  EXPECT_TRUE(wants_protection(*job));
}

TEST(Job, OrdinalsRunThroughTheProtectedTasksInOrder) {
  const Job job = *job_from_json(parse_yaml(kJob));
  EXPECT_EQ(pods_expected(job), 4);
  EXPECT_EQ(ordinal_of(job, "master", 0), 0);
  EXPECT_EQ(ordinal_of(job, "default1", 2), 3);
  EXPECT_EQ(ordinal_of(job, "default1", 3), std::nullopt);
  EXPECT_EQ(ordinal_of(job, "default1", -1), std::nullopt);
  EXPECT_EQ(ordinal_of(job, "logger", 0), std::nullopt);
  EXPECT_EQ(ordinal_of(job, "stranger", 0), std::nullopt);
}

// The webhook is asked before the API server has looked at the numbers.
TEST(Job, ReplicasBeyondWhatTheApiServerTakesStayInRange) {
  Json object = parse_yaml(kJob);
  for (std::size_t task : {0, 1}) object["spec"]["tasks"][task]["replicas"] = std::numeric_limits<std::int64_t>::max();
  const Job job = *job_from_json(object);
  EXPECT_EQ(pods_expected(job), 2 * std::int64_t{std::numeric_limits<std::int32_t>::max()});
  EXPECT_LT(ordinal_of(job, "default1", 2), pods_expected(job));
}

TEST(Job, ATimeoutThatIsNoNumberIsNone) {
  Json object = parse_yaml(kJob);
  for (const char* text : {"nans", "-nans", "1mnans", "-1s", "1x"}) {
    object["spec"]["policies"][1]["timeout"] = text;
    EXPECT_EQ(job_from_json(object)->policies[1].timeout.count(), 0) << text;
  }
}

TEST(Job, NumbersEditedBeyondTheirLimitsCountAsAbsent) {
  const auto settings = [](const char* deadline, const char* ranks) {
    const Json annotations{{"rekindle.dev/deadline-seconds", deadline}, {"rekindle.dev/ranks-per-pod", ranks}};
    return job_from_json({{"metadata", {{"name", "digits"}, {"annotations", annotations}}}})->settings;
  };
  EXPECT_EQ(settings("3600", "1024").deadline_seconds, 3600);
  EXPECT_EQ(settings("3600", "1024").ranks_per_pod, 1024);
  for (const char* huge : {"9223372036854775807", "3601"}) {
    EXPECT_FALSE(settings(huge, "1").deadline_seconds) << huge;
    EXPECT_EQ(settings("60", huge).ranks_per_pod, 1) << huge;
  }
}

TEST(Job, WithoutAStatusItIsPending) {
  EXPECT_EQ(job_from_json(parse_yaml("{metadata: {name: j}, spec: {}}"))->phase, JobPhase::pending);
  EXPECT_EQ(job_from_json(parse_yaml("{metadata: {name: j}, status: {state: {phase: Dreaming}}}"))->phase,
            JobPhase::unknown);
}

TEST(Job, WrongShapesAreNamed) {
  EXPECT_FALSE(job_from_json(parse_yaml("{metadata: {name: j}, spec: {tasks: 7}}")));
  EXPECT_FALSE(job_from_json(parse_yaml("{metadata: {name: j}, spec: {tasks: [worker]}}")));
  EXPECT_FALSE(job_from_json(parse_yaml("{metadata: {name: j}, spec: {policies: [{event: 7}]}}")));
  EXPECT_FALSE(job_from_json(parse_yaml("{metadata: {name: j}, status: {version: none}}")));
}

TEST(Job, AWrongPolicyIsNamedWithItsTask) {
  const auto refused =
      job_from_json(parse_yaml("{metadata: {name: j}, spec: {tasks: [{name: a, policies: [{event: 7}]}]}}"));
  EXPECT_EQ(refused.error().message, "task a: policy: event must be a string");
}

TEST(Job, NamesThatComeFromIt) {
  const Job job = *job_from_json(parse_yaml(kJob));
  EXPECT_EQ(pod_group_name(job), "digits-6a1f8a77-2f43");
  EXPECT_EQ(certificate_secret_name(job.name, job.uid), "digits-rekindle-6a1f8a77");
}

}  // namespace
}  // namespace rekindle::op
