#include "operator/faults/volcano_policy.h"

#include <algorithm>
#include <array>
#include <utility>

#include "common/base/format.h"
#include "common/contract/exit_codes.h"
#include "operator/faults/volcano_restart.h"

namespace rekindle::op {
namespace {

constexpr std::array<std::pair<std::string_view, VolcanoAction>, 7> kActions{{
    {"RestartJob", VolcanoAction::restart_job},
    {"RestartTask", VolcanoAction::restart_part},
    {"RestartPod", VolcanoAction::restart_part},
    {"RestartPartition", VolcanoAction::restart_part},
    {"AbortJob", VolcanoAction::end_job},
    {"TerminateJob", VolcanoAction::end_job},
    {"CompleteJob", VolcanoAction::end_job},
}};

// Actions that Volcano does not know (MindX DL's "Ignore") only sync.
VolcanoReaction reaction_of(const PolicyRule& rule) {
  VolcanoReaction reaction{.action_name = rule.action, .delay = rule.timeout};
  for (const auto& [name, action] : kActions) {
    if (name == rule.action) reaction.action = action;
  }
  return reaction;
}

const PolicyRule* first_match(const std::vector<PolicyRule>& rules, std::string_view event,
                              std::optional<std::int64_t> exit_code) {
  for (const PolicyRule& rule : rules) {
    for (const std::string& named : rule.events) {
      if (named == event || named == "*") return &rule;
    }
    if (rule.exit_code && exit_code && *rule.exit_code == *exit_code) return &rule;
  }
  return nullptr;
}

int weight(VolcanoAction action) {
  switch (action) {
    case VolcanoAction::sync: return 0;
    case VolcanoAction::restart_part: return 1;
    case VolcanoAction::restart_job: return 2;
    case VolcanoAction::end_job: return 3;
  }
  return 0;
}

// A deletion raises both events; the one that does more decides how it ends.
VolcanoReaction stronger(VolcanoReaction first, VolcanoReaction second) {
  return weight(second.action) > weight(first.action) ? std::move(second) : std::move(first);
}

bool died(const Pod& pod) {
  return pod.phase == PodPhase::failed ||
         std::ranges::any_of(pod.ended, [](const ContainerEnd& end) { return end.exit_code != 0 || end.signal != 0; });
}

}  // namespace

VolcanoReaction volcano_reaction(const Job& job, std::string_view task_name, std::string_view event,
                                 std::optional<std::int64_t> exit_code) {
  for (const JobTask& task : job.tasks) {
    if (task.name != task_name) continue;
    if (const PolicyRule* rule = first_match(task.policies, event, exit_code)) return reaction_of(*rule);
  }
  if (const PolicyRule* rule = first_match(job.policies, event, exit_code)) return reaction_of(*rule);
  return {};
}

VolcanoReaction expected_reaction(const Job& job, const Pod& pod) {
  if (only_syncs(job, pod)) return {};
  std::optional<std::int64_t> exit_code;
  if (!pod.ended.empty()) exit_code = pod.ended.front().exit_code;
  if (is_deleting(pod)) {
    // A pod that had ended before it was deleted raised its PodFailed then; one that has not ended
    // yet is about to.
    return stronger(volcano_reaction(job, pod.task, "PodEvicted", std::nullopt),
                    volcano_reaction(job, pod.task, "PodFailed", exit_code.value_or(kStoppedExitCode)));
  }
  if (!died(pod)) return {};
  if (pod.phase != PodPhase::failed && pod.restarts_in_place) return {};
  return volcano_reaction(job, pod.task, "PodFailed", exit_code);
}

VolcanoReaction reaction_to_delete(const Job& job, const Pod& pod) {
  if (only_syncs(job, pod)) return {};
  const VolcanoReaction evicted = volcano_reaction(job, pod.task, "PodEvicted", std::nullopt);
  // A pod that is over raises no PodFailed again.
  return is_finished(pod) ? evicted : stronger(evicted, volcano_reaction(job, pod.task, "PodFailed", kStoppedExitCode));
}

RestartChoice choose_restart(const Job& job, const Pod* broken, std::span<const Pod* const> members,
                             std::span<const std::string> gone_tasks) {
  const auto reacts = [](const VolcanoReaction& reaction, const std::string& why) -> std::optional<RestartChoice> {
    if (reaction.action == VolcanoAction::end_job) {
      return RestartChoice{.method = RestartMethod::leave_it,
                           .delay = reaction.delay,
                           .why = format("{}: {} ends the job", why, reaction.action_name)};
    }
    if (reaction.action == VolcanoAction::restart_job) {
      return RestartChoice{
          .method = RestartMethod::wait_for_volcano, .delay = reaction.delay, .why = why + ": RestartJob"};
    }
    return std::nullopt;
  };
  for (const std::string& task : gone_tasks) {
    if (auto choice = reacts(volcano_reaction(job, task, "PodEvicted", std::nullopt),
                             "Volcano's policy for the pod that is gone")) {
      return *choice;
    }
  }
  if (broken != nullptr) {
    if (auto choice = reacts(expected_reaction(job, *broken), "Volcano's policy for pod " + broken->name))
      return *choice;
  }
  for (const Pod* member : members) {
    if (member == broken) continue;
    if (auto choice = reacts(expected_reaction(job, *member), "Volcano's policy for pod " + member->name))
      return *choice;
  }

  std::vector<const Pod*> candidates;
  if (broken != nullptr && !is_deleting(*broken)) candidates.push_back(broken);
  for (const Pod* member : members) {
    if (member != broken && !is_deleting(*member)) candidates.push_back(member);
  }
  const VolcanoReaction* ends = nullptr;
  std::vector<VolcanoReaction> reactions;
  reactions.reserve(candidates.size());
  for (const Pod* candidate : candidates) {
    reactions.push_back(reaction_to_delete(job, *candidate));
    if (reactions.back().action == VolcanoAction::restart_job) {
      return {.method = RestartMethod::delete_broken_pod,
              .victim = candidate,
              .delay = reactions.back().delay,
              .why = format("Volcano restarts the job when pod {} is deleted", candidate->name)};
    }
    if (reactions.back().action == VolcanoAction::end_job && ends == nullptr) ends = &reactions.back();
  }
  if (ends != nullptr) {
    return {.method = RestartMethod::leave_it,
            .why = format("a delete would end the job by its own policy ({})", ends->action_name)};
  }
  return {.method = RestartMethod::delete_all_pods, .why = "the job has no policy that restarts it"};
}

}  // namespace rekindle::op
