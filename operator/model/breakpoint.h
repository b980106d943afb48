// Breakpoint (rekindle.dev/v1alpha1): the record of one breakpoint and of the recovery around it.
// The intent stands in spec and never changes; what came of it stands in status, which is written
// at most four times. The schema is crds/breakpoints.yaml.
#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/enum_names.h"
#include "common/base/error.h"
#include "common/contract/trigger_cause.h"
#include "common/contract/wall_time.h"

namespace rekindle::op {

using rekindle::to_string;

// Why a checkpoint was requested. In JSON the names are PascalCase: PreStop, PodLost...
enum class Trigger {
  pre_stop,           // a pod is being deleted; its preStop hook requested the checkpoint
  pod_lost,           // a pod is gone and no preStop hook reported it in time
  container_died,     // a main container, or a pod, failed by itself
  rank_died,          // a process died and its container lives
  collective_failed,  // the program reported that a collective failed
  schedule,           // a Breakpoint that something of the user makes from time to time
  operator_request,   // "Operator"
  user,
  other,  // a cause of a newer sidecar, named in `reason`
};
constexpr auto enum_names(Trigger) {
  return std::to_array<EnumName<Trigger>>({{Trigger::pre_stop, "PreStop"},
                                           {Trigger::pod_lost, "PodLost"},
                                           {Trigger::container_died, "ContainerDied"},
                                           {Trigger::rank_died, "RankDied"},
                                           {Trigger::collective_failed, "CollectiveFailed"},
                                           {Trigger::schedule, "Schedule"},
                                           {Trigger::operator_request, "Operator"},
                                           {Trigger::user, "User"},
                                           {Trigger::other, "Other"}});
}

// From the cause of a sidecar's report.
Trigger trigger_from_cause(TriggerCause cause);

// True for triggers after which training goes on: no restart follows.
bool training_goes_on(Trigger trigger);

struct PodRef {
  std::string name;
  std::string uid;

  auto operator<=>(const PodRef&) const = default;
};

struct BreakpointSpec {
  std::string job_name;
  // may be empty in one that a user wrote: the job of that name, whichever it is
  std::string job_uid;
  Trigger trigger = Trigger::user;
  std::string requested_by = "user";
  std::chrono::seconds deadline{60};
  // a message for people: "pod digits-worker-0 evicted (EvictionByEvictionAPI)"
  std::string reason;
  std::uint64_t attempt = 0;     // the attempt that the fault hit; 0 when it was not known
  std::optional<PodRef> broken;  // the pod that the fault is about
  // the pods of the attempt: these and no others may be deleted in this recovery
  std::vector<PodRef> pods;

  bool operator==(const BreakpointSpec&) const = default;
};

// Summary for people (column STATUS), ordered: a write never goes back, and only one final state is
// ever written.
enum class BreakpointState {
  requested,   // no status yet
  saving,      // the step is agreed
  restarting,  // published, or given up; the pods are being replaced
  restored,    // final: the job trains again
  saved,       // final, without a restart (user, schedule)
  failed,      // final
  superseded,  // final: another fault came first
  ended,       // final: the job ended first
};
constexpr auto enum_names(BreakpointState) {
  return std::to_array<EnumName<BreakpointState>>({{BreakpointState::requested, "Requested"},
                                                   {BreakpointState::saving, "Saving"},
                                                   {BreakpointState::restarting, "Restarting"},
                                                   {BreakpointState::restored, "Restored"},
                                                   {BreakpointState::saved, "Saved"},
                                                   {BreakpointState::failed, "Failed"},
                                                   {BreakpointState::superseded, "Superseded"},
                                                   {BreakpointState::ended, "Ended"}});
}

bool is_final(BreakpointState state);

struct Condition {
  std::string type;
  std::string status;  // "True", "False", "Unknown"
  std::string reason;
  std::string message;
  std::optional<WallTime> last_transition;

  bool operator==(const Condition&) const = default;
};

struct BreakpointStatus {
  BreakpointState state = BreakpointState::requested;
  std::uint64_t attempt = 0;
  std::uint64_t step = 0;
  std::uint64_t ranks_saved = 0;
  std::uint64_t ranks_expected = 0;
  std::uint64_t bytes = 0;
  std::optional<std::uint64_t> agreed_milliseconds;
  std::optional<std::uint64_t> durable_milliseconds;
  std::string path;
  std::string manifest_hash;
  std::optional<WallTime> restart_time;  // when the restart was decided
  std::uint64_t restored_attempt = 0;
  std::uint64_t restored_step = 0;
  std::uint64_t first_step = 0;  // the first step that was computed after the restart
  std::string message;
  std::vector<Condition> conditions;

  bool operator==(const BreakpointStatus&) const = default;
};

struct Breakpoint {
  std::string namespace_name;
  std::string name;
  std::string uid;
  std::string resource_version;
  std::int64_t generation = 0;
  std::optional<WallTime> created;
  bool deleting = false;
  std::string owner_uid;  // of the Job that owns it, empty in one that a user has just made
  BreakpointSpec spec;
  BreakpointStatus status;

  bool operator==(const Breakpoint&) const = default;
};

Result<Breakpoint> breakpoint_from_json(const nlohmann::json& object);

// The whole object for a create (owned by the Job when owner_uid is set).
nlohmann::json breakpoint_to_json(const Breakpoint& breakpoint);

// The contents of `status` for a write of the status subresource.
nlohmann::json breakpoint_status_to_json(const BreakpointStatus& status, std::int64_t generation);

// metadata.ownerReferences with the Job as the one owner, without blockOwnerDeletion.
nlohmann::json owned_by_job(std::string_view job_name, std::string_view job_uid);

// Adds or replaces the condition of that type; the time moves only when the status does.
void set_condition(BreakpointStatus& status, std::string_view type, std::string_view value, std::string_view reason,
                   std::string_view message, WallTime now);
const Condition* find_condition(const BreakpointStatus& status, std::string_view type);

// "digits-1-7fk2qx9d": job, attempt and a hash of the fault key; a repeat gives the same name. Long
// job names are cut so that it stays a valid name.
std::string breakpoint_name(std::string_view job_name, std::uint64_t attempt, std::string_view fault_key);

// Binary sizes as people read them: "1.2Mi", "812", "3.0Gi".
std::string human_bytes(std::uint64_t bytes);

// "31ms", "4.1s".
std::string human_milliseconds(std::uint64_t milliseconds);

}  // namespace rekindle::op
