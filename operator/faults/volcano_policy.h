// What Volcano itself will do about a pod, by its own order of choice (release 1.9 to 1.15,
// applyPolicies): a request of an older job version only syncs; then the task's policies in order,
// then the job's; the first that names the event, `*`, or the exit code of the pod's first
// container; else it syncs, which makes a missing pod anew and nothing more. So that the plan never
// does the same a second time.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/base/enum_names.h"
#include "operator/model/job.h"
#include "operator/model/pod.h"

namespace rekindle::op {

enum class VolcanoAction : std::uint8_t {
  sync,  // nothing, or a missing pod is made anew
  restart_job,
  restart_part,  // RestartTask, RestartPod, RestartPartition: some pods only
  end_job,       // AbortJob, TerminateJob, CompleteJob
};

struct VolcanoReaction {
  VolcanoAction action = VolcanoAction::sync;
  std::string action_name = "SyncJob";
  std::chrono::seconds delay{0};
};

// The reaction to one event ("PodEvicted", "PodFailed") about a pod of that task. `exit_code` goes
// with PodFailed.
VolcanoReaction volcano_reaction(const Job& job, std::string_view task, std::string_view event,
                                 std::optional<std::int64_t> exit_code);

// The reaction that is to be expected from what has happened to this pod so far (or will without
// another actor's help): a dead main makes the pod Failed once its sidecar has ended, unless the
// kubelet starts it again in place; a deletion is followed by PodEvicted, and by PodFailed before
// that when the container ended with an error. A pod of an older job version or one that Volcano
// kills itself gives sync.
VolcanoReaction expected_reaction(const Job& job, const Pod& pod);

// The reaction to a delete of ours of this pod: PodEvicted, and PodFailed before it when the main
// ends with an error.
VolcanoReaction reaction_to_delete(const Job& job, const Pod& pod);

// How the job gets restarted once the breakpoint is there.
enum class RestartMethod : std::uint8_t {
  wait_for_volcano,   // it reacts to this very event
  delete_broken_pod,  // one delete, to which it reacts by restarting the job
  delete_all_pods,    // no policy helps: every pod of the attempt, with its own grace
  leave_it,           // a policy of the user's ends the job, by itself or on any delete of ours
};
constexpr auto enum_names(RestartMethod) {
  return std::to_array<EnumName<RestartMethod>>({{RestartMethod::wait_for_volcano, "wait_for_volcano"},
                                                 {RestartMethod::delete_broken_pod, "delete_broken_pod"},
                                                 {RestartMethod::delete_all_pods, "delete_all_pods"},
                                                 {RestartMethod::leave_it, "leave_it"}});
}

struct RestartChoice {
  RestartMethod method = RestartMethod::delete_all_pods;
  const Pod* victim = nullptr;    // of delete_broken_pod
  std::chrono::seconds delay{0};  // of the policy that Volcano follows
  std::string why;
};

// `members` are the pods of the attempt that still exist, `broken` is the one that the fault is
// about when it is among them, and `gone_tasks` the tasks of those that do not exist any more:
// their removal has raised PodEvicted, so a policy for that is on its way and nothing is to be
// added to it.
RestartChoice choose_restart(const Job& job, const Pod* broken, std::span<const Pod* const> members,
                             std::span<const std::string> gone_tasks);

}  // namespace rekindle::op
