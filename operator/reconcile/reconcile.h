// The decision about one job: observation in, plan out. Pure; called again whenever something about
// the job has changed or the time in the plan has come.
//
// One recovery: fault -> the intent is recorded as a Breakpoint (a name that a repeat finds taken)
// -> the sidecars save, by themselves or by our order -> durable, failed, or deadline -> the pods
// of the intent are restarted by Volcano's policy or by deletes, never both -> Volcano makes them
// anew -> every new sidecar reports its restore and the first step -> Restored. Each stage is read
// off the objects and the reports, never remembered, so an operator that is killed and started at
// any point goes on where the objects stand.
//
// Assumes: reports of live sidecars come in within PlanLimits::report_patience after the operator
// has started.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "common/base/instant.h"
#include "operator/reconcile/action.h"
#include "operator/reconcile/observation.h"

namespace rekindle::op {

struct PlanLimits {
  std::chrono::seconds breakpoint_deadline{60};  // unless the job says another
  std::chrono::seconds deadline_slack{5};        // for the report to arrive
  // a deletion may be Volcano's own, which writes its status afterwards
  std::chrono::milliseconds believe_after{2000};
  // what broke a collective, such as a death, is heard of by then
  std::chrono::milliseconds collective_patience{1000};
  // sidecars that know by themselves have begun by then
  std::chrono::seconds order_patience{3};
  std::chrono::seconds report_patience{35};  // one long poll and a little
  // for Volcano to react where its policy says that it will, beyond the pod's grace
  std::chrono::seconds volcano_patience{60};
  std::chrono::seconds stranded_after{10};  // parked pods that nobody restarts
  std::chrono::seconds gated_after{10};     // a pod that the webhook missed while it was away
  // until the way to a webhook that answers is known everywhere: readiness, endpoints, proxies
  std::chrono::seconds webhook_settles{15};
  std::chrono::seconds gated_again{60};  // one that it missed although it answers
  // starts in a row that failed by software at the same step; after one more we leave it to people
  std::uint32_t restarts_without_progress = 5;
  std::uint32_t breakpoints_kept = 20;
  std::uint32_t breakpoints_kept_max = 200;  // while failed starts are counted by them
};

struct Plan {
  std::vector<Action> actions;              // in this order
  std::vector<SyncOrder> orders;            // served to the job's sidecars until the next plan
  std::vector<std::string> stale_pod_uids;  // pods of an attempt that is over
  // a recovery is under way and pods of the old attempt still exist
  bool hold_start = false;
  std::optional<Duration> requeue_after;
  std::vector<std::string> reasons;  // for logs: why, or why not
};

Plan reconcile(const Observation& seen, const PlanLimits& limits, WallTime now);

}  // namespace rekindle::op
