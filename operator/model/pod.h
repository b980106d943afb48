// A pod of a Volcano Job: only what the operator decides by, kept small because there can be ten
// thousands (at most 1 KiB each).
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
#include "common/contract/wall_time.h"

namespace rekindle::op {

enum class PodPhase : std::uint8_t { pending, running, succeeded, failed, unknown };
constexpr auto enum_names(PodPhase) {
  return std::to_array<EnumName<PodPhase>>({{PodPhase::pending, "Pending"},
                                            {PodPhase::running, "Running"},
                                            {PodPhase::succeeded, "Succeeded"},
                                            {PodPhase::failed, "Failed"},
                                            {PodPhase::unknown, "Unknown"}});
}

// The end of a main container that is `terminated` now.
struct ContainerEnd {
  std::string name;
  std::string reason;  // "OOMKilled", "Error", "Completed"
  std::int32_t exit_code = 0;
  std::int32_t signal = 0;
  std::optional<WallTime> finished;

  bool operator==(const ContainerEnd&) const = default;
};

struct Pod {
  std::string namespace_name;
  std::string name;
  std::string uid;
  std::string resource_version;
  // of the controlling Volcano Job; empty when another thing controls the pod
  std::string job_name;
  std::string job_uid;
  std::string task;
  std::string node;
  std::string address;
  std::string reason;        // status.reason: "Evicted", "NodeLost"...
  std::string disruption;    // reason of the condition DisruptionTarget while it is True
  std::string not_injected;  // why our webhook left it gated
  std::int64_t job_version = 0;
  std::int64_t grace_seconds = 30;  // of the template
  std::optional<WallTime> created;
  std::optional<WallTime> deletion_time;  // deletionTimestamp: when the grace ends
  std::optional<std::int64_t> deletion_grace_seconds;
  std::vector<ContainerEnd> ended;  // main containers only; the sidecar is an init container
  std::int32_t index = 0;
  PodPhase phase = PodPhase::pending;
  bool is_protected = false;
  bool injected = false;
  bool gated = false;        // our scheduling gate is still on
  bool out_of_sync = false;  // Volcano says: I kill this one myself
  // restartPolicy is not Never: a dead main is started again by the kubelet
  bool restarts_in_place = false;

  bool operator==(const Pod&) const = default;
};

Result<Pod> pod_from_json(const nlohmann::json& object);

bool is_deleting(const Pod& pod);
bool is_finished(const Pod& pod);  // Succeeded or Failed

// When the DELETE was accepted: deletionTimestamp less the grace.
std::optional<WallTime> deletion_began(const Pod& pod);

// The kubelet deletes a pod a second time, with grace 0, when its containers have ended; where the
// pod has failed, the API server takes that for the time of the deletion. `pod` keeps the times of
// the first, as `before`, an earlier state, has them.
void keep_first_deletion(Pod& pod, const Pod& before);

}  // namespace rekindle::op
