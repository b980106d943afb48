#include "operator/admission/pod_template.h"

#include <array>
#include <nlohmann/json.hpp>

#include "common/base/format.h"
#include "operator/model/names.h"

namespace rekindle::op {

using Json = nlohmann::json;

constexpr std::size_t kPathBytesMax = 4095;  // PATH_MAX of Linux

std::string text_of(const Json& object, std::string_view name) {
  if (!object.is_object()) return {};
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

const Json& list_of(const Json& object, std::string_view name) {
  static const Json empty = Json::array();
  if (!object.is_object()) return empty;
  const auto found = object.find(name);
  return found != object.end() && found->is_array() ? *found : empty;
}

const Json* named(const Json& list, std::string_view name) {
  for (const Json& entry : list) {
    if (text_of(entry, "name") == name) return &entry;
  }
  return nullptr;
}

bool lies_in(std::string_view path, std::string_view folder) {
  while (folder.size() > 1 && folder.ends_with('/')) folder.remove_suffix(1);
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  if (!path.starts_with(folder)) return false;
  return path.size() == folder.size() || folder == "/" || path[folder.size()] == '/';
}

bool is_object_name(std::string_view name) {
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  const auto is_part = [&](std::string_view part) {
    return !part.empty() && plain(part.front()) && plain(part.back()) &&
           std::ranges::all_of(part, [&](char c) { return plain(c) || c == '-'; });
  };
  if (name.size() > 253) return false;
  while (true) {
    const std::size_t dot = name.find('.');
    if (!is_part(name.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    name.remove_prefix(dot + 1);
  }
}

const Json* mount_for(const Json& pod_spec, std::string_view path) {
  const Json* best = nullptr;
  for (const Json& container : list_of(pod_spec, "containers")) {
    for (const Json& mount : list_of(container, "volumeMounts")) {
      const std::string at = text_of(mount, "mountPath");
      if (at.empty() || !lies_in(path, at) || mount.value("readOnly", Json(false)) == Json(true)) continue;
      if (text_of(mount, "name") == names::kCheckpointsVolume) continue;
      if (best == nullptr || text_of(*best, "mountPath").size() < at.size()) best = &mount;
    }
  }
  return best;
}

std::optional<std::string> fault_of_path(std::string_view path) {
  // Every container's environment has it.
  if (path.size() > kPathBytesMax)
    return format("the path is longer than {} bytes: choose a shorter one", kPathBytesMax);
  const std::string quoted = format("\"{}\"", path);
  if (!path.starts_with('/')) return quoted + " is not absolute: write it with a leading /";
  if (path == "/") return quoted + " is the root of the container: name a folder below it";
  for (std::size_t at = 0; at != std::string_view::npos; at = path.find('/', at + 1)) {
    if (path.substr(at, 3) == "/.." && (path.size() == at + 3 || path[at + 3] == '/'))
      return quoted + " has .. in it: write it without";
  }
  for (const std::string_view ours : {names::kRunPath, names::kBinPath, names::kTlsPath}) {
    if (lies_in(path, ours) || lies_in(ours, path))
      return format("{} meets {}, which Rekindle uses itself: choose another", quoted, ours);
  }
  return std::nullopt;
}

std::optional<std::string> taken_name(const Json& pod_spec) {
  for (const std::string_view list : {"containers", "initContainers"}) {
    if (named(list_of(pod_spec, list), names::kSidecar) != nullptr)
      return "container name " + std::string(names::kSidecar);
  }
  constexpr std::array<std::string_view, 4> kVolumes{names::kRunVolume, names::kBinVolume, names::kTlsVolume,
                                                     names::kCheckpointsVolume};
  for (const std::string_view volume : kVolumes) {
    if (named(list_of(pod_spec, "volumes"), volume) != nullptr) return "volume name " + std::string(volume);
  }
  for (const Json& container : list_of(pod_spec, "containers")) {
    for (const Json& mount : list_of(container, "volumeMounts")) {
      for (const std::string_view ours : {names::kRunPath, names::kBinPath, names::kTlsPath}) {
        if (lies_in(text_of(mount, "mountPath"), ours)) return "mount path " + std::string(ours);
      }
    }
  }
  return std::nullopt;
}

bool has_our_gate(const Json& pod_spec, std::size_t* index) {
  const Json& gates = list_of(pod_spec, "schedulingGates");
  for (std::size_t i = 0; i < gates.size(); ++i) {
    if (text_of(gates[i], "name") != names::kInjectionGate) continue;
    if (index != nullptr) *index = i;
    return true;
  }
  return false;
}

}  // namespace rekindle::op
