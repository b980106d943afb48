// Whom a pod of an earlier attempt keeps from starting.
#include <gtest/gtest.h>

#include "common/base/json_fields.h"
#include "operator/reconcile/sidecar_directory.h"

namespace rekindle::op {
namespace {

// One that is not counted, because its task is smaller by now or another pod has its place, may
// train and save all the same.
TEST(DirectoryLeftovers, AWholeJobWaitsForAPodThatIsStillBeingDeleted) {
  const WallTime now = *parse_wall_time("2026-11-21T10:00:00Z");
  const SidecarIdentity identity{"team-a", "j1"};
  auto job = std::make_shared<Job>(Job{.namespace_name = "team-a", .name = "digits", .uid = "j1"});
  job->tasks = {{.name = "worker", .replicas = 2, .is_protected = true}};
  const auto pod_of = [](std::int32_t index, const std::string& uid) {
    return std::make_shared<Pod>(Pod{.namespace_name = "team-a",
                                     .name = "digits-worker-" + std::to_string(index),
                                     .uid = uid,
                                     .job_uid = "j1",
                                     .task = "worker",
                                     .index = index,
                                     .phase = PodPhase::running,
                                     .is_protected = true,
                                     .injected = true});
  };
  const auto leftover = pod_of(2, "old");
  leftover->deletion_time = now + std::chrono::seconds(30);
  DirectoryView view{.job = job, .pods = {pod_of(0, "new-0"), pod_of(1, "new-1"), leftover}};
  SidecarDirectory directory(now);
  directory.set_ready();
  directory.update(view, now);
  const auto call = [&](const Pod& pod) {
    const Json body{{"pod", {{"name", pod.name}, {"uid", pod.uid}}}, {"report", {{"phase", "waiting"}}}};
    return parse_json(directory.receive(identity, dump_json(body), now).body, "answer").value();
  };
  call(*view.pods[0]);
  EXPECT_FALSE(call(*view.pods[1])["go"].get<bool>());

  view.pods.pop_back();
  directory.update(view, now);
  EXPECT_TRUE(call(*view.pods[1])["go"].get<bool>()) << "it is gone";
}

}  // namespace
}  // namespace rekindle::op
