#include "operator/reconcile/view.h"

#include <algorithm>
#include <charconv>

#include "common/base/format.h"
#include "operator/faults/classify.h"
#include "operator/model/names.h"

namespace rekindle::op {
namespace {

// Of this Job, not of an earlier one with the same name. One that a user has just written names no
// uid and has no owner yet.
bool belongs_to(const Breakpoint& breakpoint, const Job& job) {
  if (!breakpoint.spec.job_uid.empty()) return breakpoint.spec.job_uid == job.uid;
  return breakpoint.owner_uid.empty() || breakpoint.owner_uid == job.uid;
}

}  // namespace

View::View(const Observation& observation, const PlanLimits& plan_limits, WallTime wall_now)
    : seen(observation), limits(plan_limits), now(wall_now), job(observation.job.get()) {
  if (job == nullptr) return;
  for (const auto& pod : seen.pods) {
    if (pod->job_uid == job->uid) pods.push_back(pod.get());
  }
  std::ranges::sort(pods, {}, [](const Pod* pod) { return pod->name; });
  for (const GonePod& gone : seen.gone_pods) {
    if (gone.pod->job_uid == job->uid) gone_pods.push_back(&gone);
  }
  marks_its_kills = std::ranges::any_of(pods, [](const Pod* pod) { return pod->out_of_sync; }) ||
                    std::ranges::any_of(gone_pods, [](const GonePod* gone) { return gone->pod->out_of_sync; });
  for (const auto& breakpoint : seen.breakpoints) {
    if (belongs_to(*breakpoint, *job) && !breakpoint->deleting) breakpoints.push_back(breakpoint.get());
  }
  std::ranges::sort(breakpoints, {},
                    [](const Breakpoint* each) { return std::pair(each->created.value_or(WallTime{}), each->name); });
  for (const Breakpoint* breakpoint : breakpoints) {
    if (training_goes_on(breakpoint->spec.trigger)) continue;
    // One that was left to people is the last word about those before it as well.
    const bool left = breakpoint->status.state == BreakpointState::failed;
    if (is_final(breakpoint->status.state) && !left) continue;
    if (recovery != nullptr) overtaken.push_back(recovery);
    recovery = left ? nullptr : breakpoint;
    overtaken_by = breakpoint;
  }
}

const SidecarReport* View::report_of(std::string_view pod_uid) const {
  for (const SidecarReport& report : seen.reports) {
    if (report.sender.pod_uid == pod_uid) return &report;
  }
  return nullptr;
}

const Pod* View::pod_by_uid(std::string_view uid) const {
  const auto found = std::ranges::find_if(pods, [&](const Pod* pod) { return pod->uid == uid; });
  return found == pods.end() ? nullptr : *found;
}

const GonePod* View::gone_pod(std::string_view uid) const {
  const auto found = std::ranges::find_if(gone_pods, [&](const GonePod* gone) { return gone->pod->uid == uid; });
  return found == gone_pods.end() ? nullptr : *found;
}

const Pod* View::pod_by_name(std::string_view name) const {
  const auto found = std::ranges::find_if(pods, [&](const Pod* pod) { return pod->name == name; });
  return found == pods.end() ? nullptr : *found;
}

bool View::in_attempt(const Pod& pod) const {
  const SidecarReport* report = report_of(pod.uid);
  return report != nullptr && report->sync.attempt > 0;
}

bool View::reports_ready() const {
  if (now >= seen.operator_started + limits.report_patience) return true;
  return std::ranges::all_of(pods, [&](const Pod* pod) {
    return pod->phase != PodPhase::running || !pod->injected || report_of(pod->uid) != nullptr;
  });
}

std::optional<JobStage> View::stage() const {
  const JobStage stage = stage_of(*job);
  if (stage != JobStage::training) return stage;
  bool silent = false;
  for (const Pod* pod : pods) {
    if (in_attempt(*pod)) return JobStage::training;
    if (pod->injected && pod->phase == PodPhase::running && report_of(pod->uid) == nullptr) silent = true;
  }
  // Pods that went lately may have taken an attempt with them that the others are still in,
  // unheard.
  if (!silent) return JobStage::starting;
  if (!reports_ready()) return std::nullopt;
  return JobStage::training;  // sidecars that cannot reach us: to be on the safe side
}

std::uint64_t View::attempt() const {
  std::uint64_t newest = 0;
  for (const SidecarReport& report : seen.reports) newest = std::max(newest, report.sync.attempt);
  if (newest != 0) return newest;
  for (const Breakpoint* breakpoint : breakpoints) newest = std::max(newest, breakpoint->status.restored_attempt);
  return newest;
}

const Breakpoint* View::record_of(std::string_view pod_uid) const {
  for (auto it = breakpoints.rbegin(); it != breakpoints.rend(); ++it) {
    if (!training_goes_on((*it)->spec.trigger) && contains_pod((*it)->spec.pods, pod_uid)) return *it;
  }
  return nullptr;
}

std::string View::task_of(std::string_view pod_name) const {
  const std::string prefix = job->name + "-";
  const std::size_t dash = pod_name.rfind('-');
  if (!pod_name.starts_with(prefix) || dash == std::string_view::npos || dash < prefix.size()) return {};
  return std::string(pod_name.substr(prefix.size(), dash - prefix.size()));
}

std::optional<std::int64_t> View::ordinal_of_name(std::string_view pod_name) const {
  const std::string_view text = pod_name.substr(pod_name.rfind('-') + 1);
  std::int64_t index = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), index);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return ordinal_of(*job, task_of(pod_name), index);
}

std::chrono::seconds View::deadline() const {
  return job->settings.deadline_seconds ? std::chrono::seconds(*job->settings.deadline_seconds)
                                        : limits.breakpoint_deadline;
}

ObjectReference View::job_reference() const {
  return {.api_version = std::string(names::kVolcanoApiVersion),
          .kind = "Job",
          .namespace_name = job->namespace_name,
          .name = job->name,
          .uid = job->uid};
}

void PlanBuilder::requeue_after(Duration wait) {
  // A little later than exact: the time that is waited for must have passed when we look.
  const Duration bounded = std::max(wait, Duration(std::chrono::milliseconds(1)));
  if (!plan.requeue_after || bounded < *plan.requeue_after) plan.requeue_after = bounded;
}

bool PlanBuilder::reached(WallTime time, WallTime now) {
  if (now >= time) return true;
  requeue_after(time - now);
  return false;
}

bool contains_pod(const std::vector<PodRef>& pods, std::string_view uid) {
  return std::ranges::any_of(pods, [&](const PodRef& pod) { return pod.uid == uid; });
}

std::string step_text(std::uint64_t step) { return format("step {}", step); }

WriteBreakpointStatus write_status(const Breakpoint& breakpoint, BreakpointStatus status) {
  return {.namespace_name = breakpoint.namespace_name,
          .name = breakpoint.name,
          .uid = breakpoint.uid,
          .resource_version = breakpoint.resource_version,
          .generation = breakpoint.generation,
          .status = std::move(status)};
}

}  // namespace rekindle::op
