// Reads the metadata that all Kubernetes objects share. For the decoders of this folder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/json_fields.h"
#include "common/contract/wall_time.h"

namespace rekindle {

struct ControllerReference {
  std::string api_version;
  std::string kind;
  std::string name;
  std::string uid;
};

struct Metadata {
  std::string namespace_name;
  std::string name;
  std::string uid;
  std::string resource_version;
  std::int64_t generation = 0;
  std::optional<WallTime> created;
  std::optional<WallTime> deletion_time;
  std::optional<std::int64_t> deletion_grace_seconds;
};

// `kind` names the object in errors. A name is required, all else is optional.
Result<Metadata> metadata_from_json(const Json& object, std::string_view kind);

// The value of one label or annotation (`map` is "labels" or "annotations"); empty when there is
// none.
std::string metadata_value(const Json& object, std::string_view map, std::string_view key);

// The one owner with controller: true.
std::optional<ControllerReference> controller_of(const Json& object);

// The value below a path of names, or null when a part of it is missing or no object.
const Json* find_path(const Json& object, std::initializer_list<std::string_view> path);

// A time field; none when absent or unreadable.
std::optional<WallTime> time_at(const Json& object, std::string_view name);

// A decimal number from an annotation; `otherwise` when it is none.
std::int64_t number_from_text(std::string_view text, std::int64_t otherwise);

}  // namespace rekindle
