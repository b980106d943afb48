#include "operator/model/job.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "common/base/format.h"
#include "common/contract/deadlines.h"
#include "common/contract/job_limits.h"
#include "operator/model/metadata.h"
#include "operator/model/names.h"

namespace rekindle::op {
namespace {

// A Go duration as metav1.Duration prints it: "1m30s", "300ms". Zero for anything else.
std::chrono::seconds go_duration(std::string_view text) {
  double total_seconds = 0;
  while (!text.empty()) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    // "nan" is a number as well
    if (error != std::errc() || !(value >= 0)) return std::chrono::seconds(0);
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    const std::size_t unit_size = std::min(text.find_first_of("0123456789."), text.size());
    const std::string_view unit = text.substr(0, unit_size);
    if (unit == "h") {
      total_seconds += value * 3600;
    } else if (unit == "m") {
      total_seconds += value * 60;
    } else if (unit == "s") {
      total_seconds += value;
    } else if (unit == "ms") {
      total_seconds += value / 1e3;
    } else if (unit != "us" && unit != "ns" && unit != "µs") {
      return std::chrono::seconds(0);
    }
    text.remove_prefix(unit_size);
  }
  constexpr double kYear = 365.0 * 24 * 3600;
  return std::chrono::seconds(static_cast<std::int64_t>(std::min(total_seconds, kYear) + 0.999));
}

Result<std::vector<PolicyRule>> policies_from_json(const Json& list, std::string_view what) {
  std::vector<PolicyRule> rules;
  for (const Json& entry : list) {
    JsonFields in(entry, "policy");
    PolicyRule rule{.events = in.texts_or_empty("events"), .action = in.text_or("action", "")};
    if (const std::string event = in.text_or("event", ""); !event.empty())
      rule.events.insert(rule.events.begin(), event);
    if (in.has("exitCode")) rule.exit_code = in.integer_or("exitCode", 0);
    if (in.has("timeout")) rule.timeout = go_duration(in.text_or("timeout", ""));
    if (Status status = in.finish(); !status) return std::unexpected(with_context(status.error(), what));
    rules.push_back(std::move(rule));
  }
  return rules;
}

Result<JobTask> task_from_json(const Json& entry, std::size_t index) {
  JsonFields in(entry, "job task");
  JobTask task{.name = in.text_or("name", ""), .replicas = in.integer_or("replicas", 0)};
  const Json& policies = in.array_or_empty("policies");
  if (Status status = in.finish(); !status) return std::unexpected(status.error());
  if (task.name.empty()) task.name = format("default{}", index);
  // More than the API server takes, which calls the webhook before it validates: sums stay in
  // range.
  task.replicas = std::clamp<std::int64_t>(task.replicas, 0, std::numeric_limits<std::int32_t>::max());
  const Json* label = find_path(entry, {"template", "metadata", "labels", names::kProtectedLabel});
  task.is_protected = label != nullptr && *label == "true";
  Result<std::vector<PolicyRule>> rules = policies_from_json(policies, "task " + task.name);
  if (!rules) return std::unexpected(rules.error());
  task.policies = std::move(*rules);
  return task;
}

JobSettings settings_from_json(const Json& object) {
  JobSettings settings{.scheduling = metadata_value(object, "labels", names::kSchedulingLabel),
                       .claim = metadata_value(object, "annotations", names::kClaimAnnotation),
                       .path = metadata_value(object, "annotations", names::kPathAnnotation),
                       .memory_volume_size = metadata_value(object, "annotations", names::kMemoryVolumeAnnotation)};
  for (const names::CheckpointSetting& setting : names::kCheckpointSettings) {
    if (std::string text = metadata_value(object, "annotations", setting.annotation); !text.empty()) {
      settings.checkpoints.emplace(setting.variable, std::move(text));
    }
  }
  const std::int64_t deadline = number_from_text(metadata_value(object, "annotations", names::kDeadlineAnnotation), 0);
  if (deadline > 0 && deadline <= kBreakpointDeadlineMax.count()) settings.deadline_seconds = deadline;
  const std::int64_t ranks = number_from_text(metadata_value(object, "annotations", names::kRanksPerPodAnnotation), 1);
  if (ranks > 0 && ranks <= kRanksPerPodMax) settings.ranks_per_pod = ranks;
  return settings;
}

}  // namespace

Result<Job> job_from_json(const Json& object) {
  Result<Metadata> metadata = metadata_from_json(object, "job");
  if (!metadata) return std::unexpected(metadata.error());
  Job job{.namespace_name = std::move(metadata->namespace_name),
          .name = std::move(metadata->name),
          .uid = std::move(metadata->uid),
          .resource_version = std::move(metadata->resource_version),
          .created = metadata->created,
          .deleting = metadata->deletion_time.has_value(),
          .settings = settings_from_json(object),
          .last_step = metadata_value(object, "annotations", names::kLastStepAnnotation),
          .last_time = parse_wall_time(metadata_value(object, "annotations", names::kLastTimeAnnotation))};

  JsonFields top(object, "job");
  JsonFields spec(top.object_or_empty("spec"), "job spec");
  const Json& tasks = spec.array_or_empty("tasks");
  const Json& policies = spec.array_or_empty("policies");
  job.max_retry = spec.integer_or("maxRetry", 0);
  JsonFields status(top.object_or_empty("status"), "job status");
  const Json& state = status.object_or_empty("state");
  job.version = status.integer_or("version", 0);
  job.retry_count = status.integer_or("retryCount", 0);
  JsonFields state_fields(state, "job status state");
  const std::string phase = state_fields.text_or("phase", "");
  job.phase_since = parse_wall_time(state_fields.text_or("lastTransitionTime", ""));
  for (const JsonFields* part : {&top, &spec, &status, &state_fields}) {
    if (Status read = part->finish(); !read) return std::unexpected(read.error());
  }

  if (!phase.empty()) job.phase = parse_enum<JobPhase>(phase).value_or(JobPhase::unknown);
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    Result<JobTask> task = task_from_json(tasks[i], i);
    if (!task) return std::unexpected(task.error());
    job.tasks.push_back(std::move(*task));
  }
  Result<std::vector<PolicyRule>> rules = policies_from_json(policies, "job");
  if (!rules) return std::unexpected(rules.error());
  job.policies = std::move(*rules);
  return job;
}

bool is_protected(const Job& job) {
  return std::ranges::any_of(job.tasks, [](const JobTask& task) { return task.is_protected; });
}

bool wants_protection(const Job& job) {
  return job.settings.scheduling == names::kSchedulingGrace || job.settings.scheduling == names::kSchedulingForce;
}

std::int64_t pods_expected(const Job& job) {
  std::int64_t pods = 0;
  for (const JobTask& task : job.tasks) {
    if (task.is_protected) pods += task.replicas;
  }
  return pods;
}

std::optional<std::int64_t> ordinal_of(const Job& job, std::string_view task_name, std::int64_t index) {
  std::int64_t before = 0;
  for (const JobTask& task : job.tasks) {
    if (task.name == task_name) {
      if (!task.is_protected || index < 0 || index >= task.replicas) return std::nullopt;
      return before + index;
    }
    if (task.is_protected) before += task.replicas;
  }
  return std::nullopt;
}

std::string pod_group_name(const Job& job) { return format("{}-{}", job.name, job.uid); }

std::string certificate_secret_name(std::string_view job_name, std::string_view job_uid) {
  return format("{}-rekindle-{}", job_name, job_uid.substr(0, 8));
}

}  // namespace rekindle::op
