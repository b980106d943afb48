#include "operator/admission/job_admission.h"

#include <algorithm>
#include <iterator>

#include "common/base/format.h"
#include "common/contract/deadlines.h"
#include "common/contract/job_limits.h"
#include "operator/admission/annotation_warnings.h"
#include "operator/admission/checkpoint_variables.h"
#include "operator/admission/checkpoint_volume.h"
#include "operator/admission/json_edit.h"
#include "operator/admission/pod_template.h"
#include "operator/model/job.h"
#include "operator/model/metadata.h"
#include "operator/model/names.h"

namespace rekindle::op {
namespace {

// Each gets some 5 KB of the patch.
constexpr std::size_t kTasksMax = 1024;
constexpr std::int64_t kManyPods = 2;
constexpr std::size_t kTaskNameBytesMax = 63;  // of a DNS label

AdmissionAnswer refuse(std::string message) { return {.allowed = false, .message = std::move(message)}; }

std::string in_quotes(std::string_view text) { return format("\"{}\"", text); }

// None for a whole number within bounds, else the message that says what to write.
std::optional<std::string> fault_of_number(std::string_view annotation, const std::string& text, std::int64_t min,
                                           std::int64_t max) {
  if (text.empty()) return std::nullopt;
  const std::int64_t value = number_from_text(text, -1);
  if (value >= min && value <= max) return std::nullopt;
  return format("annotation {}: {} is not a whole number from {} to {}", annotation, in_quotes(text), min, max);
}

std::optional<std::string> fault_of_annotations(const Json& job) {
  const auto value = [&](std::string_view name) { return metadata_value(job, "annotations", name); };
  if (auto fault = fault_of_number(names::kDeadlineAnnotation, value(names::kDeadlineAnnotation), 1,
                                   kBreakpointDeadlineMax.count()))
    return fault;
  if (auto fault =
          fault_of_number(names::kRanksPerPodAnnotation, value(names::kRanksPerPodAnnotation), 1, kRanksPerPodMax))
    return fault;
  const std::string strict = value(names::kStrictRetriesAnnotation);
  if (!strict.empty() && strict != "true" && strict != "false") {
    return format("annotation {}: {} is neither true nor false", names::kStrictRetriesAnnotation, in_quotes(strict));
  }
  const std::string claim = value(names::kClaimAnnotation);
  if (!claim.empty() && !is_object_name(claim)) {
    return format("annotation {}: {} is not the name of a PersistentVolumeClaim", names::kClaimAnnotation,
                  in_quotes(claim));
  }
  const std::string path = value(names::kPathAnnotation);
  if (!path.empty()) {
    if (auto fault = fault_of_path(path)) return format("annotation {}: {}", names::kPathAnnotation, *fault);
  }
  return std::nullopt;
}

// --- policies

bool names_event(const PolicyRule& rule, std::string_view event) {
  return std::ranges::any_of(rule.events, [&](const std::string& named) { return named == event || named == "*"; });
}

std::optional<std::string> fault_of_policies(const std::vector<PolicyRule>& rules, const std::string& where,
                                             std::vector<std::string>& warnings) {
  for (const PolicyRule& rule : rules) {
    const bool ends = rule.action == "TerminateJob" || rule.action == "AbortJob" || rule.action == "CompleteJob";
    if (rule.action == "TerminateJob" && names_event(rule, "PodFailed")) {
      return where +
             " has the policy PodFailed: TerminateJob. An evicted pod also counts as failed, so the job would end for "
             "good instead of "
             "resuming. Use PodEvicted: RestartJob, and exitCode policies for errors that should end the job.";
    }
    if (ends && names_event(rule, "PodEvicted")) {
      warnings.push_back(
          format("{}: the policy PodEvicted: {} ends the job whenever a pod is evicted; it is saved and not "
                 "restarted. Use RestartJob to resume.",
                 where, rule.action));
    } else if (ends && names_event(rule, "PodFailed")) {
      warnings.push_back(format("{}: the policy PodFailed: {} also acts on evicted pods; use RestartJob to resume.",
                                where, rule.action));
    }
    const bool part = rule.action == "RestartTask" || rule.action == "RestartPod" || rule.action == "RestartPartition";
    if (part && (names_event(rule, "PodEvicted") || names_event(rule, "PodFailed"))) {
      warnings.push_back(
          format("{}: {} restarts only some pods, and Rekindle the others, which costs several retries. Use "
                 "RestartJob.",
                 where, rule.action));
    }
  }
  return std::nullopt;
}

// Volcano's webhook refuses actions that it does not know; MindX DL's "Ignore" means what no policy
// at all means.
void take_out_ignored(JsonEdit& edit, const std::string& pointer, const std::string& where,
                      std::vector<std::string>& warnings) {
  const Json* policies = edit.find(pointer);
  if (policies == nullptr || !policies->is_array()) return;
  // In one operation: to take many out of a list one by one takes the square of their number, here
  // and in the API server.
  Json kept = Json::array();
  for (const Json& policy : *policies) {
    if (text_of(policy, "action") != "Ignore") {
      kept.push_back(policy);
      continue;
    }
    warnings.push_back(where +
                       ": a policy with the action Ignore was taken out, because Volcano does not know it; without a "
                       "policy it does nothing either.");
  }
  if (kept.size() != policies->size()) edit.replace(pointer, std::move(kept));
}

// --- templates

struct Storage {
  std::string path;
  bool has_claim = false;
  // spec.volumes of the Job: Volcano mounts them in every container
  std::vector<std::string> job_mounts;
};

std::optional<std::string> fault_of_task(const Json& task, const std::string& where, const Storage& storage) {
  const Json* spec = find_path(task, {"template", "spec"});
  if (spec == nullptr || list_of(*spec, "containers").empty())
    return where + " has no container: there is nothing to protect. Add its main container.";
  for (const Json& container : list_of(*spec, "containers")) {
    const std::string name = text_of(container, "name");
    if (find_path(container, {"lifecycle", "preStop"}) != nullptr) {
      return format(
          "{}: container {} has a preStop hook of its own, and Rekindle needs that place to save the "
          "breakpoint. Move what it does into the program's handler of SIGTERM, which still comes.",
          where, name);
    }
  }
  if (auto taken = taken_name(*spec))
    return format("{} uses the {}, which Rekindle needs itself. Choose another.", where, *taken);
  if (!text_of(*spec, "nodeName").empty()) {
    return where +
           " sets spec.nodeName, which cannot go with a scheduling gate. Use a nodeSelector for "
           "kubernetes.io/hostname.";
  }
  if (auto fault = fault_of_checkpoint_volume(*spec, storage.path, storage.has_claim)) return where + " " + *fault;
  if (storage.has_claim || mount_for(*spec, storage.path) != nullptr) return std::nullopt;
  if (std::ranges::any_of(storage.job_mounts, [&](const std::string& mount) { return lies_in(storage.path, mount); }))
    return std::nullopt;
  return format(
      "{} has nowhere to put checkpoints: no volume is mounted at {}. Name a "
      "PersistentVolumeClaim in the annotation {}, mount a shared volume and name its folder in "
      "{}, or set storage.claim in the chart.",
      where, storage.path, names::kClaimAnnotation, names::kPathAnnotation);
}

void warn_about_task(const Json& task, const std::string& where, std::int64_t grace_needed,
                     std::vector<std::string>& warnings) {
  const Json& spec = *find_path(task, {"template", "spec"});
  const auto grace = spec.find("terminationGracePeriodSeconds");
  const std::int64_t seconds = grace != spec.end() && grace->is_number_integer() ? grace->get<std::int64_t>() : 30;
  if (seconds < grace_needed) {
    warnings.push_back(format("{}: terminationGracePeriodSeconds is raised from {} to {} (breakpoint deadline + {} s).",
                              where, seconds, grace_needed, kGraceMargin.count()));
  }
  const std::string restart = text_of(spec, "restartPolicy");
  if (restart == "Always" || restart == "OnFailure") {
    warnings.push_back(format("{}: restartPolicy {} hides a dead container from Volcano; use Never.", where, restart));
  }
}

void warn_about_node_storage(const Job& job, const Json& tasks, const Storage& storage,
                             std::vector<std::string>& warnings) {
  std::int64_t pods = 0;
  for (const JobTask& task : job.tasks) pods += std::clamp<std::int64_t>(task.replicas, 0, kManyPods);
  const bool on_node = std::ranges::any_of(tasks, [&](const Json& task) {
    return checkpoints_lie_on_node(*find_path(task, {"template", "spec"}), storage.path);
  });
  if (pods > 1 && on_node) {
    warnings.push_back(format(
        "the checkpoints at {} lie in a hostPath volume: it has to be the same storage on every node, or nothing "
        "can be restored.",
        storage.path));
  }
}

void mark_template(JsonEdit& edit, std::size_t index) {
  const std::string at = format("/spec/tasks/{}/template", index);
  edit.ensure(at + "/metadata", Json::object());
  edit.ensure(at + "/metadata/labels", Json::object());
  edit.set(format("{}/metadata/labels/{}", at, pointer_part(names::kProtectedLabel)), "true");
  if (has_our_gate(*edit.find(at + "/spec"))) return;
  edit.ensure(at + "/spec/schedulingGates", Json::array());
  edit.add(at + "/spec/schedulingGates/-", {{"name", names::kInjectionGate}});
}

// The places that are edited must have the shapes that the API gives them.
std::optional<std::string> fault_of_job_shape(const Json& job) {
  const Json* tasks = find_path(job, {"spec", "tasks"});
  if (tasks == nullptr || !tasks->is_array() || tasks->empty())
    return "the job has no tasks: there is nothing to protect";
  if (tasks->size() > kTasksMax)
    return format("the job has more than {} tasks: put pods that are alike into one task with replicas", kTasksMax);
  for (const Json& task : *tasks) {
    const auto wrong = [&](std::initializer_list<std::string_view> path) {
      const Json* value = find_path(task, path);
      return value != nullptr && !value->is_object();
    };
    if (wrong({"template"}) || wrong({"template", "metadata"}) || wrong({"template", "metadata", "labels"}) ||
        wrong({"template", "spec"})) {
      return "a task's template is not an object, or its metadata, labels or spec are none";
    }
    const Json* gates = find_path(task, {"template", "spec", "schedulingGates"});
    if (gates != nullptr && !gates->is_array()) return "a task's schedulingGates is not a list";
  }
  return std::nullopt;
}

// Messages name the task, each of them: where the name is longer than the API server takes, which
// calls the webhook before it validates, its number stands for it.
std::string where_is(const Job& job, std::size_t index) {
  const std::string& name = job.tasks[index].name;
  return name.size() <= kTaskNameBytesMax ? "task " + name : format("task number {}", index);
}

AdmissionAnswer protect(const Json& object, const Job& job, const AdmissionSettings& settings) {
  AdmissionAnswer answer;
  if (auto fault = fault_of_job_shape(object)) return refuse(*fault);
  if (auto fault = fault_of_annotations(object)) return refuse(*fault);
  if (auto fault = fault_of_checkpoint_settings(job.settings)) return refuse(*fault);
  if (auto fault = fault_of_policies(job.policies, "the job", answer.warnings)) return refuse(*fault);

  Storage storage{.path = job.settings.path.empty() ? std::string(names::kCheckpointsPath) : job.settings.path,
                  .has_claim = !job.settings.claim.empty() || !settings.default_claim.empty()};
  for (const Json& volume : list_of(object["spec"], "volumes")) {
    if (const std::string mount = text_of(volume, "mountPath"); !mount.empty()) storage.job_mounts.push_back(mount);
  }
  const std::int64_t grace_needed =
      job.settings.deadline_seconds.value_or(settings.deadline_seconds) + kGraceMargin.count();
  const Json& tasks = object["spec"]["tasks"];
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (auto fault = fault_of_task(tasks[i], where_is(job, i), storage)) return refuse(*fault);
    if (auto fault = fault_of_policies(job.tasks[i].policies, where_is(job, i), answer.warnings)) return refuse(*fault);
    warn_about_task(tasks[i], where_is(job, i), grace_needed, answer.warnings);
  }
  warn_about_node_storage(job, tasks, storage, answer.warnings);
  std::ranges::move(annotation_warnings(object), std::back_inserter(answer.warnings));
  if (job.settings.scheduling == names::kSchedulingForce) {
    answer.warnings.push_back(
        "fault-scheduling: force is treated as grace in this version: pods are deleted with their own grace.");
  }

  JsonEdit edit(object);
  take_out_ignored(edit, "/spec/policies", "the job", answer.warnings);
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    take_out_ignored(edit, format("/spec/tasks/{}/policies", i), where_is(job, i), answer.warnings);
    mark_template(edit, i);
  }
  if (metadata_value(object, "annotations", names::kStrictRetriesAnnotation) == "true") {
    if (job.max_retry < 2) {
      answer.warnings.push_back(format("maxRetry {} allows no restart at all (N allows N-1), and {} keeps it so.",
                                       job.max_retry, names::kStrictRetriesAnnotation));
    }
  } else if (job.max_retry < names::kMaxRetry) {
    if (object["spec"].contains("maxRetry")) {
      answer.warnings.push_back(
          format("maxRetry is raised from {} to {}, since Volcano counts each recovery as a retry; the annotation {}: "
                 "\"true\" leaves it.",
                 job.max_retry, names::kMaxRetry, names::kStrictRetriesAnnotation));
    }
    edit.set("/spec/maxRetry", names::kMaxRetry);
  }
  answer.patch = edit.take_operations();
  return answer;
}

}  // namespace

AdmissionAnswer admit_job(const Json& object, const AdmissionSettings& settings) {
  if (!object.is_object() || text_of(object, "kind") != "Job" ||
      !text_of(object, "apiVersion").starts_with(std::string(names::kVolcanoGroup) + "/")) {
    return refuse("this is no Volcano Job; Rekindle's webhook is registered for jobs in batch.volcano.sh only");
  }
  const std::string scheduling = metadata_value(object, "labels", names::kSchedulingLabel);
  const bool has_label = find_path(object, {"metadata", "labels", names::kSchedulingLabel}) != nullptr;
  if (!has_label || scheduling == names::kSchedulingOff || scheduling == names::kSchedulingNone) return {};
  if (scheduling != names::kSchedulingGrace && scheduling != names::kSchedulingForce) {
    return {
        .warnings = {format("fault-scheduling: {} is not one of grace, force, off: the job runs without protection.",
                            in_quotes(scheduling))}};
  }
  // generateName leaves the name to the API server.
  Json with_name = object;
  if (with_name.contains("metadata") && with_name["metadata"].is_object() && !with_name["metadata"].contains("name"))
    with_name["metadata"]["name"] = "job";
  Result<Job> job = job_from_json(with_name);
  if (!job) return refuse(job.error().message);
  return protect(object, *job, settings);
}

}  // namespace rekindle::op
