#include "operator/model/metadata.h"

#include <algorithm>
#include <charconv>

namespace rekindle::op {
namespace {

// Far above what any pod is given, and times less it stay in range.
constexpr std::int64_t kGraceSecondsMax = std::int64_t{1} << 31;

}  // namespace

const Json* find_path(const Json& object, std::initializer_list<std::string_view> path) {
  const Json* at = &object;
  for (const std::string_view name : path) {
    if (!at->is_object()) return nullptr;
    const auto found = at->find(name);
    if (found == at->end() || found->is_null()) return nullptr;
    at = &*found;
  }
  return at;
}

std::optional<WallTime> time_at(const Json& object, std::string_view name) {
  const Json* value = find_path(object, {name});
  if (value == nullptr || !value->is_string()) return std::nullopt;
  return parse_wall_time(value->get_ref<const std::string&>());
}

std::int64_t number_from_text(std::string_view text, std::int64_t otherwise) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : otherwise;
}

Result<Metadata> metadata_from_json(const Json& object, std::string_view kind) {
  JsonFields top(object, std::string(kind));
  const Json& raw = top.object("metadata");
  if (Status status = top.finish(); !status) return std::unexpected(status.error());
  JsonFields in(raw, std::string(kind) + " metadata");
  Metadata metadata{.namespace_name = in.text_or("namespace", ""),
                    .name = in.text("name"),
                    .uid = in.text_or("uid", ""),
                    .resource_version = in.text_or("resourceVersion", ""),
                    .generation = in.integer_or("generation", 0),
                    .created = time_at(raw, "creationTimestamp"),
                    .deletion_time = time_at(raw, "deletionTimestamp")};
  if (in.has("deletionGracePeriodSeconds"))
    metadata.deletion_grace_seconds =
        std::clamp<std::int64_t>(in.integer_or("deletionGracePeriodSeconds", 0), 0, kGraceSecondsMax);
  if (Status status = in.finish(); !status) return std::unexpected(status.error());
  return metadata;
}

std::string metadata_value(const Json& object, std::string_view map, std::string_view key) {
  const Json* value = find_path(object, {"metadata", map, key});
  return value != nullptr && value->is_string() ? value->get<std::string>() : std::string();
}

std::optional<ControllerReference> controller_of(const Json& object) {
  const Json* owners = find_path(object, {"metadata", "ownerReferences"});
  if (owners == nullptr || !owners->is_array()) return std::nullopt;
  for (const Json& owner : *owners) {
    const Json* controls = find_path(owner, {"controller"});
    if (controls == nullptr || !controls->is_boolean() || !controls->get<bool>()) continue;
    JsonFields in(owner, "owner reference");
    ControllerReference reference{.api_version = in.text_or("apiVersion", ""),
                                  .kind = in.text_or("kind", ""),
                                  .name = in.text_or("name", ""),
                                  .uid = in.text_or("uid", "")};
    if (!in.finish()) return std::nullopt;
    return reference;
  }
  return std::nullopt;
}

}  // namespace rekindle::op
