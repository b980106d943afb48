#include "worker-sidecar/checkpoint/attempt.h"

#include "common/base/format.h"
#include "common/base/json_fields.h"
#include "common/contract/job_limits.h"
#include "worker-sidecar/checkpoint/names.h"

namespace rekindle {
namespace {

constexpr std::string_view kAttemptFormat = "rekindle-attempt";
constexpr std::size_t kAttemptBytesMax = 4u << 20;
// A pod has three (itself, name and uid), and some fields are around them.
constexpr std::size_t kAttemptValuesMax = 4 * std::size_t{kPodsMax};

}  // namespace

Json encode_parent(const std::optional<ParentPoint>& parent) {
  if (!parent) return nullptr;
  return {{"attempt", parent->attempt}, {"step", parent->step}, {"path", parent->path}};
}

Result<std::optional<ParentPoint>> decode_parent(const Json& value, std::uint64_t attempt) {
  if (value.is_null()) return std::nullopt;
  JsonFields in(value, "parent");
  ParentPoint parent{.attempt = in.number("attempt"), .step = in.number("step"), .path = in.text("path")};
  // Parents only ever lie in the past, so a chain of them ends.
  if (parent.attempt == 0 || parent.attempt >= attempt) in.refuse("attempt", "must be an earlier attempt");
  if (parent.step == 0) in.refuse("step", "must not be 0");
  if (const std::optional<FolderName> name = parse_folder_name(parent.path);
      !name || name->attempt != parent.attempt || name->step != parent.step) {
    in.refuse("path", "must be the name of that checkpoint's folder");
  }
  if (Status status = in.finish(); !status) return std::unexpected(status.error());
  return parent;
}

std::string encode_attempt(const AttemptRecord& record) {
  Json pods = Json::array();
  for (const PodIdentity& pod : record.pods) pods.push_back({{"name", pod.name}, {"uid", pod.uid}});
  return dump_json({{"format", kAttemptFormat},
                    {"version", kAttemptVersion},
                    {"attempt", record.attempt},
                    {"parent", encode_parent(record.parent)},
                    {"job_uid", record.job_uid},
                    {"pods", std::move(pods)},
                    {"time", record.time}});
}

Result<AttemptRecord> decode_attempt(std::string_view text) {
  const Result<Json> json = parse_json(text, "the record of an attempt", kAttemptBytesMax, kAttemptValuesMax);
  if (!json) return std::unexpected(Error{ErrorCode::corrupt, json.error().message, Retry::no});
  JsonFields in(*json, "the record of an attempt");
  if (in.text("format") != kAttemptFormat) in.refuse("format", "must be " + std::string(kAttemptFormat));
  if (const std::uint64_t version = in.number("version"); version > kAttemptVersion) {
    return fail(ErrorCode::refused,
                format("the record of an attempt has version {}; this program reads up to {}: use a newer one", version,
                       kAttemptVersion));
  }
  AttemptRecord record{.attempt = in.number("attempt"), .job_uid = in.text("job_uid"), .time = in.text("time")};
  if (record.attempt == 0) in.refuse("attempt", "must not be 0");
  for (const Json& item : in.array("pods")) {
    JsonFields pod(item, "pod");
    record.pods.push_back({pod.text("name"), pod.text("uid")});
    if (Status status = pod.finish(); !status) return std::unexpected(status.error());
  }
  if (Status status = in.finish(); !status) return std::unexpected(status.error());
  if (!json->contains("parent")) return fail(ErrorCode::invalid_input, "the record of an attempt: parent is missing");
  Result<std::optional<ParentPoint>> parent = decode_parent((*json)["parent"], record.attempt);
  if (!parent) return std::unexpected(with_context(parent.error(), "the record of an attempt"));
  record.parent = std::move(*parent);
  return record;
}

}  // namespace rekindle
