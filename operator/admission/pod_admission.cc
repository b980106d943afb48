#include "operator/admission/pod_admission.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "common/base/format.h"
#include "common/contract/deadlines.h"
#include "common/contract/environment.h"
#include "operator/admission/checkpoint_variables.h"
#include "operator/admission/json_edit.h"
#include "operator/admission/pod_template.h"
#include "operator/model/metadata.h"
#include "operator/model/names.h"
#include "operator/model/pod.h"

namespace rekindle::op {
namespace {

using Variables = std::vector<std::pair<std::string, std::string>>;

// Each gets some 20 KB of the patch, and no kubelet would start as many.
constexpr std::size_t kContainersMax = 256;

// Everything that the parts of the injection need to know, worked out once.
struct Facts {
  const AdmissionSettings* settings = nullptr;
  const PodOwner* owner = nullptr;
  std::int64_t ordinal = 0;
  std::int64_t pods = 0;
  std::int64_t ranks_per_pod = 1;
  std::int64_t deadline_seconds = kBreakpointDeadlineDefault.count();
  std::int64_t grace_seconds = (kBreakpointDeadlineDefault + kGraceMargin).count();
  std::string path;
  std::string claim;
  CheckpointVariables checkpoints;
  std::optional<std::string> memory_volume_limit;
  Json own_mount;  // of the user's volume that serves the path; null: the claim does
};

// Left gated on purpose: the reason is kept on the pod, so that it is not deleted and made anew for
// ever.
AdmissionAnswer leave_gated(const Json& pod, const std::string& why) {
  AdmissionAnswer answer{.warnings = {"Rekindle cannot protect this pod, it stays unscheduled: " + why}};
  const Json* metadata = find_path(pod, {"metadata"});
  if (metadata == nullptr || !metadata->is_object()) return answer;
  JsonEdit edit(pod);
  const Json* annotations = edit.find("/metadata/annotations");
  if (annotations != nullptr && !annotations->is_object()) return answer;
  edit.ensure("/metadata/annotations", Json::object());
  edit.set("/metadata/annotations/" + pointer_part(names::kNotInjectedAnnotation), why);
  answer.patch = edit.take_operations();
  return answer;
}

// --- shape: what is edited below must be what the API says that it is

std::optional<std::string> fault_of_pod_shape(const Json& pod) {
  const auto wrong = [&](const Json& object, std::initializer_list<std::string_view> path, bool list) {
    const Json* value = find_path(object, path);
    return value != nullptr && (list ? !value->is_array() : !value->is_object());
  };
  if (wrong(pod, {"metadata"}, false) || wrong(pod, {"metadata", "annotations"}, false))
    return "its metadata is not an object";
  if (find_path(pod, {"spec"}) == nullptr || wrong(pod, {"spec"}, false)) return "it has no spec";
  for (const std::string_view list : {"containers", "initContainers", "volumes", "schedulingGates"}) {
    if (wrong(pod, {"spec", list}, true)) return format("spec.{} is not a list", list);
  }
  if (wrong(pod, {"spec", "securityContext"}, false)) return "spec.securityContext is not an object";
  if (wrong(pod, {"spec", "securityContext", "supplementalGroups"}, true)) return "supplementalGroups is not a list";
  const Json& containers = list_of(pod["spec"], "containers");
  if (containers.empty()) return "it has no container";
  if (containers.size() > kContainersMax) return format("it has more than {} containers", kContainersMax);
  for (const Json& container : containers) {
    if (!container.is_object() || text_of(container, "name").empty()) return "one of its containers has no name";
    for (const std::string_view list : {"env", "volumeMounts"}) {
      if (wrong(container, {list}, true))
        return format("container {}: {} is not a list", text_of(container, "name"), list);
    }
    if (wrong(container, {"lifecycle"}, false))
      return format("container {}: lifecycle is not an object", text_of(container, "name"));
  }
  return std::nullopt;
}

// --- what is added

Variables shared_variables(const Facts& facts) {
  return {{environment::kSocket, std::string(names::kSocketPath)},
          {environment::kCheckpointFolder, facts.path},
          {environment::kNamespace, facts.owner->namespace_name},
          {environment::kJob, facts.owner->job_name},
          {environment::kJobUid, facts.owner->job_uid},
          {environment::kPodOrdinal, std::to_string(facts.ordinal)},
          {environment::kPods, std::to_string(facts.pods)},
          {environment::kRanksPerPod, std::to_string(facts.ranks_per_pod)},
          {environment::kWorldSize, std::to_string(facts.pods * facts.ranks_per_pod)}};
}

Variables main_variables(const Facts& facts) {
  Variables variables = shared_variables(facts);
  if (facts.ranks_per_pod == 1) {
    variables.emplace_back(environment::kRank, std::to_string(facts.ordinal));
    variables.emplace_back(environment::kRankId, std::to_string(facts.ordinal));
    variables.emplace_back(environment::kRankSize, std::to_string(facts.pods));
  }
  // Ranks write breakpoints themselves; all the rest is the sidecar's.
  constexpr const char* kBandwidth = environment::kWriteBandwidthMax;
  if (const auto found = facts.checkpoints.values.find(kBandwidth); found != facts.checkpoints.values.end())
    variables.emplace_back(*found);
  return variables;
}

Json sidecar_environment(const Facts& facts) {
  Variables variables = shared_variables(facts);
  variables.insert(variables.end(), facts.checkpoints.values.begin(), facts.checkpoints.values.end());
  variables.emplace_back(environment::kDeadlineSeconds, std::to_string(facts.deadline_seconds));
  variables.emplace_back(environment::kGraceSeconds, std::to_string(facts.grace_seconds));
  variables.emplace_back(environment::kOperator, facts.settings->operator_address);
  variables.emplace_back(environment::kTlsFolder, std::string(names::kTlsPath));
  Json environment = Json::array();
  for (const auto& [name, value] : variables) environment.push_back({{"name", name}, {"value", value}});
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kDownward{
      {{environment::kPodName, "metadata.name"},
       {environment::kPodUid, "metadata.uid"},
       {environment::kPodAddress, "status.podIP"}}};
  for (const auto& [name, field] : kDownward) {
    environment.push_back(
        {{"name", name}, {"valueFrom", {{"fieldRef", {{"apiVersion", "v1"}, {"fieldPath", field}}}}}});
  }
  return environment;
}

Json checkpoint_mount(const Facts& facts) {
  if (!facts.own_mount.is_null()) return facts.own_mount;
  return {{"name", names::kCheckpointsVolume}, {"mountPath", facts.path}};
}

Json sidecar_container(const Facts& facts) {
  const AdmissionSettings& settings = *facts.settings;
  Json container{
      {"name", names::kSidecar},
      {"image", settings.sidecar_image},
      {"restartPolicy", "Always"},
      {"env", sidecar_environment(facts)},
      {"resources",
       {{"requests", {{"cpu", settings.resources.cpu_request}, {"memory", settings.resources.memory_request}}},
        {"limits", {{"memory", settings.resources.memory_limit}}}}},
      {"securityContext",
       {{"runAsNonRoot", true},
        {"runAsUser", names::kSidecarUser},
        {"runAsGroup", names::kSidecarUser},
        {"allowPrivilegeEscalation", false},
        {"readOnlyRootFilesystem", true},
        {"capabilities", {{"drop", Json::array({"ALL"})}}},
        {"seccompProfile", {{"type", "RuntimeDefault"}}}}},
      {"startupProbe",
       {{"exec", {{"command", Json::array({names::kSidecarProgram, "ready"})}}},
        {"periodSeconds", 1},
        {"failureThreshold", 60}}},
      {"volumeMounts", Json::array({{{"name", names::kRunVolume}, {"mountPath", names::kRunPath}},
                                    {{"name", names::kBinVolume}, {"mountPath", names::kBinPath}},
                                    {{"name", names::kTlsVolume}, {"mountPath", names::kTlsPath}, {"readOnly", true}},
                                    checkpoint_mount(facts)})}};
  if (!settings.image_pull_policy.empty()) container["imagePullPolicy"] = settings.image_pull_policy;
  return container;
}

void add_volumes(JsonEdit& edit, const Facts& facts) {
  edit.ensure("/spec/volumes", Json::array());
  const auto add = [&](std::string_view name, Json source) {
    if (named(*edit.find("/spec/volumes"), name) != nullptr) return;
    source["name"] = name;
    edit.add("/spec/volumes/-", std::move(source));
  };
  Json memory{{"medium", "Memory"}};
  if (facts.memory_volume_limit) memory["sizeLimit"] = *facts.memory_volume_limit;
  add(names::kRunVolume, {{"emptyDir", std::move(memory)}});
  add(names::kBinVolume, {{"emptyDir", Json::object()}});
  constexpr int kReadableByAll = 0444;  // the sidecar is no member of the group that owns it
  add(names::kTlsVolume, {{"secret",
                           {{"secretName", certificate_secret_name(facts.owner->job_name, facts.owner->job_uid)},
                            {"defaultMode", kReadableByAll}}}});
  if (facts.own_mount.is_null())
    add(names::kCheckpointsVolume, {{"persistentVolumeClaim", {{"claimName", facts.claim}}}});
}

void add_environment(JsonEdit& edit, const std::string& container, const Variables& variables) {
  edit.ensure(container + "/env", Json::array());
  for (const auto& [name, value] : variables) {
    const Json& environment = *edit.find(container + "/env");
    std::size_t at = 0;
    while (at < environment.size() && text_of(environment[at], "name") != name) ++at;
    const Json entry{{"name", name}, {"value", value}};
    if (at == environment.size()) {
      edit.add(container + "/env/-", entry);
    } else if (name.starts_with(environment::kPrefix) && environment[at] != entry) {
      edit.replace(format("{}/env/{}", container, at), entry);
    }
  }
}

void add_mounts(JsonEdit& edit, const std::string& container, const Facts& facts) {
  edit.ensure(container + "/volumeMounts", Json::array());
  std::vector<Json> mounts{{{"name", names::kRunVolume}, {"mountPath", names::kRunPath}},
                           {{"name", names::kBinVolume}, {"mountPath", names::kBinPath}, {"readOnly", true}}};
  if (facts.own_mount.is_null()) mounts.push_back(checkpoint_mount(facts));
  for (Json& mount : mounts) {
    const Json& there = *edit.find(container + "/volumeMounts");
    const bool taken = std::ranges::any_of(
        there, [&](const Json& each) { return text_of(each, "mountPath") == text_of(mount, "mountPath"); });
    if (!taken) edit.add(container + "/volumeMounts/-", std::move(mount));
  }
}

void add_hook(JsonEdit& edit, const std::string& container, const std::string& name,
              std::vector<std::string>& warnings) {
  const Json hook{{"exec", {{"command", Json::array({names::kHookPath})}}}};
  if (const Json* there = edit.find(container + "/lifecycle/preStop")) {
    // The Job webhook refuses these; another webhook put this one in later.
    if (*there != hook)
      warnings.push_back(
          format("container {} has another preStop hook: its end does not wait for the breakpoint", name));
    return;
  }
  edit.ensure(container + "/lifecycle", Json::object());
  edit.add(container + "/lifecycle/preStop", hook);
}

void add_group(JsonEdit& edit) {
  edit.ensure("/spec/securityContext", Json::object());
  edit.ensure("/spec/securityContext/supplementalGroups", Json::array());
  const Json& groups = *edit.find("/spec/securityContext/supplementalGroups");
  if (std::ranges::find(groups, Json(names::kSharedGroup)) == groups.end()) {
    edit.add("/spec/securityContext/supplementalGroups/-", names::kSharedGroup);
  }
}

void add_sidecar(JsonEdit& edit, const Facts& facts) {
  const Json* init_containers = edit.find("/spec/initContainers");
  if (init_containers != nullptr && named(*init_containers, names::kSidecar) != nullptr) return;
  edit.ensure("/spec/initContainers", Json::array());
  edit.add("/spec/initContainers/0", sidecar_container(facts));
}

void annotate(JsonEdit& edit, const Facts& facts) {
  edit.ensure("/metadata/annotations", Json::object());
  edit.set("/metadata/annotations/" + pointer_part(names::kInjectedAnnotation), facts.settings->version);
  const std::string rank_index = "/metadata/annotations/" + pointer_part(names::kRankIndexAnnotation);
  if (edit.find(rank_index) == nullptr) edit.add(rank_index, std::to_string(facts.ordinal));
  const std::string refused = "/metadata/annotations/" + pointer_part(names::kNotInjectedAnnotation);
  if (edit.find(refused) != nullptr) edit.remove(refused);
}

void raise_grace(JsonEdit& edit, Facts& facts, std::vector<std::string>& warnings) {
  const Json* grace = edit.find("/spec/terminationGracePeriodSeconds");
  const std::int64_t seconds = grace != nullptr && grace->is_number_integer() ? grace->get<std::int64_t>() : 30;
  facts.grace_seconds = std::max(seconds, facts.deadline_seconds + kGraceMargin.count());
  if (facts.grace_seconds == seconds) return;
  edit.set("/spec/terminationGracePeriodSeconds", facts.grace_seconds);
  warnings.push_back(format("terminationGracePeriodSeconds raised from {} to {}", seconds, facts.grace_seconds));
}

AdmissionAnswer inject(const Json& pod, Facts facts) {
  AdmissionAnswer answer{.warnings = facts.checkpoints.warnings};
  JsonEdit edit(pod);
  annotate(edit, facts);
  raise_grace(edit, facts, answer.warnings);
  add_group(edit);
  add_volumes(edit, facts);
  add_sidecar(edit, facts);
  const Variables variables = main_variables(facts);
  const std::size_t mains = list_of(pod["spec"], "containers").size();
  for (std::size_t i = 0; i < mains; ++i) {
    const std::string container = format("/spec/containers/{}", i);
    add_environment(edit, container, variables);
    add_mounts(edit, container, facts);
    add_hook(edit, container, text_of(pod["spec"]["containers"][i], "name"), answer.warnings);
  }
  std::size_t gate = 0;
  if (has_our_gate(edit.document()["spec"], &gate)) edit.remove(format("/spec/schedulingGates/{}", gate));
  answer.patch = edit.take_operations();
  return answer;
}

}  // namespace

std::optional<PodOwner> protected_owner(const Json& pod, std::string_view request_namespace) {
  if (metadata_value(pod, "labels", names::kProtectedLabel) != "true") return std::nullopt;
  const std::optional<ControllerReference> owner = controller_of(pod);
  if (!owner || owner->kind != "Job" || !owner->api_version.starts_with(std::string(names::kVolcanoGroup) + "/"))
    return std::nullopt;
  std::string namespace_name(request_namespace);
  if (namespace_name.empty()) {
    if (const Json* metadata = find_path(pod, {"metadata"})) namespace_name = text_of(*metadata, "namespace");
  }
  return PodOwner{std::move(namespace_name), owner->name, owner->uid};
}

AdmissionAnswer admit_pod(const Json& pod, const PodOwner& owner, const Job* job, const AdmissionSettings& settings) {
  if (job == nullptr || job->uid != owner.job_uid) {
    return {.warnings = {format("Rekindle does not know job {} yet; the pod waits and is made anew in a moment",
                                owner.job_name)}};
  }
  if (auto fault = fault_of_pod_shape(pod)) return leave_gated(pod, *fault);
  Result<Pod> read = pod_from_json(pod);
  if (!read) return leave_gated(pod, read.error().message);
  const std::optional<std::int64_t> ordinal = ordinal_of(*job, read->task, read->index);
  if (!ordinal) {
    return {
        .warnings = {format("job {} has no pod {} in task \"{}\" as far as Rekindle knows; the pod waits and is made "
                            "anew in a moment",
                            job->name, read->index, read->task)}};
  }

  Facts facts{.settings = &settings,
              .owner = &owner,
              .ordinal = *ordinal,
              .pods = pods_expected(*job),
              .ranks_per_pod = job->settings.ranks_per_pod,
              .deadline_seconds = job->settings.deadline_seconds.value_or(settings.deadline_seconds),
              .path = job->settings.path.empty() ? std::string(names::kCheckpointsPath) : job->settings.path,
              .claim = job->settings.claim.empty() ? settings.default_claim : job->settings.claim,
              .checkpoints = checkpoint_variables(job->settings, settings)};
  facts.memory_volume_limit = memory_volume_limit(job->settings, facts.checkpoints.keeps_copies);
  // It was checked at CREATE, and the annotation may have been edited since.
  if (auto fault = fault_of_path(facts.path))
    return leave_gated(pod, format("annotation {}: {}", names::kPathAnnotation, *fault));
  if (const Json* mount = mount_for(pod["spec"], facts.path)) {
    if (!text_of(*mount, "subPathExpr").empty()) {
      return leave_gated(
          pod, format("the volume at {} is mounted with subPathExpr, which the sidecar cannot follow: use subPath",
                      facts.path));
    }
    facts.own_mount = *mount;
  } else if (facts.claim.empty()) {
    return leave_gated(
        pod, format("no volume is mounted at {} and there is no claim for checkpoints: name one in the annotation {}",
                    facts.path, names::kClaimAnnotation));
  }
  return inject(pod, std::move(facts));
}

}  // namespace rekindle::op
