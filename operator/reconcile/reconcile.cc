#include "operator/reconcile/reconcile.h"

#include <algorithm>

#include "common/base/format.h"
#include "operator/reconcile/recovery.h"
#include "operator/reconcile/view.h"

namespace rekindle::op {
namespace {

// Two writes of one object in one plan would contradict each other: the first concern that speaks
// for a Breakpoint in this pass has the word, the next pass sees what came of it. Events that
// belong to a dropped write go with it.
void keep_first_write(std::vector<Action>& actions) {
  std::vector<std::string> written;
  std::vector<Action> kept;
  bool dropped = false;
  for (Action& action : actions) {
    if (const auto* write = std::get_if<WriteBreakpointStatus>(&action)) {
      dropped = std::ranges::find(written, write->uid) != written.end();
      if (dropped) continue;
      written.push_back(write->uid);
    } else if (std::holds_alternative<RecordEvent>(action)) {
      if (dropped) continue;
    } else {
      dropped = false;
    }
    kept.push_back(std::move(action));
  }
  actions = std::move(kept);
}

// Events come behind everything that they are about.
void events_last(std::vector<Action>& actions) {
  std::ranges::stable_partition(actions,
                                [](const Action& action) { return !std::holds_alternative<RecordEvent>(action); });
}

}  // namespace

Plan reconcile(const Observation& seen, const PlanLimits& limits, WallTime now) {
  PlanBuilder out;
  const View view(seen, limits, now);
  plan_orphan_requests(view, out);
  if (view.job != nullptr) {
    plan_protection(view, out);
    plan_fault(view, out);
    plan_breakpoint(view, out);
    plan_restart(view, out);
    plan_status(view, out);
    keep_first_write(out.plan.actions);
    events_last(out.plan.actions);
  }
  if (seen.writes_unseen > 0) {
    // What we did is not in the stores yet: deciding now could do it twice. The stores wake us when
    // it is.
    out.plan.actions.clear();
    out.add_reason(format("{} of our writes are not in the stores yet", seen.writes_unseen));
  }
  return std::move(out.plan);
}

}  // namespace rekindle::op
