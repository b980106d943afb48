#include "operator/faults/volcano_policy.h"

#include <gtest/gtest.h>

namespace rekindle::op {
namespace {

PolicyRule on(std::string event, std::string action) {
  return {.events = {std::move(event)}, .action = std::move(action)};
}
PolicyRule on_exit(std::int64_t code, std::string action) { return {.exit_code = code, .action = std::move(action)}; }

Job make_job(std::vector<PolicyRule> policies, std::vector<PolicyRule> task_policies = {}) {
  Job job;
  job.name = "digits";
  job.version = 1;
  job.policies = std::move(policies);
  job.tasks = {{.name = "worker", .replicas = 2, .is_protected = true, .policies = std::move(task_policies)}};
  return job;
}

Pod make_pod(const std::string& uid, PodPhase phase = PodPhase::running) {
  Pod pod;
  pod.name = "digits-worker-" + uid;
  pod.uid = uid;
  pod.task = "worker";
  pod.job_version = 1;
  pod.phase = phase;
  return pod;
}

void die(Pod& pod, std::int32_t exit_code) { pod.ended.push_back({.name = "main", .exit_code = exit_code}); }
void remove(Pod& pod) {
  pod.deletion_time = WallTime{};
  pod.deletion_grace_seconds = 30;
}

TEST(VolcanoReaction, TheTaskComesFirstThenTheJobInOrder) {
  const Job job = make_job({on("PodFailed", "AbortJob"), on("*", "RestartJob")}, {on("PodFailed", "RestartTask")});
  EXPECT_EQ(volcano_reaction(job, "worker", "PodFailed", 1).action_name, "RestartTask");
  EXPECT_EQ(volcano_reaction(job, "other", "PodFailed", 1).action_name, "AbortJob");
  EXPECT_EQ(volcano_reaction(job, "worker", "PodEvicted", std::nullopt).action_name, "RestartJob");
}

TEST(VolcanoReaction, AnExitCodeCountsWhereItStands) {
  const Job job = make_job({on_exit(3, "CompleteJob"), on("PodFailed", "RestartJob")});
  EXPECT_EQ(volcano_reaction(job, "worker", "PodFailed", 3).action, VolcanoAction::end_job);
  EXPECT_EQ(volcano_reaction(job, "worker", "PodFailed", 4).action, VolcanoAction::restart_job);
  EXPECT_EQ(volcano_reaction(job, "worker", "PodEvicted", std::nullopt).action, VolcanoAction::sync);
}

TEST(VolcanoReaction, AnActionThatVolcanoDoesNotKnowOnlySyncs) {
  EXPECT_EQ(volcano_reaction(make_job({on("PodFailed", "Ignore")}), "worker", "PodFailed", 1).action,
            VolcanoAction::sync);
}

TEST(ExpectedReaction, ADeadMainIsNoFailedPodWhereTheKubeletStartsItAgain) {
  const Job job = make_job({on("PodFailed", "RestartJob")});
  Pod pod = make_pod("0");
  die(pod, 1);
  EXPECT_EQ(expected_reaction(job, pod).action, VolcanoAction::restart_job);
  pod.restarts_in_place = true;
  EXPECT_EQ(expected_reaction(job, pod).action, VolcanoAction::sync);
}

TEST(ExpectedReaction, RequestsOfAnOlderVersionOnlySync) {
  Job job = make_job({on("PodFailed", "RestartJob")});
  Pod pod = make_pod("0", PodPhase::failed);
  die(pod, 1);
  job.version = 2;
  EXPECT_EQ(expected_reaction(job, pod).action, VolcanoAction::sync);
}

TEST(ReactionToDelete, OfAPodThatARestartLeftAliveOnlySyncs) {
  Job job = make_job({on("PodEvicted", "RestartJob")});
  const Pod pod = make_pod("0");
  EXPECT_EQ(reaction_to_delete(job, pod).action, VolcanoAction::restart_job);
  job.version = 2;
  EXPECT_EQ(reaction_to_delete(job, pod).action, VolcanoAction::sync);
}

struct Choice {
  RestartMethod method;
  std::string victim;
};

Choice choose(const Job& job, const std::vector<Pod>& pods, int broken, std::vector<std::string> gone = {}) {
  std::vector<const Pod*> members;
  for (const Pod& pod : pods) members.push_back(&pod);
  const RestartChoice choice =
      choose_restart(job, broken < 0 ? nullptr : &pods[static_cast<std::size_t>(broken)], members, gone);
  EXPECT_NE(choice.why, "");
  return {choice.method, choice.victim == nullptr ? "" : choice.victim->uid};
}

TEST(ChooseRestart, AnEvictedPodWithAPolicyForThatIsLeftToVolcano) {
  std::vector<Pod> pods{make_pod("0"), make_pod("1")};
  remove(pods[0]);
  EXPECT_EQ(choose(make_job({on("PodEvicted", "RestartJob")}), pods, 0).method, RestartMethod::wait_for_volcano);
  EXPECT_EQ(choose(make_job({on("PodFailed", "RestartJob")}), pods, 0).method, RestartMethod::wait_for_volcano);
  EXPECT_EQ(choose(make_job({}), pods, 0).method, RestartMethod::delete_all_pods);
  EXPECT_EQ(choose(make_job({on("TaskCompleted", "CompleteJob")}), pods, 0).method, RestartMethod::delete_all_pods);
}

TEST(ChooseRestart, ADeadContainerWithAPolicyForEvictionNeedsOneDelete) {
  std::vector<Pod> pods{make_pod("0"), make_pod("1")};
  die(pods[1], 137);
  const Choice choice = choose(make_job({on("PodEvicted", "RestartJob")}), pods, 1);
  EXPECT_EQ(choice.method, RestartMethod::delete_broken_pod);
  EXPECT_EQ(choice.victim, "1");
}

TEST(ChooseRestart, AfterThatDeleteVolcanoIsWaitedFor) {
  std::vector<Pod> pods{make_pod("0"), make_pod("1")};
  die(pods[1], 137);
  remove(pods[1]);
  const Job job = make_job({on("PodEvicted", "RestartJob")});
  EXPECT_EQ(choose(job, pods, 1).method, RestartMethod::wait_for_volcano);
  pods.pop_back();  // its object is gone, Volcano has not written its status yet
  EXPECT_EQ(choose(job, pods, -1, {"worker"}).method, RestartMethod::wait_for_volcano);
}

TEST(ChooseRestart, WithoutABrokenPodAnyOneWillDo) {
  const std::vector<Pod> pods{make_pod("0"), make_pod("1")};
  EXPECT_EQ(choose(make_job({on("PodEvicted", "RestartJob")}), pods, -1).method, RestartMethod::delete_broken_pod);
  EXPECT_EQ(choose(make_job({}), pods, -1).method, RestartMethod::delete_all_pods);
}

TEST(ChooseRestart, AJobThatWouldEndIsLeftAlone) {
  std::vector<Pod> pods{make_pod("0"), make_pod("1")};
  die(pods[0], 1);
  EXPECT_EQ(choose(make_job({on("PodEvicted", "TerminateJob")}), pods, 0).method, RestartMethod::leave_it);
  EXPECT_EQ(choose(make_job({on("PodFailed", "AbortJob")}), pods, 0).method, RestartMethod::leave_it);
}

TEST(ChooseRestart, AFinishedPodRaisesNoPodFailedASecondTime) {
  std::vector<Pod> pods{make_pod("0", PodPhase::failed)};
  pods[0].restarts_in_place = true;
  die(pods[0], 1);
  // PodFailed was raised when it failed; deleting it raises PodEvicted alone, for which there is no
  // policy.
  EXPECT_EQ(choose(make_job({on("PodFailed", "RestartTask")}), pods, 0).method, RestartMethod::delete_all_pods);
}

}  // namespace
}  // namespace rekindle::op
