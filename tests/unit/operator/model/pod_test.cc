#include "operator/model/pod.h"

#include <gtest/gtest.h>

#include <limits>

#include "tests/unit/operator/model/yaml.h"

namespace rekindle::op {
namespace {

constexpr const char* kPod = R"(
metadata:
  name: digits-worker-12
  namespace: team-a
  uid: p12
  deletionTimestamp: "2026-11-20T10:01:15Z"
  deletionGracePeriodSeconds: 75
  labels: {rekindle.dev/protected: "true"}
  annotations: {volcano.sh/task-spec: worker, volcano.sh/job-version: "3", volcano.sh/controller-out-of-sync: "true"}
  ownerReferences: [{apiVersion: batch.volcano.sh/v1alpha1, kind: Job, name: digits, uid: j1, controller: true}]
spec:
  nodeName: node-1
  restartPolicy: Never
  terminationGracePeriodSeconds: 75
  initContainers: [{name: rekindle-sidecar}]
status:
  phase: Running
  podIP: 10.1.2.3
  conditions: [{type: Ready, status: "False"}, {type: DisruptionTarget, status: "True", reason: PreemptionByScheduler}]
  initContainerStatuses: [{name: rekindle-sidecar, state: {terminated: {exitCode: 1}}}]
  containerStatuses:
  - {name: main, state: {terminated: {exitCode: 137, reason: OOMKilled, finishedAt: "2026-11-20T09:59:00Z"}}}
  - {name: logger, state: {running: {}}}
)";

TEST(Pod, KeepsWhatDecisionsNeed) {
  const Result<Pod> pod = pod_from_json(parse_yaml(kPod));
  ASSERT_TRUE(pod) << pod.error().message;
  EXPECT_EQ(pod->job_uid, "j1");
  EXPECT_EQ(pod->task, "worker");
  EXPECT_EQ(pod->index, 12);
  EXPECT_EQ(pod->job_version, 3);
  EXPECT_EQ(pod->disruption, "PreemptionByScheduler");
  EXPECT_TRUE(pod->is_protected);
  EXPECT_TRUE(pod->injected);
  EXPECT_TRUE(pod->out_of_sync);
  EXPECT_FALSE(pod->gated);
  EXPECT_FALSE(pod->restarts_in_place);
  ASSERT_EQ(pod->ended.size(), 1u);  // the sidecar's end is not a main's
  EXPECT_EQ(pod->ended[0].exit_code, 137);
  EXPECT_EQ(to_text(*deletion_began(*pod)), "2026-11-20T10:00:00Z");
}

TEST(Pod, OnlyAVolcanoJobCountsAsItsJob) {
  Json pod = parse_yaml(kPod);
  pod["metadata"]["ownerReferences"][0]["apiVersion"] = "batch/v1";
  EXPECT_EQ(pod_from_json(pod)->job_uid, "");
}

TEST(Pod, AnIndexBeyondAllIsNotTakenForItsLowBits) {
  Json pod = parse_yaml(kPod);
  for (const char* text : {"4294967296", "4294967308", "-4294967295"}) {
    pod["metadata"]["annotations"]["volcano.sh/task-index"] = text;
    EXPECT_EQ(pod_from_json(pod)->index, -1) << text;
  }
}

TEST(Pod, OurGateIsSeenAmongOthers) {
  const Json pod =
      parse_yaml("{metadata: {name: a-b-0}, spec: {schedulingGates: [{name: other}, {name: rekindle.dev/injection}]}}");
  EXPECT_TRUE(pod_from_json(pod)->gated);
}

TEST(Pod, WrongShapesAreNamed) {
  EXPECT_FALSE(pod_from_json(parse_yaml("{metadata: {name: p}, spec: 7}")));
  EXPECT_FALSE(pod_from_json(parse_yaml("{metadata: {name: p}, status: {containerStatuses: {}}}")));
  EXPECT_FALSE(pod_from_json(parse_yaml("{metadata: {name: p}, status: {conditions: [7]}}")));
}

// As seen with Kubernetes 1.34: deleted at :47 with grace 30, its container was killed, and the
// kubelet deleted the failed pod again.
TEST(Pod, TheFirstOfTwoDeletionsCounts) {
  Pod first{.uid = "u1", .deletion_time = parse_wall_time("2026-11-21T19:03:17Z"), .deletion_grace_seconds = 30};
  const auto later = [&](const char* uid, const char* time, std::int64_t grace) {
    Pod pod{.uid = uid, .deletion_time = parse_wall_time(time), .deletion_grace_seconds = grace};
    keep_first_deletion(pod, first);
    return to_text(*deletion_began(pod));
  };
  EXPECT_EQ(later("u1", "2026-11-21T19:02:48Z", 0), "2026-11-21T19:02:47Z");
  EXPECT_EQ(later("u1", "2026-11-21T19:02:52Z", 5), "2026-11-21T19:02:47Z");
  EXPECT_EQ(later("u2", "2026-11-21T19:02:48Z", 0), "2026-11-21T19:02:48Z") << "another pod of that name";
  first.deletion_time.reset();
  EXPECT_EQ(later("u1", "2026-11-21T19:02:48Z", 0), "2026-11-21T19:02:48Z") << "it was not deleted before";
}

TEST(Pod, ADeletionBeganBeforeItsEndWhateverTheGrace) {
  for (const std::int64_t grace :
       {std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()}) {
    Json object = parse_yaml("{metadata: {name: p, deletionTimestamp: '2026-11-21T19:03:17Z'}}");
    object["metadata"]["deletionGracePeriodSeconds"] = grace;
    const Pod pod = *pod_from_json(object);
    EXPECT_LE(*deletion_began(pod), *pod.deletion_time) << grace;
  }
}

TEST(Pod, ADeletionIsKeptWhenALaterStateLacksIt) {
  const Pod first{.uid = "u1", .deletion_time = parse_wall_time("2026-11-21T19:03:17Z"), .deletion_grace_seconds = 30};
  Pod pod{.uid = "u1"};
  keep_first_deletion(pod, first);
  EXPECT_TRUE(is_deleting(pod));
}

// What a decoded pod of ordinary names holds, its texts on the heap included.
TEST(Pod, TakesLessThanOneKibibyte) {
  const Pod pod = *pod_from_json(parse_yaml(kPod));
  std::size_t bytes = sizeof(Pod) + pod.ended.capacity() * sizeof(ContainerEnd);
  for (const std::string* text :
       {&pod.namespace_name, &pod.name, &pod.uid, &pod.resource_version, &pod.job_name, &pod.job_uid, &pod.task,
        &pod.node, &pod.address, &pod.reason, &pod.disruption, &pod.not_injected}) {
    if (text->capacity() > 15) bytes += text->capacity() + 16;
  }
  EXPECT_LE(bytes, 1024u);
}

}  // namespace
}  // namespace rekindle::op
