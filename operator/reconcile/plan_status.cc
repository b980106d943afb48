// How a recovery ends, what is published about the last checkpoint, and how many records are
// kept.
#include <algorithm>
#include <optional>
#include <vector>

#include "common/base/format.h"
#include "operator/faults/classify.h"
#include "operator/model/names.h"
#include "operator/reconcile/recovery.h"
#include "operator/reconcile/view.h"

namespace rekindle::op {
namespace {

void close(const View& view, PlanBuilder& out, const Breakpoint& breakpoint, BreakpointState state,
           std::string_view reason, const std::string& why) {
  BreakpointStatus status = breakpoint.status;
  status.state = state;
  status.message = why;
  set_condition(status, names::kRestored, "False", reason, why, view.now);
  out.act(write_status(breakpoint, std::move(status)));
}

// What one pod leaves open about the restore, another one may know.
void merge_into(ReportedRestore& common, const ReportedRestore& reported) {
  if (common.first_step == 0) common.first_step = reported.first_step;
  if (common.manifest_hash.empty()) common.manifest_hash = reported.manifest_hash;
  if (!common.bytes) common.bytes = reported.bytes;
  if (!common.ranks) common.ranks = reported.ranks;
  if (!common.agreed_milliseconds) common.agreed_milliseconds = reported.agreed_milliseconds;
}

// The restore that the pods of the new attempt report, once all of them have done their first step
// (or their program has finished).
std::optional<ReportedRestore> whole_restore(const View& view, const Breakpoint& recovery) {
  std::optional<ReportedRestore> common;
  std::vector<const SidecarReport*> fresh;
  for (const SidecarReport& report : view.seen.reports) {
    if (contains_pod(recovery.spec.pods, report.sender.pod_uid)) continue;
    if (view.pod_by_uid(report.sender.pod_uid) == nullptr && report.sync.phase != SidecarPhase::finished) continue;
    fresh.push_back(&report);
    if (!report.sync.restored) continue;
    if (common && common->attempt != report.sync.restored->attempt) return std::nullopt;
    if (!common) common = *report.sync.restored;
    merge_into(*common, *report.sync.restored);
  }
  if (!common) return std::nullopt;
  const std::int64_t back = std::ranges::count_if(fresh, [&](const SidecarReport* report) {
    if (report->sync.restored)
      return report->sync.restored->first_step != 0 || report->sync.phase == SidecarPhase::finished;
    // A sidecar that was restarted does not know what its ranks began from, only where they are.
    return report->sync.attempt == common->attempt && report->sync.step > common->step;
  });
  return back > 0 && back >= pods_expected(*view.job) ? common : std::nullopt;
}

// "a1-s184-..." as the last part of the path: made by attempt 1.
bool made_by_attempt(const std::string& path, std::uint64_t attempt) {
  const std::size_t slash = path.rfind('/');
  const std::string_view name = std::string_view(path).substr(slash == std::string::npos ? 0 : slash + 1);
  return name.starts_with(format("a{}-s", attempt));
}

// The pods may have saved while no operator ran, and be gone: what they made is known by
// what came out of it. The record then holds what the manifest says; what was reported while the
// operator was there stays.
void fill_in_restored(BreakpointStatus& status, const ReportedRestore& restore, WallTime now) {
  if (restore.step == 0) return;
  const Condition* durable = find_condition(status, names::kDurable);
  if (durable != nullptr && durable->status == "True") {
    // an older checkpoint than this one
    if (status.step != restore.step || status.path != restore.path) return;
  } else {
    // An operator that got no report does not know which attempt was hit: the one before this.
    const std::uint64_t attempt = status.attempt != 0 ? status.attempt : restore.attempt - 1;
    if (!made_by_attempt(restore.path, attempt)) return;
    if (status.path != restore.path) {  // what is known is of a round that came to nothing
      status.ranks_saved = status.ranks_expected = status.bytes = 0;
      status.manifest_hash.clear();
      status.agreed_milliseconds.reset();
      status.durable_milliseconds.reset();
    }
    status.attempt = attempt;
    status.step = restore.step;
    status.path = restore.path;
    set_condition(status, names::kAgreed, "True", names::reason::kStepAgreed,
                  "all ranks agreed on " + step_text(restore.step), now);
    set_condition(status, names::kDurable, "True", names::reason::kPublished, "found by the restart at " + restore.path,
                  now);
  }
  const RankCounts ranks = restore.ranks.value_or(RankCounts{});
  if (status.ranks_saved == 0) status.ranks_saved = ranks.live;
  if (status.ranks_expected == 0) status.ranks_expected = ranks.expected;
  if (status.bytes == 0) status.bytes = restore.bytes.value_or(0);
  if (status.manifest_hash.empty()) status.manifest_hash = restore.manifest_hash;
  if (!status.agreed_milliseconds) status.agreed_milliseconds = restore.agreed_milliseconds;
}

void plan_restored(const View& view, PlanBuilder& out, const Breakpoint& recovery, const ReportedRestore& restore) {
  BreakpointStatus status = recovery.status;
  fill_in_restored(status, restore, view.now);
  status.state = BreakpointState::restored;
  status.restored_attempt = restore.attempt;
  status.restored_step = restore.step;
  status.first_step = restore.first_step;
  std::string_view reason = names::reason::kResumed;
  if (restore.step == 0) {
    reason = names::reason::kStartedOver;
    status.message = "there was nothing to restore; training started over";
  } else if (status.step != 0 && restore.step != status.step) {
    reason = names::reason::kResumedOlder;
    status.message = format("resumed after {} from {}, not from this breakpoint's {}; the sidecars' log says why",
                            step_text(restore.step), restore.path, step_text(status.step));
  } else {
    status.message = "resumed after " + step_text(restore.step);
    if (restore.first_step != 0) status.message += " with " + step_text(restore.first_step);
  }
  set_condition(status, names::kRestored, "True", reason, status.message, view.now);
  const std::string note = format("{}: {}", recovery.name, status.message);
  const bool warning = reason != names::reason::kResumed;
  out.act(write_status(recovery, std::move(status)));
  out.act(RecordEvent{.warning = warning,
                      .reason = std::string(names::reason::kJobResumed),
                      .action = "Recover",
                      .note = note,
                      .regarding = view.job_reference()});
}

void plan_end_of_recovery(const View& view, PlanBuilder& out) {
  for (const Breakpoint* older : view.overtaken) {
    if (const std::optional<ReportedRestore> restore = whole_restore(view, *older)) {
      plan_restored(view, out, *older, *restore);
      continue;
    }
    close(view, out, *older, BreakpointState::superseded, names::reason::kSuperseded,
          "another fault came before the job was back: see " + view.overtaken_by->name);
  }
  if (view.recovery == nullptr) return;
  const Breakpoint& recovery = *view.recovery;
  if (recovery.status.state == BreakpointState::restarting) {
    if (const std::optional<ReportedRestore> restore = whole_restore(view, recovery)) {
      plan_restored(view, out, recovery, *restore);
      return;
    }
  }
  if (view.job->deleting) return;  // the record goes with its owner
  const JobPhase phase = view.job->phase;
  if (phase == JobPhase::completed || phase == JobPhase::terminated || phase == JobPhase::failed) {
    close(view, out, recovery, BreakpointState::ended, names::reason::kJobEnded,
          format("the job is {}; it did not come back to train{}", to_string(phase),
                 phase == JobPhase::failed ? ": delete it and create it again, Volcano does not resume it" : ""));
  }
}

void plan_annotation(const View& view, PlanBuilder& out) {
  if (view.job->deleting) return;
  std::uint64_t attempt = 0;
  std::uint64_t step = 0;
  WallTime time{};
  const auto offer = [&](std::uint64_t of_attempt, std::uint64_t of_step, WallTime at) {
    if (std::tuple(of_attempt, of_step) > std::tuple(attempt, step))
      std::tie(attempt, step, time) = std::tuple(of_attempt, of_step, at);
  };
  for (const SidecarReport& report : view.seen.reports) {
    for (const ReportedBreakpoint& reported : report.sync.breakpoints) {
      if (reported.state == SaveState::durable)
        offer(report.sync.attempt, reported.step, parse_wall_time(reported.time).value_or(report.received));
    }
  }
  for (const Breakpoint* each : view.breakpoints) {
    const Condition* durable = find_condition(each->status, names::kDurable);
    if (durable != nullptr && durable->status == "True")
      offer(each->status.attempt, each->status.step, durable->last_transition.value_or(view.now));
  }
  if (step == 0 || view.job->last_step == std::to_string(step)) return;
  // Reports go with their pods; what is known then may be older than what was written.
  if (view.job->last_time && time <= *view.job->last_time) return;
  out.act(AnnotateLastCheckpoint{.namespace_name = view.job->namespace_name,
                                 .job_name = view.job->name,
                                 .job_uid = view.job->uid,
                                 .pod_group_name = pod_group_name(*view.job),
                                 .step = step,
                                 .time = time});
}

void plan_retention(const View& view, PlanBuilder& out) {
  // Those by which failed starts are counted stay until there are enough of them.
  const std::size_t counted =
      failed_starts(view, view.recovery != nullptr ? view.recovery->status : BreakpointStatus{}).records;
  const std::size_t kept =
      std::clamp<std::size_t>(counted, view.limits.breakpoints_kept, view.limits.breakpoints_kept_max);
  std::size_t count = view.breakpoints.size();
  for (const Breakpoint* each : view.breakpoints) {
    if (count <= kept) return;
    if (!is_final(each->status.state)) continue;
    out.act(DeleteBreakpoint{each->namespace_name, each->name, each->uid});
    --count;
  }
}

}  // namespace

void plan_status(const View& view, PlanBuilder& out) {
  plan_end_of_recovery(view, out);
  plan_annotation(view, out);
  plan_retention(view, out);
}

}  // namespace rekindle::op
