#include "operator/admission/checkpoint_volume.h"

#include <nlohmann/json.hpp>

#include "common/base/format.h"
#include "common/base/json_fields.h"
#include "operator/admission/pod_template.h"
#include "operator/model/metadata.h"
#include "operator/model/names.h"

namespace rekindle::op {
namespace {

const Json* volume_of(const Json& pod_spec, const Json& mount) {
  return named(list_of(pod_spec, "volumes"), text_of(mount, "name"));
}

bool has(const Json& volume, std::string_view source) {
  const Json* found = find_path(volume, {source});
  return found != nullptr && !found->is_null();
}

// What lives as long as one pod, in Kubernetes' words. The API server makes an emptyDir of a volume
// that names no source.
std::optional<std::string_view> lives_with_pod(const Json& volume) {
  if (has(volume, "emptyDir") || volume.size() == 1) return "an emptyDir";
  if (has(volume, "ephemeral")) return "an ephemeral volume";
  return std::nullopt;
}

// The mount that is in the way of a writable one.
const Json* read_only_mount_for(const Json& pod_spec, std::string_view path) {
  for (const Json& container : list_of(pod_spec, "containers")) {
    for (const Json& mount : list_of(container, "volumeMounts")) {
      const std::string at = text_of(mount, "mountPath");
      if (!at.empty() && lies_in(path, at) && mount.value("readOnly", Json(false)) == Json(true)) return &mount;
    }
  }
  return nullptr;
}

// The API server calls the webhook before it looks at names.
std::string name_of(const Json& mount) {
  constexpr std::size_t kNameBytesMax = 63;
  const std::string name = text_of(mount, "name");
  return name.size() <= kNameBytesMax ? "volume " + name : "a volume with a name too long to tell";
}

std::string read_only(std::string_view path, const Json& mount) {
  return format(
      "has nowhere to put checkpoints: {} at {} is mounted read-only. Take readOnly out, or choose another folder in "
      "{}.",
      name_of(mount), path, names::kPathAnnotation);
}

}  // namespace

std::optional<std::string> fault_of_checkpoint_volume(const Json& pod_spec, std::string_view path, bool has_claim) {
  const Json* mount = mount_for(pod_spec, path);
  if (mount == nullptr) {
    // A claim may lie below such a mount, not in its very place.
    const Json* in_the_way = read_only_mount_for(pod_spec, path);
    if (in_the_way == nullptr || (has_claim && text_of(*in_the_way, "mountPath") != path)) return std::nullopt;
    return read_only(path, *in_the_way);
  }
  const Json* volume = volume_of(pod_spec, *mount);
  if (volume == nullptr || !volume->is_object()) return std::nullopt;  // the API server refuses that
  if (const auto kind = lives_with_pod(*volume)) {
    return format(
        "would keep its checkpoints at {} in {}, which is {}: each pod has its own, and it goes with the pod, "
        "so "
        "that nothing could be restored. Mount storage that all pods share, or name a PersistentVolumeClaim in the "
        "annotation {}.",
        path, name_of(*mount), *kind, names::kClaimAnnotation);
  }
  const Json* claim_read_only = find_path(*volume, {"persistentVolumeClaim", "readOnly"});
  if (claim_read_only != nullptr && *claim_read_only == Json(true)) return read_only(path, *mount);
  return std::nullopt;
}

bool checkpoints_lie_on_node(const Json& pod_spec, std::string_view path) {
  const Json* mount = mount_for(pod_spec, path);
  const Json* volume = mount == nullptr ? nullptr : volume_of(pod_spec, *mount);
  return volume != nullptr && volume->is_object() && has(*volume, "hostPath");
}

}  // namespace rekindle::op
