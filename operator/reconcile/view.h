// One observation, sorted out for the concerns: which pods belong to the running attempt, which
// recovery is open, what is not to be believed yet. Also the plan that they add to.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "operator/faults/fault.h"
#include "operator/reconcile/reconcile.h"

namespace rekindle::op {

class View {
 public:
  View(const Observation& observation, const PlanLimits& plan_limits, WallTime wall_now);

  const Observation& seen;
  const PlanLimits& limits;
  const WallTime now;

  const Job* job = nullptr;
  std::vector<const Pod*> pods;                // of this job (uid), by name
  std::vector<const GonePod*> gone_pods;       // of this job (uid)
  std::vector<const Breakpoint*> breakpoints;  // of this job (uid), oldest first
  const Breakpoint* recovery = nullptr;        // the newest open one that ends in a restart
  std::vector<const Breakpoint*> overtaken;    // older open ones
  const Breakpoint* overtaken_by = nullptr;    // the newest, open or left to people

  const SidecarReport* report_of(std::string_view pod_uid) const;
  const Pod* pod_by_uid(std::string_view uid) const;
  const GonePod* gone_pod(std::string_view uid) const;
  const Pod* pod_by_name(std::string_view name) const;

  // What there is to say about one pod of the job, live or gone.
  FaultEvidence evidence(const Pod& pod) const { return {job, &pod, report_of(pod.uid), marks_its_kills}; }

  // Volcano marks the pods that it kills before it deletes them (1.14 and newer); known as soon as
  // it has done so.
  bool marks_its_kills = false;

  // In an attempt: has left rk_open.
  bool in_attempt(const Pod& pod) const;

  // Reports of sidecars that live have had the time to come in.
  bool reports_ready() const;

  // Whether anything could be lost: some process has left rk_open. None: not known yet.
  std::optional<JobStage> stage() const;

  // The attempt that the newest reports and records speak of.
  std::uint64_t attempt() const;

  // A Breakpoint, open or final, that is the record of a fault of this pod.
  const Breakpoint* record_of(std::string_view pod_uid) const;

  // Task and index out of a pod name <job>-<task>-<index>.
  std::string task_of(std::string_view pod_name) const;
  std::optional<std::int64_t> ordinal_of_name(std::string_view pod_name) const;

  std::chrono::seconds deadline() const;
  ObjectReference job_reference() const;
};

// The plan while it is being made.
class PlanBuilder {
 public:
  void act(Action action) { plan.actions.push_back(std::move(action)); }
  void add_reason(std::string reason) { plan.reasons.push_back(std::move(reason)); }
  void requeue_after(Duration wait);
  // Looks again at that time; true when it has come.
  bool reached(WallTime time, WallTime now);

  Plan plan;
};

bool contains_pod(const std::vector<PodRef>& pods, std::string_view uid);

std::string step_text(std::uint64_t step);  // "step 184"

// --- the concerns, in the order in which reconcile() calls them
// certificate, unprotected jobs, gated pods, problems of sidecars
void plan_protection(const View& view, PlanBuilder& out);
void plan_fault(const View& view, PlanBuilder& out);  // fault -> intent
// order -> durable, failed or deadline; also for users
void plan_breakpoint(const View& view, PlanBuilder& out);
// deletes, or Volcano's own restart
void plan_restart(const View& view, PlanBuilder& out);
// restored, superseded, ended; last checkpoint; retention
void plan_status(const View& view, PlanBuilder& out);

// The write of a status with everything in it that guards it.
WriteBreakpointStatus write_status(const Breakpoint& breakpoint, BreakpointStatus status);

}  // namespace rekindle::op
