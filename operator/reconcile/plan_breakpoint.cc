// From intent to outcome: which sidecars are ordered to save, and what came of it.
#include <algorithm>

#include "common/base/format.h"
#include "operator/faults/classify.h"
#include "operator/model/names.h"
#include "operator/reconcile/recovery.h"
#include "operator/reconcile/view.h"

namespace rekindle::op {
namespace {

using std::chrono::duration_cast;
using std::chrono::seconds;

WallTime created_at(const View& view, const Breakpoint& breakpoint) { return breakpoint.created.value_or(view.now); }

SyncOrder order_for(const View& view, const Breakpoint& breakpoint, TriggerCause cause, AfterBreakpoint after) {
  const WallTime end = created_at(view, breakpoint) + breakpoint.spec.deadline;
  const std::int64_t left = duration_cast<seconds>(end - view.now).count();
  return {.breakpoint = breakpoint.name,
          .cause = cause,
          .detail = breakpoint.spec.reason,
          .seconds_left = std::max<std::int64_t>(left, 0),
          .after = after};
}

RecordEvent event_about(const View& view, bool warning, std::string_view reason, std::string_view action,
                        std::string note) {
  return {.warning = warning,
          .reason = std::string(reason),
          .action = std::string(action),
          .note = std::move(note),
          .regarding = view.job_reference()};
}

void fill_in(BreakpointStatus& status, const ReportedBreakpoint& reported, std::uint64_t attempt,
             std::uint64_t ranks_expected) {
  status.attempt = attempt;
  status.step = reported.step;
  status.ranks_saved = reported.ranks;
  status.ranks_expected = ranks_expected;
  status.bytes = reported.bytes;
  status.path = reported.path;
  status.manifest_hash = reported.manifest_hash;
  status.agreed_milliseconds = reported.agreed_milliseconds;
  status.durable_milliseconds = reported.durable_milliseconds;
}

// Agreed is worth a write of its own only while the writing goes on.
void write_agreed(const View& view, PlanBuilder& out, const Breakpoint& breakpoint, const SavedBy& saved) {
  if (breakpoint.status.state != BreakpointState::requested || saved.reported->state != SaveState::writing) return;
  BreakpointStatus status = breakpoint.status;
  status.state = BreakpointState::saving;
  fill_in(status, *saved.reported, saved.attempt, saved.ranks_expected);
  status.message = format("agreed on {}, writing", step_text(saved.reported->step));
  set_condition(status, names::kAgreed, "True", names::reason::kStepAgreed, status.message, view.now);
  out.act(write_status(breakpoint, std::move(status)));
}

void set_durable(BreakpointStatus& status, const SavedBy& saved, WallTime now) {
  fill_in(status, *saved.reported, saved.attempt, saved.ranks_expected);
  const std::string step = step_text(status.step);
  set_condition(status, names::kAgreed, "True", names::reason::kStepAgreed, "all ranks agreed on " + step, now);
  set_condition(status, names::kDurable, "True", names::reason::kPublished,
                format("{} is published at {}", step, status.path), now);
}

// --- with a restart behind it

void conclude_recovery(const View& view, PlanBuilder& out, BreakpointStatus status, bool saved, std::string why_not) {
  const Breakpoint& recovery = *view.recovery;
  if (status.attempt == 0) status.attempt = recovery.spec.attempt;
  const std::optional<LeftToPeople> left = left_to_people(view, status);
  if (left) {
    status.state = BreakpointState::failed;
    status.message =
        format("{}; {}", saved ? step_text(status.step) + " is durable" : format("not saved ({})", why_not), left->why);
    set_condition(status, names::kRestored, "False", left->reason, left->why, view.now);
    set_condition(status, names::kFailed, "True", left->reason, left->why, view.now);
  } else {
    status.state = BreakpointState::restarting;
    status.restart_time = view.now;
    status.message = saved ? step_text(status.step) + " is durable; the job restarts"
                           : format("not saved ({}); the job restarts from the newest verified checkpoint", why_not);
    set_condition(status, names::kRestored, "Unknown", names::reason::kRestarting, "waiting for the restarted job",
                  view.now);
  }
  const bool good = saved && !left;
  const std::string note = format("{}: {}", recovery.name, status.message);
  out.act(write_status(recovery, std::move(status)));
  out.act(event_about(view, !good, good ? names::reason::kBreakpointDurable : names::reason::kBreakpointFailed,
                      left ? "Restart" : "Save", note));
}

void plan_recovery(const View& view, PlanBuilder& out) {
  const Breakpoint& recovery = *view.recovery;
  if (recovery.status.state >= BreakpointState::restarting) return;

  const std::optional<SavedBy> saved = find_save(view, recovery);
  if (saved && saved->reported->state == SaveState::durable) {
    BreakpointStatus status = recovery.status;
    set_durable(status, *saved, view.now);
    conclude_recovery(view, out, std::move(status), true, "");
    return;
  }
  const auto give_up = [&](std::string_view reason, const std::string& why) {
    BreakpointStatus status = recovery.status;
    set_condition(status, names::kDurable, "False", reason, why, view.now);
    conclude_recovery(view, out, std::move(status), false, why);
  };
  if (saved && saved->reported->state == SaveState::failed) {
    give_up(names::reason::kSaveFailed,
            saved->reported->message.empty() ? "the sidecars gave no reason" : saved->reported->message);
    return;
  }
  if (saved) {
    write_agreed(view, out, recovery, *saved);
  } else if (!anything_to_save(view, recovery)) {
    // What the pods of the attempt saved before they went shows when the next ones restore it.
    give_up(names::reason::kSaveFailed,
            has_begun(view, recovery) ? "no pod of the attempt is left to tell" : "no process had begun to train");
    return;
  } else if (out.reached(created_at(view, recovery) + view.limits.order_patience, view.now) ||
             recovery.spec.trigger == Trigger::pod_lost) {
    out.plan.orders.push_back(order_for(view, recovery, TriggerCause::operator_order, AfterBreakpoint::park));
  }
  const WallTime deadline = created_at(view, recovery) + recovery.spec.deadline + view.limits.deadline_slack;
  if (!out.reached(deadline, view.now)) return;
  if (!view.reports_ready()) {
    out.reached(view.seen.operator_started + view.limits.report_patience, view.now);
    return;
  }
  give_up(names::reason::kDeadlineExceeded,
          format("no sidecar reported it durable within {} s", recovery.spec.deadline.count()));
}

// --- training goes on behind it

void finish_request(const View& view, PlanBuilder& out, const Breakpoint& request, std::string_view reason,
                    const std::string& why) {
  BreakpointStatus status = request.status;
  status.state = BreakpointState::failed;
  status.message = why;
  set_condition(status, names::kDurable, "False", reason, why, view.now);
  set_condition(status, names::kFailed, "True", reason, why, view.now);
  out.act(write_status(request, std::move(status)));
  if (view.job != nullptr) {
    out.act(event_about(view, true, names::reason::kBreakpointFailed, "Save", format("{}: {}", request.name, why)));
  }
}

void plan_request(const View& view, PlanBuilder& out, const Breakpoint& request) {
  if (!is_protected(*view.job)) {
    finish_request(
        view, out, request, names::reason::kJobNotProtected,
        format("job {} is not protected: create it again with the label fault-scheduling: grace", view.job->name));
    return;
  }
  const JobStage stage = stage_of(*view.job);
  if (stage == JobStage::ending || stage == JobStage::suspended) {
    finish_request(view, out, request, names::reason::kJobNotRunning,
                   format("job {} is {}: there is nothing to save", view.job->name, to_string(view.job->phase)));
    return;
  }
  if (request.owner_uid.empty()) {
    out.act(AdoptBreakpoint{.namespace_name = request.namespace_name,
                            .name = request.name,
                            .uid = request.uid,
                            .resource_version = request.resource_version,
                            .job_name = view.job->name,
                            .job_uid = view.job->uid});
    return;  // its version changes with that
  }
  const std::optional<SavedBy> saved = find_save_by_name(view, request.name);
  if (saved && saved->reported->state == SaveState::durable) {
    BreakpointStatus status = request.status;
    set_durable(status, *saved, view.now);
    status.state = BreakpointState::saved;
    status.message = step_text(status.step) + " is durable; training goes on";
    out.act(write_status(request, std::move(status)));
    out.act(event_about(view, false, names::reason::kBreakpointDurable, "Save",
                        format("{}: {} is durable; training goes on", request.name, step_text(saved->reported->step))));
    return;
  }
  if (saved && saved->reported->state == SaveState::failed) {
    finish_request(view, out, request, names::reason::kSaveFailed,
                   saved->reported->message.empty() ? "the sidecars gave no reason" : saved->reported->message);
    return;
  }
  if (out.reached(created_at(view, request) + request.spec.deadline + view.limits.deadline_slack, view.now)) {
    if (!view.reports_ready()) {
      out.reached(view.seen.operator_started + view.limits.report_patience, view.now);
      return;
    }
    finish_request(view, out, request, names::reason::kDeadlineExceeded,
                   format("no sidecar reported it durable within {} s; is the job training, and do its sidecars "
                          "reach the operator?",
                          request.spec.deadline.count()));
    return;
  }
  if (saved) write_agreed(view, out, request, *saved);
  // A recovery comes first; what it saves is newer than anything that this would.
  if (view.recovery == nullptr)
    out.plan.orders.push_back(order_for(view, request, TriggerCause::user, AfterBreakpoint::go_on));
}

}  // namespace

void plan_orphan_requests(const View& view, PlanBuilder& out) {
  for (const auto& each : view.seen.breakpoints) {
    if (is_final(each->status.state) || each->deleting || !training_goes_on(each->spec.trigger)) continue;
    if (std::ranges::find(view.breakpoints, each.get()) != view.breakpoints.end()) continue;
    finish_request(
        view, out, *each, names::reason::kJobNotFound,
        view.job == nullptr
            ? format("there is no Volcano job {} with the label fault-scheduling in namespace {}", each->spec.job_name,
                     each->namespace_name)
            : format("the job {} that this asked for is gone; another has its name now", each->spec.job_name));
  }
}

void plan_breakpoint(const View& view, PlanBuilder& out) {
  if (view.recovery != nullptr && stage_of(*view.job) != JobStage::ending) plan_recovery(view, out);
  for (const Breakpoint* each : view.breakpoints) {
    if (!is_final(each->status.state) && training_goes_on(each->spec.trigger)) plan_request(view, out, *each);
  }
}

}  // namespace rekindle::op
