#include "operator/model/breakpoint.h"

#include <array>
#include <cstdio>
#include <utility>

#include "common/base/format.h"
#include "operator/model/metadata.h"
#include "operator/model/names.h"

namespace rekindle::op {
namespace {

// "60s" as the schema's format duration gives it; also "1m", "1m30s".
std::optional<std::chrono::seconds> duration_from_text(std::string_view text) {
  std::int64_t total = 0;
  while (!text.empty()) {
    std::size_t digits = 0;
    std::int64_t value = 0;
    while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9' && digits < 9) {
      value = value * 10 + (text[digits] - '0');
      ++digits;
    }
    if (digits == 0 || digits == text.size()) return std::nullopt;
    const char unit = text[digits];
    if (unit == 'h') {
      total += value * 3600;
    } else if (unit == 'm') {
      total += value * 60;
    } else if (unit == 's') {
      total += value;
    } else {
      return std::nullopt;
    }
    text.remove_prefix(digits + 1);
  }
  return std::chrono::seconds(total);
}

Result<BreakpointSpec> spec_from_json(const Json& spec) {
  JsonFields in(spec, "breakpoint spec");
  JsonFields job(in.object_or_empty("jobRef"), "breakpoint jobRef");
  BreakpointSpec read{.job_name = job.text("name"), .job_uid = job.text_or("uid", "")};
  read.trigger = parse_enum<Trigger>(in.text_or("trigger", "User")).value_or(Trigger::other);
  read.requested_by = in.text_or("requestedBy", "user");
  read.reason = in.text_or("reason", "");
  read.attempt = in.number_or("attempt", 0);
  if (in.has("deadline")) {
    const std::optional<std::chrono::seconds> deadline = duration_from_text(in.text_or("deadline", ""));
    if (deadline) {
      read.deadline = *deadline;
    } else {
      in.refuse("deadline", "must be a duration such as 60s or 2m");
    }
  }
  const auto pod_from = [](const Json& entry) -> Result<PodRef> {
    JsonFields fields(entry, "breakpoint pod");
    PodRef pod{fields.text("name"), fields.text("uid")};
    if (Status status = fields.finish(); !status) return std::unexpected(status.error());
    return pod;
  };
  if (in.has("broken")) {
    Result<PodRef> pod = pod_from(in.object_or_empty("broken"));
    if (!pod) return std::unexpected(pod.error());
    read.broken = std::move(*pod);
  }
  for (const Json& entry : in.array_or_empty("pods")) {
    Result<PodRef> pod = pod_from(entry);
    if (!pod) return std::unexpected(pod.error());
    read.pods.push_back(std::move(*pod));
  }
  if (Status status = job.finish(); !status) return std::unexpected(status.error());
  if (Status status = in.finish(); !status) return std::unexpected(status.error());
  return read;
}

Result<BreakpointStatus> status_from_json(const Json& status) {
  JsonFields in(status, "breakpoint status");
  BreakpointStatus read{.attempt = in.number_or("attempt", 0),
                        .step = in.number_or("step", 0),
                        .ranks_saved = in.number_or("ranksSaved", 0),
                        .ranks_expected = in.number_or("ranksExpected", 0),
                        .bytes = in.number_or("bytes", 0),
                        .path = in.text_or("path", ""),
                        .manifest_hash = in.text_or("manifestHash", ""),
                        .restart_time = time_at(status, "restartTime"),
                        .restored_attempt = in.number_or("restoredAttempt", 0),
                        .restored_step = in.number_or("restoredStep", 0),
                        .first_step = in.number_or("firstStep", 0),
                        .message = in.text_or("message", "")};
  if (in.has("agreedMilliseconds")) read.agreed_milliseconds = in.number_or("agreedMilliseconds", 0);
  if (in.has("durableMilliseconds")) read.durable_milliseconds = in.number_or("durableMilliseconds", 0);
  read.state = parse_enum<BreakpointState>(in.text_or("state", "Requested")).value_or(BreakpointState::requested);
  for (const Json& entry : in.array_or_empty("conditions")) {
    JsonFields fields(entry, "breakpoint condition");
    read.conditions.push_back({.type = fields.text("type"),
                               .status = fields.text("status"),
                               .reason = fields.text_or("reason", ""),
                               .message = fields.text_or("message", ""),
                               .last_transition = time_at(entry, "lastTransitionTime")});
    if (Status finished = fields.finish(); !finished) return std::unexpected(finished.error());
  }
  if (Status finished = in.finish(); !finished) return std::unexpected(finished.error());
  return read;
}

Json pod_to_json(const PodRef& pod) { return {{"name", pod.name}, {"uid", pod.uid}}; }

}  // namespace

Trigger trigger_from_cause(TriggerCause cause) {
  switch (cause) {
    case TriggerCause::hook:
    case TriggerCause::terminated: return Trigger::pre_stop;  // the sidecar itself got SIGTERM
    case TriggerCause::operator_order: return Trigger::operator_request;
    case TriggerCause::rank_died: return Trigger::rank_died;
    case TriggerCause::pod_lost: return Trigger::pod_lost;
    case TriggerCause::collective_failed: return Trigger::collective_failed;
    case TriggerCause::user: return Trigger::user;
    case TriggerCause::sidecar:
    case TriggerCause::unknown: break;
  }
  return Trigger::other;
}

bool training_goes_on(Trigger trigger) { return trigger == Trigger::user || trigger == Trigger::schedule; }

bool is_final(BreakpointState state) { return state >= BreakpointState::restored; }

Result<Breakpoint> breakpoint_from_json(const Json& object) {
  Result<Metadata> metadata = metadata_from_json(object, "breakpoint");
  if (!metadata) return std::unexpected(metadata.error());
  Breakpoint read{.namespace_name = std::move(metadata->namespace_name),
                  .name = std::move(metadata->name),
                  .uid = std::move(metadata->uid),
                  .resource_version = std::move(metadata->resource_version),
                  .generation = metadata->generation,
                  .created = metadata->created,
                  .deleting = metadata->deletion_time.has_value()};
  if (const Json* owners = find_path(object, {"metadata", "ownerReferences"});
      owners != nullptr && owners->is_array()) {
    for (const Json& owner : *owners) {
      const Json* kind = find_path(owner, {"kind"});
      const Json* uid = find_path(owner, {"uid"});
      if (kind != nullptr && *kind == "Job" && uid != nullptr && uid->is_string())
        read.owner_uid = uid->get<std::string>();
    }
  }
  JsonFields top(object, "breakpoint");
  Result<BreakpointSpec> spec = spec_from_json(top.object("spec"));
  Result<BreakpointStatus> status = status_from_json(top.object_or_empty("status"));
  if (Status finished = top.finish(); !finished) return std::unexpected(finished.error());
  if (!spec) return std::unexpected(spec.error());
  if (!status) return std::unexpected(status.error());
  read.spec = std::move(*spec);
  read.status = std::move(*status);
  return read;
}

Json owned_by_job(std::string_view job_name, std::string_view job_uid) {
  return Json::array({{{"apiVersion", names::kVolcanoApiVersion},
                       {"kind", "Job"},
                       {"name", job_name},
                       {"uid", job_uid},
                       {"controller", false},
                       {"blockOwnerDeletion", false}}});
}

Json breakpoint_to_json(const Breakpoint& breakpoint) {
  const BreakpointSpec& spec = breakpoint.spec;
  Json metadata{{"name", breakpoint.name}, {"namespace", breakpoint.namespace_name}};
  if (!breakpoint.owner_uid.empty()) metadata["ownerReferences"] = owned_by_job(spec.job_name, breakpoint.owner_uid);
  Json job{{"name", spec.job_name}};
  if (!spec.job_uid.empty()) job["uid"] = spec.job_uid;
  Json body{{"jobRef", std::move(job)},
            {"trigger", to_string(spec.trigger)},
            {"requestedBy", spec.requested_by},
            {"deadline", format("{}s", spec.deadline.count())}};
  if (!spec.reason.empty()) body["reason"] = spec.reason;
  if (spec.attempt != 0) body["attempt"] = spec.attempt;
  if (spec.broken) body["broken"] = pod_to_json(*spec.broken);
  if (!spec.pods.empty()) {
    Json pods = Json::array();
    for (const PodRef& pod : spec.pods) pods.push_back(pod_to_json(pod));
    body["pods"] = std::move(pods);
  }
  return {{"apiVersion", names::kApiVersion},
          {"kind", names::kBreakpointKind},
          {"metadata", std::move(metadata)},
          {"spec", std::move(body)}};
}

Json breakpoint_status_to_json(const BreakpointStatus& status, std::int64_t generation) {
  Json body{{"state", to_string(status.state)}, {"observedGeneration", generation}};
  const auto put_number = [&](const char* name, std::uint64_t value) {
    if (value != 0) body[name] = value;
  };
  const auto put_text = [&](const char* name, const std::string& value) {
    if (!value.empty()) body[name] = value;
  };
  put_number("attempt", status.attempt);
  put_number("step", status.step);
  put_number("ranksExpected", status.ranks_expected);
  if (status.ranks_saved != 0 || status.ranks_expected != 0) {
    // 0 too: it replaces what a round that came to nothing has left, and says that all was written
    // from shadows.
    body["ranksSaved"] = status.ranks_saved;
    body["ranks"] = format("{}/{}", status.ranks_saved, status.ranks_expected);
  }
  if (status.bytes != 0) {
    body["bytes"] = status.bytes;
    body["size"] = human_bytes(status.bytes);
  }
  if (status.agreed_milliseconds) {
    body["agreedMilliseconds"] = *status.agreed_milliseconds;
    body["agreedIn"] = human_milliseconds(*status.agreed_milliseconds);
  }
  if (status.durable_milliseconds) {
    body["durableMilliseconds"] = *status.durable_milliseconds;
    body["durableIn"] = human_milliseconds(*status.durable_milliseconds);
  }
  put_text("path", status.path);
  put_text("manifestHash", status.manifest_hash);
  if (status.restart_time) body["restartTime"] = to_text(*status.restart_time);
  put_number("restoredAttempt", status.restored_attempt);
  if (status.state == BreakpointState::restored) body["restoredStep"] = status.restored_step;
  put_number("firstStep", status.first_step);
  put_text("message", status.message);
  Json conditions = Json::array();
  for (const Condition& condition : status.conditions) {
    conditions.push_back({{"type", condition.type},
                          {"status", condition.status},
                          {"reason", condition.reason},
                          {"message", condition.message},
                          {"observedGeneration", generation},
                          {"lastTransitionTime", to_text(condition.last_transition.value_or(WallTime{}))}});
  }
  body["conditions"] = std::move(conditions);
  return body;
}

void set_condition(BreakpointStatus& status, std::string_view type, std::string_view value, std::string_view reason,
                   std::string_view message, WallTime now) {
  for (Condition& condition : status.conditions) {
    if (condition.type != type) continue;
    if (condition.status != value) condition.last_transition = now;
    condition.status = value;
    condition.reason = reason;
    condition.message = message;
    return;
  }
  status.conditions.push_back({std::string(type), std::string(value), std::string(reason), std::string(message), now});
}

const Condition* find_condition(const BreakpointStatus& status, std::string_view type) {
  for (const Condition& condition : status.conditions) {
    if (condition.type == type) return &condition;
  }
  return nullptr;
}

std::string breakpoint_name(std::string_view job_name, std::uint64_t attempt, std::string_view fault_key) {
  // FNV-1a; only has to tell a few names of one job apart
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : fault_key) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  // spreads the last characters, where keys differ, over all letters
  hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9u;
  hash ^= hash >> 27;
  // 32 of them; few vowels, so few words
  constexpr std::string_view kLetters = "bcdfghjklmnpqrstvwxz2456789abcde";
  std::string suffix;
  for (int i = 0; i < 8; ++i) suffix += kLetters[(hash >> (5 * i)) & 31u];
  // with the rest at most 253, what an object name may have
  constexpr std::size_t kJobNameMax = 220;
  return format("{}-{}-{}", job_name.substr(0, kJobNameMax), attempt, suffix);
}

std::string human_bytes(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 6> kUnits{"", "Ki", "Mi", "Gi", "Ti", "Pi"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 1024 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), unit == 0 || value >= 100 ? "%.0f" : "%.1f", value);
  return std::string(text.data()) + std::string(kUnits[unit]);
}

std::string human_milliseconds(std::uint64_t milliseconds) {
  if (milliseconds < 1000) return format("{}ms", milliseconds);
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.1fs", static_cast<double>(milliseconds) / 1000.0);
  return text.data();
}

}  // namespace rekindle::op
