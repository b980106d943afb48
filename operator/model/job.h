// A Volcano Job (batch.volcano.sh/v1alpha1): only what the operator decides by. Plain data; the
// decoder accepts anything that an API server can send and says what does not fit.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/enum_names.h"
#include "common/base/error.h"
#include "common/contract/wall_time.h"

namespace rekindle::op {

enum class JobPhase {
  pending,
  running,
  restarting,
  aborting,
  aborted,
  completing,
  completed,
  terminating,
  terminated,
  failed,
  unknown,  // a word that this version does not know
};
constexpr auto enum_names(JobPhase) {
  return std::to_array<EnumName<JobPhase>>({{JobPhase::pending, "Pending"},
                                            {JobPhase::running, "Running"},
                                            {JobPhase::restarting, "Restarting"},
                                            {JobPhase::aborting, "Aborting"},
                                            {JobPhase::aborted, "Aborted"},
                                            {JobPhase::completing, "Completing"},
                                            {JobPhase::completed, "Completed"},
                                            {JobPhase::terminating, "Terminating"},
                                            {JobPhase::terminated, "Terminated"},
                                            {JobPhase::failed, "Failed"},
                                            {JobPhase::unknown, "Unknown"}});
}

// One entry of `policies`, of the job or of a task. Either events or an exit code is set.
struct PolicyRule {
  std::vector<std::string> events;
  std::optional<std::int64_t> exit_code;
  std::string action;
  std::chrono::seconds timeout{0};  // Volcano waits that long before it acts

  bool operator==(const PolicyRule&) const = default;
};

struct JobTask {
  std::string name;  // as Volcano's pods carry it; "default<index>" when the user gave none
  std::int64_t replicas = 0;
  bool is_protected = false;  // our webhook marked the template at CREATE
  std::vector<PolicyRule> policies;

  bool operator==(const JobTask&) const = default;
};

// What the user set on the Job. Values that do not fit were refused at CREATE; one that was
// edited later counts as absent.
struct JobSettings {
  std::string scheduling;  // value of the label fault-scheduling, empty without it
  std::string claim;
  std::string path;
  std::optional<std::int64_t> deadline_seconds;
  std::int64_t ranks_per_pod = 1;
  // texts of names::kCheckpointSettings that the job has, by variable
  std::map<std::string, std::string> checkpoints;
  std::string memory_volume_size;  // empty: not said

  bool operator==(const JobSettings&) const = default;
};

struct Job {
  std::string namespace_name;
  std::string name;
  std::string uid;
  std::string resource_version;
  std::optional<WallTime> created;
  bool deleting = false;
  JobSettings settings;
  std::string last_step;  // our annotations about the last checkpoint
  std::optional<WallTime> last_time;
  std::vector<JobTask> tasks;
  std::vector<PolicyRule> policies;
  std::int64_t max_retry = 0;
  JobPhase phase = JobPhase::pending;  // also before Volcano has written one
  std::optional<WallTime> phase_since;
  std::int64_t version = 0;  // Volcano counts here how often it has killed the job
  std::int64_t retry_count = 0;

  bool operator==(const Job&) const = default;
};

Result<Job> job_from_json(const nlohmann::json& object);

// True when our webhook marked at least one template: labelled in time, and not off.
bool is_protected(const Job& job);

// grace or force: the user wants protection (whether or not the webhook was there in time).
bool wants_protection(const Job& job);

// Replicas of the protected tasks together.
std::int64_t pods_expected(const Job& job);

// The place of a pod among the protected ones: tasks in order, then the index within the task. None
// for a task that is unknown or unprotected, and for an index beyond its replicas (the job was
// scaled down).
std::optional<std::int64_t> ordinal_of(const Job& job, std::string_view task, std::int64_t index);

// Volcano's name of the PodGroup, and ours of the Secret with the job's certificate.
std::string pod_group_name(const Job& job);
std::string certificate_secret_name(std::string_view job_name, std::string_view job_uid);

}  // namespace rekindle::op
