#include "operator/faults/fault.h"

#include <array>

namespace rekindle::op {

std::string_view to_string(FaultClass fault_class) {
  constexpr std::array<std::string_view, kFaultClasses> kNames{"pod_evicted",    "pod_deleted",  "out_of_memory",
                                                               "container_died", "pod_failed",   "pod_gone",
                                                               "rank_died",      "rank_reported"};
  return kNames[static_cast<std::size_t>(fault_class)];
}

std::string_view to_string(JobStage stage) {
  constexpr std::array<std::string_view, kJobStages> kNames{"starting",   "training",  "recovering",
                                                            "restarting", "suspended", "ending"};
  return kNames[static_cast<std::size_t>(stage)];
}

std::string_view to_string(Response response) {
  constexpr std::array<std::string_view, 4> kNames{"ignore", "join", "replace_pod", "restart_job"};
  return kNames[static_cast<std::size_t>(response)];
}

}  // namespace rekindle::op
