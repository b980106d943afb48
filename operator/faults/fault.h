// The words of fault handling: what was seen (evidence), what it is called (class), in which stage
// the job is, what is done about it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/enum_names.h"
#include "operator/model/breakpoint.h"
#include "operator/model/job.h"
#include "operator/model/pod.h"
#include "operator/model/sidecar_report.h"

namespace rekindle::op {

// What happened to a job, most telling first.
enum class FaultClass : std::uint8_t {
  // ended by the API, the scheduler, a taint or the kubelet: DisruptionTarget says by whom
  pod_evicted,
  pod_deleted,     // a DELETE that is no duty of Volcano's or the owner's
  out_of_memory,   // a main container was OOMKilled
  container_died,  // a main container ended by itself with an error
  pod_failed,      // the pod failed as a whole (node lost, evicted by the kubelet)
  pod_gone,        // a member of the running attempt is not there any more
  rank_died,       // the sidecars say that a process died
  // the sidecars say that something else went wrong (a collective)
  rank_reported,
};
constexpr auto enum_names(FaultClass) {
  return std::to_array<EnumName<FaultClass>>({{FaultClass::pod_evicted, "pod_evicted"},
                                              {FaultClass::pod_deleted, "pod_deleted"},
                                              {FaultClass::out_of_memory, "out_of_memory"},
                                              {FaultClass::container_died, "container_died"},
                                              {FaultClass::pod_failed, "pod_failed"},
                                              {FaultClass::pod_gone, "pod_gone"},
                                              {FaultClass::rank_died, "rank_died"},
                                              {FaultClass::rank_reported, "rank_reported"}});
}
inline constexpr std::size_t kFaultClasses = enum_names(FaultClass{}).size();

// Where the job is in its life, as far as the response to a fault depends on it.
enum class JobStage : std::uint8_t {
  starting,    // no process has left rk_open: there is nothing to save
  training,    // an attempt is under way
  restarting,  // Volcano is replacing the pods
  suspended,   // Aborting, Aborted
  ending,      // being deleted, completed, terminated, failed, or on the way there
};
constexpr auto enum_names(JobStage) {
  return std::to_array<EnumName<JobStage>>({{JobStage::starting, "starting"},
                                            {JobStage::training, "training"},
                                            {JobStage::restarting, "restarting"},
                                            {JobStage::suspended, "suspended"},
                                            {JobStage::ending, "ending"}});
}
inline constexpr std::size_t kJobStages = enum_names(JobStage{}).size();

enum class Response : std::uint8_t {
  ignore,       // not for us to answer
  join,         // part of what is already going on
  replace_pod,  // only the broken pod: the others have not begun
  restart_job,  // breakpoint, then every pod of the attempt
};
constexpr auto enum_names(Response) {
  return std::to_array<EnumName<Response>>({{Response::ignore, "ignore"},
                                            {Response::join, "join"},
                                            {Response::replace_pod, "replace_pod"},
                                            {Response::restart_job, "restart_job"}});
}

struct Fault {
  FaultClass fault_class = FaultClass::pod_gone;
  PodRef pod;           // empty when it is about no single pod
  std::string message;  // "pod digits-worker-0 evicted (EvictionByEvictionAPI)"
  Trigger trigger = Trigger::operator_request;
  std::optional<WallTime> seen;  // when it happened, as far as the objects tell

  bool operator==(const Fault&) const = default;
};

// Everything that classify() looks at for one pod. Pointers are never null except `report`.
struct FaultEvidence {
  const Job* job = nullptr;
  const Pod* pod = nullptr;
  const SidecarReport* report = nullptr;  // the pod's own last report
  // this Volcano marks the pods that it kills before it deletes them (Pod::out_of_sync)
  bool kills_are_marked = false;
};

}  // namespace rekindle::op
