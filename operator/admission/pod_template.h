// What the job webhook and the pod webhook both check in a pod spec. All of it accepts any JSON.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rekindle::op {

// The text of a member, or empty.
std::string text_of(const nlohmann::json& object, std::string_view name);

// The array under that name, or an empty one when it is absent, null or no array.
const nlohmann::json& list_of(const nlohmann::json& object, std::string_view name);

const nlohmann::json* named(const nlohmann::json& list, std::string_view name);

// As Kubernetes names most objects: parts of lower case letters, digits and dashes, with dots
// between them.
bool is_object_name(std::string_view name);

// True when a path is the other or lies below it: "/a/b" in "/a".
bool lies_in(std::string_view path, std::string_view folder);

// The user's own writable mount that holds the path, deepest first, of any of the containers.
const nlohmann::json* mount_for(const nlohmann::json& pod_spec, std::string_view path);

// Why a folder cannot be used for checkpoints: relative, with "..", the root, or one of ours. None:
// it can.
std::optional<std::string> fault_of_path(std::string_view path);

// Container, init container, volume and mount names and paths that are ours and that a user took.
// None: none.
std::optional<std::string> taken_name(const nlohmann::json& pod_spec);

bool has_our_gate(const nlohmann::json& pod_spec, std::size_t* index = nullptr);

}  // namespace rekindle::op
