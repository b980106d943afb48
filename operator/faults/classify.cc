#include "operator/faults/classify.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "common/base/format.h"
#include "operator/faults/volcano_restart.h"

namespace rekindle::op {
namespace {

bool never_protected(const FaultEvidence& evidence) { return !evidence.pod->is_protected || !evidence.pod->injected; }

bool another_jobs_pod(const FaultEvidence& evidence) { return evidence.pod->job_uid != evidence.job->uid; }

bool job_deleted(const FaultEvidence& evidence) { return evidence.job->deleting; }

bool job_suspended(const FaultEvidence& evidence) { return stage_of(*evidence.job) == JobStage::suspended; }

bool job_ending(const FaultEvidence& evidence) { return stage_of(*evidence.job) == JobStage::ending; }

// A container ended with an error, and the pod had not been deleted.
bool died_first(const Pod& pod) {
  const std::optional<WallTime> deleted = deletion_began(pod);
  return std::ranges::any_of(pod.ended, [&](const ContainerEnd& end) {
    return (end.exit_code != 0 || end.signal != 0) && (!deleted || (end.finished && *end.finished < *deleted));
  });
}

// The pod was broken before Volcano or the user restarted anything: then Volcano's restart is the
// answer to a fault, and the fault stays one.
bool broken_before(const Pod& pod) { return !pod.disruption.empty() || died_first(pod); }

bool volcano_restart(const FaultEvidence& evidence) {
  if (broken_before(*evidence.pod)) return false;
  if (evidence.kills_are_marked && !evidence.pod->out_of_sync && is_deleting(*evidence.pod)) return false;
  return evidence.job->phase == JobPhase::restarting || ended_by_restart(*evidence.job, *evidence.pod);
}

bool scaled_down(const FaultEvidence& evidence) {
  return !ordinal_of(*evidence.job, evidence.pod->task, evidence.pod->index).has_value();
}

// The program has said that it is done, or every main ended with 0 before the pod was deleted.
bool completed(const FaultEvidence& evidence) {
  if (evidence.report != nullptr && evidence.report->sync.phase == SidecarPhase::finished) return true;
  const Pod& pod = *evidence.pod;
  const std::optional<WallTime> deleted = deletion_began(pod);
  if (pod.phase == PodPhase::succeeded && !deleted) return true;
  if (pod.ended.empty()) return false;
  return std::ranges::all_of(pod.ended, [&](const ContainerEnd& end) {
    return end.exit_code == 0 && (!deleted || (end.finished && *end.finished < *deleted));
  });
}

// Ranks that have stopped long before lose nothing with their pod: they are restarted, by us,
// because the job was scaled around them.
constexpr std::chrono::seconds kLongParked{5};

bool parked_before(const FaultEvidence& evidence) {
  if (evidence.report == nullptr || evidence.report->sync.phase != SidecarPhase::parked) return false;
  const std::optional<WallTime> deleted = deletion_began(*evidence.pod);
  return deleted && evidence.pod->disruption.empty() && evidence.report->phase_since + kLongParked <= *deleted;
}

constexpr std::array<BenignCause, 9> kBenignCauses{{
    {"never_protected", never_protected},
    {"another_jobs_pod", another_jobs_pod},
    {"job_deleted", job_deleted},
    {"job_suspended", job_suspended},
    {"job_ending", job_ending},
    {"volcano_restart", volcano_restart},
    {"scaled_down", scaled_down},
    {"completed", completed},
    {"parked_before", parked_before},
}};

Fault make_fault(const Pod& pod, FaultClass fault_class, Trigger trigger, std::string message,
                 std::optional<WallTime> seen) {
  return Fault{.fault_class = fault_class,
               .pod = {pod.name, pod.uid},
               .message = std::move(message),
               .trigger = trigger,
               .seen = seen};
}

std::optional<WallTime> end_of(const Pod& pod) {
  for (const ContainerEnd& end : pod.ended) {
    if (end.finished) return end.finished;
  }
  return std::nullopt;
}

std::optional<Fault> evicted(const FaultEvidence& evidence) {
  const Pod& pod = *evidence.pod;
  std::string by = pod.disruption;
  // the kubelet's own evictions: "Evicted", "NodeShutdown"
  if (by.empty() && pod.phase == PodPhase::failed) by = pod.reason;
  // The condition is set just before the delete and can be left over from one that was refused:
  // alone it proves nothing.
  if (by.empty() || !(is_deleting(pod) || pod.phase == PodPhase::failed)) return std::nullopt;
  return make_fault(pod, FaultClass::pod_evicted, Trigger::pre_stop, format("pod {} evicted ({})", pod.name, by),
                    is_deleting(pod) ? deletion_began(pod) : end_of(pod));
}

std::optional<Fault> deleted(const FaultEvidence& evidence) {
  const Pod& pod = *evidence.pod;
  if (!is_deleting(pod) || died_first(pod)) return std::nullopt;
  return make_fault(pod, FaultClass::pod_deleted, Trigger::pre_stop, format("pod {} deleted", pod.name),
                    deletion_began(pod));
}

std::optional<Fault> out_of_memory(const FaultEvidence& evidence) {
  const Pod& pod = *evidence.pod;
  for (const ContainerEnd& end : pod.ended) {
    if (end.reason != "OOMKilled") continue;
    return make_fault(pod, FaultClass::out_of_memory, Trigger::container_died,
                      format("container {} of pod {} ran out of memory (OOMKilled)", end.name, pod.name), end.finished);
  }
  return std::nullopt;
}

std::optional<Fault> container_died(const FaultEvidence& evidence) {
  const Pod& pod = *evidence.pod;
  for (const ContainerEnd& end : pod.ended) {
    if (end.exit_code == 0 && end.signal == 0) continue;
    // Runtimes report a signal as 128 + its number more often than in its own field.
    const int signal = end.signal != 0                              ? end.signal
                       : end.exit_code > 128 && end.exit_code < 192 ? end.exit_code - 128
                                                                    : 0;
    std::string how = format("exit code {}", end.exit_code);
    if (signal != 0) how += format(", signal {}", signal);
    return make_fault(pod, FaultClass::container_died, Trigger::container_died,
                      format("container {} of pod {} died ({})", end.name, pod.name, how), end.finished);
  }
  return std::nullopt;
}

std::optional<Fault> failed(const FaultEvidence& evidence) {
  const Pod& pod = *evidence.pod;
  if (pod.phase != PodPhase::failed) return std::nullopt;
  return make_fault(pod, FaultClass::pod_failed, Trigger::pod_lost, format("pod {} failed", pod.name), end_of(pod));
}

constexpr std::array<Classifier, 5> kClassifiers{{
    {"pod_evicted", evicted},
    {"pod_deleted", deleted},
    {"out_of_memory", out_of_memory},
    {"container_died", container_died},
    {"pod_failed", failed},
}};

}  // namespace

std::span<const BenignCause> benign_causes() { return kBenignCauses; }
std::span<const Classifier> classifiers() { return kClassifiers; }

Verdict classify(const FaultEvidence& evidence) {
  for (const BenignCause& excuse : kBenignCauses) {
    if (excuse.matches(evidence)) return {std::nullopt, excuse.name};
  }
  for (const Classifier& classifier : kClassifiers) {
    if (std::optional<Fault> fault = classifier.classify(evidence)) return {std::move(fault), classifier.name};
  }
  return {std::nullopt, "nothing_happened"};
}

JobStage stage_of(const Job& job) {
  if (job.deleting) return JobStage::ending;
  switch (job.phase) {
    case JobPhase::restarting: return JobStage::restarting;
    case JobPhase::aborting:
    case JobPhase::aborted: return JobStage::suspended;
    case JobPhase::completing:
    case JobPhase::completed:
    case JobPhase::terminating:
    case JobPhase::terminated:
    case JobPhase::failed: return JobStage::ending;
    case JobPhase::pending:
    case JobPhase::running:
    case JobPhase::unknown: return JobStage::training;
  }
  return JobStage::training;
}

}  // namespace rekindle::op
