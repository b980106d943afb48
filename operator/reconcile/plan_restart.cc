// From outcome to new pods: by Volcano's own policy where it has one for what happened, by deletes
// otherwise, never both.
#include <algorithm>

#include "common/base/format.h"
#include "operator/faults/classify.h"
#include "operator/faults/volcano_policy.h"
#include "operator/faults/volcano_restart.h"
#include "operator/model/names.h"
#include "operator/reconcile/recovery.h"
#include "operator/reconcile/view.h"

namespace rekindle::op {
namespace {

void delete_pod(const View& view, PlanBuilder& out, const Pod& pod, std::string why) {
  out.act(DeletePod{.namespace_name = pod.namespace_name,
                    .name = pod.name,
                    .uid = pod.uid,
                    .job_uid = view.job->uid,
                    .why = std::move(why)});
}

// Closes the recovery without a restart: the pods stay as they are, for people to look at.
void leave(const View& view, PlanBuilder& out, std::string_view reason, const std::string& why) {
  const Breakpoint& recovery = *view.recovery;
  BreakpointStatus status = recovery.status;
  status.state = BreakpointState::failed;
  status.message = why;
  set_condition(status, names::kRestored, "False", reason, why, view.now);
  set_condition(status, names::kFailed, "True", reason, why, view.now);
  out.act(write_status(recovery, std::move(status)));
  out.act(RecordEvent{.warning = true,
                      .reason = std::string(names::reason::kBreakpointFailed),
                      .action = "Restart",
                      .note = format("{}: {}", recovery.name, why),
                      .regarding = view.job_reference()});
}

// Volcano was expected to act; it gets the time that its policy, the pods' grace and its own work
// take.
bool volcano_is_late(const View& view, PlanBuilder& out, std::span<const Pod* const> remaining,
                     std::chrono::seconds delay) {
  WallTime since = view.recovery->status.restart_time.value_or(view.now);
  for (const Pod* pod : remaining) {
    if (pod->deletion_time) since = std::max(since, *pod->deletion_time);
  }
  return out.reached(since + delay + view.limits.volcano_patience, view.now);
}

RestartChoice choice_for(const View& view, const Breakpoint& recovery, std::span<const Pod* const> remaining) {
  const Pod* broken = recovery.spec.broken ? view.pod_by_uid(recovery.spec.broken->uid) : nullptr;
  std::vector<std::string> gone_tasks;
  for (const PodRef& pod : recovery.spec.pods) {
    if (view.pod_by_uid(pod.uid) == nullptr) gone_tasks.push_back(view.task_of(pod.name));
  }
  return choose_restart(*view.job, broken, remaining, gone_tasks);
}

LeftToPeople policy_ends(const RestartChoice& choice) {
  return {names::reason::kPolicyEndsJob,
          choice.why + "; change the job's policy to PodEvicted: RestartJob, so that it can be restarted"};
}

// A delete is what brings a pod back, except where Volcano brings it back by itself, as often as
// the job allows, and then gives the job up for good.
std::string what_to_do(const View& view, const RestartChoice& choice) {
  if (choice.method != RestartMethod::wait_for_volcano)
    return "look at its log, then delete the job's pods to try again";
  return format(
      "look at its log. The job's own policy RestartJob goes on all the same, up to its maxRetry of {}; a job that is "
      "Failed by then has to be deleted and created again",
      view.job->max_retry);
}

void restart_pods(const View& view, PlanBuilder& out) {
  const Breakpoint& recovery = *view.recovery;
  const std::vector<const Pod*> remaining = remaining_pods(view, recovery);
  std::vector<const Pod*> left;
  for (const Pod* pod : remaining) {
    if (!is_deleting(*pod)) left.push_back(pod);
  }
  if (left.empty()) return;
  if (std::ranges::any_of(remaining, [&](const Pod* pod) { return ended_by_restart(*view.job, *pod); })) {
    out.add_reason(format("Volcano restarts the job by itself (version {})", view.job->version));
    return;
  }
  if (const std::optional<LeftToPeople> reason = left_to_people(view, recovery.status)) {
    leave(view, out, reason->reason, reason->why);
    return;
  }

  const RestartChoice choice = choice_for(view, recovery, remaining);
  out.add_reason(format("{}: {}: {}", recovery.name, to_string(choice.method), choice.why));
  switch (choice.method) {
    case RestartMethod::leave_it:
      if (volcano_is_late(view, out, remaining, choice.delay)) {
        const LeftToPeople reason = policy_ends(choice);
        leave(view, out, reason.reason, reason.why);
      }
      return;
    case RestartMethod::delete_broken_pod: delete_pod(view, out, *choice.victim, choice.why); return;
    case RestartMethod::wait_for_volcano:
      if (!volcano_is_late(view, out, remaining, choice.delay)) return;
      out.add_reason("Volcano did not restart the job in time");
      [[fallthrough]];
    case RestartMethod::delete_all_pods:
      for (const Pod* pod : left) delete_pod(view, out, *pod, choice.why);
      return;
  }
}

// Ranks that stopped for something that was no fault (the job was scaled down) would stay parked
// for ever: their world is gone.
void restart_stranded(const View& view, PlanBuilder& out) {
  if (!is_protected(*view.job) || view.stage() != JobStage::training) return;
  std::vector<const Pod*> stranded;
  for (const Pod* pod : view.pods) {
    const SidecarReport* report = view.report_of(pod->uid);
    if (report == nullptr || report->sync.phase != SidecarPhase::parked) continue;
    // something is going on
    if (is_deleting(*pod) || is_finished(*pod) || ended_by_restart(*view.job, *pod)) return;
    if (view.record_of(pod->uid) != nullptr) return;
    if (!out.reached(report->phase_since + view.limits.stranded_after, view.now)) return;
    stranded.push_back(pod);
  }
  if (stranded.empty()) return;
  const RestartChoice choice = choose_restart(*view.job, nullptr, stranded, {});
  if (choice.method == RestartMethod::leave_it) {
    out.add_reason("parked pods are left: " + choice.why);
    return;
  }
  if (choice.method == RestartMethod::delete_broken_pod) stranded = {choice.victim};
  for (const Pod* pod : stranded) delete_pod(view, out, *pod, "its ranks are parked since the job was scaled");
  out.act(RecordEvent{
      .reason = std::string(names::reason::kStrandedPods),
      .action = "Restart",
      .note = "the job was scaled while it trained; its pods are restarted and resume with the new number of ranks",
      .regarding = view.job_reference()});
}

}  // namespace

std::optional<LeftToPeople> left_to_people(const View& view, const BreakpointStatus& outcome) {
  const Breakpoint& recovery = *view.recovery;
  if (stage_of(*view.job) != JobStage::training) return std::nullopt;
  const std::vector<const Pod*> remaining = remaining_pods(view, recovery);
  const bool restarts_already =
      remaining.size() < recovery.spec.pods.size() ||
      std::ranges::any_of(
          remaining, [&](const Pod* pod) { return is_deleting(*pod) || ended_by_restart(*view.job, *pod); });
  if (restarts_already) return std::nullopt;
  const RestartChoice choice = choice_for(view, recovery, remaining);
  if (choice.method == RestartMethod::leave_it) return policy_ends(choice);
  const FailedStarts failed = failed_starts(view, outcome);
  if (failed.starts <= view.limits.restarts_without_progress) return std::nullopt;
  return LeftToPeople{names::reason::kNoProgress,
                      format("the program failed {} times in a row without getting further than step {}; {}",
                             failed.starts, failed.step, what_to_do(view, choice))};
}

void plan_restart(const View& view, PlanBuilder& out) {
  const JobStage stage = stage_of(*view.job);
  if (stage == JobStage::ending || stage == JobStage::suspended) return;
  if (view.recovery == nullptr) {
    // Ranks are parked for a fault, too; a recovery that begins in this pass has them restarted.
    const bool begins = std::ranges::any_of(
        out.plan.actions, [](const Action& action) { return std::holds_alternative<CreateBreakpoint>(action); });
    if (stage == JobStage::training && !begins) restart_stranded(view, out);
    return;
  }
  const bool remains = !remaining_pods(view, *view.recovery).empty();
  out.plan.hold_start = remains;
  if (view.recovery->status.state != BreakpointState::restarting) return;
  for (const PodRef& pod : view.recovery->spec.pods) out.plan.stale_pod_uids.push_back(pod.uid);
  if (stage == JobStage::restarting) {
    out.add_reason("Volcano is restarting the job");
    return;
  }
  restart_pods(view, out);
}

}  // namespace rekindle::op
