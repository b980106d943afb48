#include "operator/model/pod.h"

#include <utility>

#include "operator/model/metadata.h"
#include "operator/model/names.h"

namespace rekindle::op {
namespace {

void read_owner(const Json& object, Pod& pod) {
  const std::optional<ControllerReference> owner = controller_of(object);
  if (!owner || owner->kind != "Job" || !owner->api_version.starts_with(std::string(names::kVolcanoGroup) + "/"))
    return;
  pod.job_name = owner->name;
  pod.job_uid = owner->uid;
}

// Volcano 1.9 and newer writes the index; before that it stands only in the name
// <job>-<task>-<index>.
std::int32_t index_of(const Json& object, const std::string& name) {
  std::string text = metadata_value(object, "annotations", names::kTaskIndexAnnotation);
  if (text.empty()) text = name.substr(name.rfind('-') + 1);
  const std::int64_t index = number_from_text(text, -1);
  // Not the low bits of it: they are the place of another pod.
  return std::in_range<std::int32_t>(index) ? static_cast<std::int32_t>(index) : -1;
}

Status read_spec(const Json& spec, Pod& pod) {
  JsonFields in(spec, "pod spec");
  pod.node = in.text_or("nodeName", "");
  pod.grace_seconds = in.integer_or("terminationGracePeriodSeconds", 30);
  pod.restarts_in_place = in.text_or("restartPolicy", "Always") != "Never";
  for (const Json& gate : in.array_or_empty("schedulingGates")) {
    const Json* name = find_path(gate, {"name"});
    if (name != nullptr && *name == names::kInjectionGate) pod.gated = true;
  }
  for (const Json& container : in.array_or_empty("initContainers")) {
    const Json* name = find_path(container, {"name"});
    if (name != nullptr && *name == names::kSidecar) pod.injected = true;
  }
  return in.finish();
}

Status read_status(const Json& status, Pod& pod) {
  JsonFields in(status, "pod status");
  pod.address = in.text_or("podIP", "");
  pod.reason = in.text_or("reason", "");
  pod.phase = parse_enum<PodPhase>(in.text_or("phase", "Pending")).value_or(PodPhase::unknown);
  for (const Json& condition : in.array_or_empty("conditions")) {
    JsonFields fields(condition, "pod condition");
    if (fields.text_or("type", "") == "DisruptionTarget" && fields.text_or("status", "") == "True") {
      pod.disruption = fields.text_or("reason", "");
      if (pod.disruption.empty()) pod.disruption = "unknown reason";
    }
    if (Status read = fields.finish(); !read) return read;
  }
  for (const Json& container : in.array_or_empty("containerStatuses")) {
    const Json* terminated = find_path(container, {"state", "terminated"});
    if (terminated == nullptr) continue;
    JsonFields fields(*terminated, "container status");
    JsonFields outer(container, "container status");
    pod.ended.push_back({.name = outer.text_or("name", ""),
                         .reason = fields.text_or("reason", ""),
                         .exit_code = static_cast<std::int32_t>(fields.integer_or("exitCode", 0)),
                         .signal = static_cast<std::int32_t>(fields.integer_or("signal", 0)),
                         .finished = time_at(*terminated, "finishedAt")});
    if (Status read = fields.finish(); !read) return read;
    if (Status read = outer.finish(); !read) return read;
  }
  pod.ended.shrink_to_fit();
  return in.finish();
}

}  // namespace

Result<Pod> pod_from_json(const Json& object) {
  Result<Metadata> metadata = metadata_from_json(object, "pod");
  if (!metadata) return std::unexpected(metadata.error());
  Pod pod{.namespace_name = std::move(metadata->namespace_name),
          .name = std::move(metadata->name),
          .uid = std::move(metadata->uid),
          .resource_version = std::move(metadata->resource_version),
          .task = metadata_value(object, "annotations", names::kTaskSpecAnnotation),
          .not_injected = metadata_value(object, "annotations", names::kNotInjectedAnnotation),
          .job_version = number_from_text(metadata_value(object, "annotations", names::kJobVersionAnnotation), 0),
          .created = metadata->created,
          .deletion_time = metadata->deletion_time,
          .deletion_grace_seconds = metadata->deletion_grace_seconds};
  pod.is_protected = metadata_value(object, "labels", names::kProtectedLabel) == "true";
  pod.out_of_sync = !metadata_value(object, "annotations", names::kOutOfSyncAnnotation).empty();
  pod.index = index_of(object, pod.name);
  read_owner(object, pod);
  JsonFields top(object, "pod");
  const Json& spec = top.object_or_empty("spec");
  const Json& status = top.object_or_empty("status");
  if (Status read = top.finish(); !read) return std::unexpected(read.error());
  if (Status read = read_spec(spec, pod); !read) return std::unexpected(read.error());
  if (Status read = read_status(status, pod); !read) return std::unexpected(read.error());
  return pod;
}

bool is_deleting(const Pod& pod) { return pod.deletion_time.has_value(); }

bool is_finished(const Pod& pod) { return pod.phase == PodPhase::succeeded || pod.phase == PodPhase::failed; }

std::optional<WallTime> deletion_began(const Pod& pod) {
  if (!pod.deletion_time) return std::nullopt;
  return *pod.deletion_time - std::chrono::seconds(pod.deletion_grace_seconds.value_or(0));
}

void keep_first_deletion(Pod& pod, const Pod& before) {
  if (pod.uid != before.uid || !before.deletion_time) return;
  const std::optional<WallTime> began = deletion_began(pod);
  if (began && *began <= *deletion_began(before)) return;
  pod.deletion_time = before.deletion_time;
  pod.deletion_grace_seconds = before.deletion_grace_seconds;
}

}  // namespace rekindle::op
