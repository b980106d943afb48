// From what is seen to an intent: at most one Breakpoint, with the pods that it may delete.
#include <algorithm>
#include <vector>

#include "common/base/format.h"
#include "operator/faults/classify.h"
#include "operator/faults/response_table.h"
#include "operator/faults/volcano_restart.h"
#include "operator/model/names.h"
#include "operator/reconcile/recovery.h"
#include "operator/reconcile/view.h"

namespace rekindle::op {
namespace {

using std::chrono::seconds;

// What Volcano, or the owner of the job, does to a pod shows in the Job a moment later; a fault
// that no one else could have caused needs no wait.
WallTime believable_at(const View& view, const Fault& fault) {
  const WallTime seen = fault.seen.value_or(view.now);
  const bool may_be_duty = fault.fault_class == FaultClass::pod_deleted || fault.fault_class == FaultClass::pod_gone;
  return may_be_duty ? seen + view.limits.believe_after : seen;
}

void faults_of_pods(const View& view, PlanBuilder& out, std::vector<Fault>& faults) {
  for (const Pod* pod : view.pods) {
    Verdict verdict = classify(view.evidence(*pod));
    if (!verdict.fault) continue;
    if (!verdict.fault->seen && is_deleting(*pod)) verdict.fault->seen = view.now;
    if (out.reached(believable_at(view, *verdict.fault), view.now)) faults.push_back(std::move(*verdict.fault));
  }
}

// The attempt that pods which are still there are in; 0 for none. Whom a restart is taking away is
// in it as well: who went first was a member beside those who follow.
std::uint64_t live_attempt(const View& view) {
  std::uint64_t attempt = 0;
  for (const Pod* pod : view.pods) {
    if (const SidecarReport* report = view.report_of(pod->uid)) attempt = std::max(attempt, report->sync.attempt);
  }
  return attempt;
}

// Sidecars of that attempt whose pods have gone lately.
std::vector<const SidecarReport*> gone_members(const View& view, std::uint64_t attempt) {
  std::vector<const SidecarReport*> gone;
  if (attempt == 0) return gone;
  for (const SidecarReport& report : view.seen.reports) {
    if (report.sync.attempt != attempt || report.sync.phase == SidecarPhase::finished) continue;
    if (view.pod_by_uid(report.sender.pod_uid) == nullptr && view.ordinal_of_name(report.sender.pod_name))
      gone.push_back(&report);
  }
  return gone;
}

// Whether a pod that went took part in an attempt after which none has begun. A sidecar that an
// operator which has just started has not heard may have been in it.
bool was_member(const View& view, const GonePod& gone) {
  const SidecarReport* report = view.report_of(gone.pod->uid);
  if (report != nullptr) return report->sync.attempt > 0 && report->sync.attempt >= live_attempt(view);
  return gone.pod->phase != PodPhase::pending && gone.gone < view.seen.operator_started + view.limits.report_patience;
}

void faults_of_gone_pods(const View& view, PlanBuilder& out, std::vector<Fault>& faults) {
  for (const GonePod* gone : view.gone_pods) {
    const Pod& pod = *gone->pod;
    if (stage_of(*view.job) == JobStage::suspended || !view.ordinal_of_name(pod.name) || !was_member(view, *gone))
      continue;
    // A restart that the job did not show when the pod had gone already is an answer to that, not
    // its cause.
    FaultEvidence evidence = view.evidence(pod);
    if (gone->job != nullptr) evidence.job = gone->job.get();
    Verdict verdict = classify(evidence);
    if (!verdict.fault && verdict.by != "nothing_happened") continue;
    if (verdict.fault && gone->job != nullptr) {
      faults.push_back(std::move(*verdict.fault));
      continue;
    }
    // It went without notice, or no watch was open.
    Fault fault{.fault_class = FaultClass::pod_gone,
                .pod = {pod.name, pod.uid},
                .message = format("pod {} is gone", pod.name),
                .trigger = Trigger::pod_lost,
                .seen = gone->gone};
    if (out.reached(believable_at(view, fault), view.now)) faults.push_back(std::move(fault));
  }
}

// A newcomer beside a pod that is well into its attempt stands where a member was: the operator was
// away when that one went.
void faults_of_newcomers(const View& view, PlanBuilder& out, std::vector<Fault>& faults) {
  for (const Pod* newcomer : view.pods) {
    if (view.in_attempt(*newcomer) || !newcomer->created || !newcomer->injected || is_deleting(*newcomer)) continue;
    if (!ordinal_of(*view.job, newcomer->task, newcomer->index)) continue;
    for (const Pod* member : view.pods) {
      const SidecarReport* report = view.report_of(member->uid);
      if (report == nullptr || report->sync.attempt == 0 || report->sync.phase == SidecarPhase::finished) continue;
      if (ended_by_restart(*view.job, *member)) continue;
      // Scaling up also brings newcomers; the members' world has no place for those.
      const std::uint64_t ranks = report->sync.ranks.value_or(RankCounts{}).expected;
      if (ranks != 0 &&
          ranks < static_cast<std::uint64_t>(pods_expected(*view.job) * view.job->settings.ranks_per_pod)) {
        continue;
      }
      const SidecarReport* own = view.report_of(newcomer->uid);
      const bool came_later = *newcomer->created > report->attempt_since + seconds(2);
      const bool waits_long = own != nullptr && own->sync.phase == SidecarPhase::waiting &&
                              own->received >= report->attempt_since + view.limits.report_patience;
      if (!came_later && !waits_long) continue;
      Fault fault{.fault_class = FaultClass::pod_gone,
                  .pod = {newcomer->name, ""},
                  .message = format("pod {} was replaced while the others trained on", newcomer->name),
                  .trigger = Trigger::pod_lost,
                  .seen = *newcomer->created};
      if (out.reached(believable_at(view, fault), view.now)) faults.push_back(std::move(fault));
      break;
    }
  }
}

// What sidecars began by themselves, about something that the pods do not show.
void faults_of_reports(const View& view, PlanBuilder& out, std::vector<Fault>& faults) {
  for (const SidecarReport& report : view.seen.reports) {
    const Pod* reporter = view.pod_by_uid(report.sender.pod_uid);
    if (reporter == nullptr || report.sync.breakpoints.empty() || view.record_of(report.sender.pod_uid) != nullptr)
      continue;
    if (classify({view.job, reporter, nullptr}).by == "volcano_restart") continue;
    const ReportedBreakpoint& reported = report.sync.breakpoints.back();
    const Trigger trigger = trigger_from_cause(reported.cause);
    if (!reported.id.empty() || training_goes_on(reported) || report.sync.phase == SidecarPhase::finished) continue;
    Fault fault{.fault_class = trigger == Trigger::rank_died ? FaultClass::rank_died : FaultClass::rank_reported,
                .trigger = trigger,
                .seen = report.phase_since};
    fault.message = reported.detail.empty()
                        ? "the sidecars began a breakpoint by themselves (" + std::string(cause_word(reported)) + ")"
                        : reported.detail;
    WallTime believed = report.phase_since;
    // A connection between ranks ends before the death at its other end is told, and the trigger of
    // a record is never changed.
    if (trigger == Trigger::collective_failed) believed += view.limits.collective_patience;
    if (!reported.pod.empty()) {
      const Pod* subject = view.pod_by_name(reported.pod);
      fault.pod.name = reported.pod;
      if (subject != nullptr) fault.pod.uid = subject->uid;
      if (!view.ordinal_of_name(reported.pod)) continue;  // scaled down
      const bool ending = trigger == Trigger::pre_stop || trigger == Trigger::pod_lost;
      if (ending && subject != nullptr && view.in_attempt(*subject)) {
        const Verdict verdict = classify(view.evidence(*subject));
        // the pod itself tells more
        if (verdict.fault || verdict.by != "nothing_happened") continue;
        // A hook without a deletion: a liveness probe, or our view of the pod is late.
        believed += view.limits.stranded_after;
      } else if (ending) {
        fault.fault_class = FaultClass::pod_gone;
        if (subject != nullptr) fault.pod.uid.clear();  // that one is its replacement
        believed += view.limits.believe_after;
      }
    }
    if (out.reached(believed, view.now)) faults.push_back(std::move(fault));
  }
}

// The attempt that the fault hit.
std::uint64_t attempt_of(const View& view, const Fault& fault) {
  const SidecarReport* report = view.report_of(fault.pod.uid);
  return report != nullptr && report->sync.attempt != 0 ? report->sync.attempt : view.attempt();
}

// Volcano may have made new ones already, also after a delete by another actor.
bool came_after(const Pod& pod, const GonePod& gone) {
  return pod.job_version > gone.pod->job_version || (pod.created && *pod.created + seconds(1) > gone.gone);
}

// Those that belong to the attempt: pods that have left rk_open, and silent ones (a stale pod that
// cannot reach us). A replacement that waits is spared.
std::vector<PodRef> members_of_attempt(const View& view, const Fault& fault) {
  std::vector<PodRef> members;
  const GonePod* gone_pod = view.gone_pod(fault.pod.uid);
  for (const Pod* pod : view.pods) {
    const SidecarReport* report = view.report_of(pod->uid);
    const bool waits =
        (report != nullptr && report->sync.attempt == 0) || pod->phase == PodPhase::pending || !pod->injected;
    if (waits && pod->uid != fault.pod.uid) continue;
    if (gone_pod != nullptr && came_after(*pod, *gone_pod)) continue;
    if (classify({view.job, pod, nullptr}).by == "scaled_down") continue;
    members.push_back({pod->name, pod->uid});
  }
  for (const SidecarReport* gone :
       gone_members(view, gone_pod != nullptr ? attempt_of(view, fault) : live_attempt(view)))
    members.push_back({gone->sender.pod_name, gone->sender.pod_uid});
  if (!fault.pod.uid.empty() && !contains_pod(members, fault.pod.uid)) members.push_back(fault.pod);
  std::ranges::sort(members);
  return members;
}

CreateBreakpoint intent(const View& view, const Fault& fault, std::vector<PodRef> pods) {
  const std::string key = format("{}/{}", view.job->uid, fault.pod.uid.empty() ? pods.front().uid : fault.pod.uid);
  Breakpoint object{.namespace_name = view.job->namespace_name,
                    .name = breakpoint_name(view.job->name, attempt_of(view, fault), key),
                    .owner_uid = view.job->uid};
  object.spec = {.job_name = view.job->name,
                 .job_uid = view.job->uid,
                 .trigger = fault.trigger,
                 .requested_by = std::string(names::kOperatorRequester),
                 .deadline = view.deadline(),
                 .reason = fault.message,
                 .attempt = attempt_of(view, fault),
                 .pods = std::move(pods)};
  if (!fault.pod.uid.empty()) object.spec.broken = fault.pod;
  return {std::move(object)};
}

// In which stage the job meets the fault. None: not known yet.
std::optional<JobStage> stage_at(const View& view, const Fault& fault) {
  if (view.gone_pod(fault.pod.uid) != nullptr) {
    const bool others_train =
        stage_of(*view.job) == JobStage::training && std::ranges::any_of(view.pods, [&](const Pod* pod) {
          return view.in_attempt(*pod) && !ended_by_restart(*view.job, *pod);
        });
    return others_train ? JobStage::training : JobStage::restarting;
  }
  const Pod* subject = view.pod_by_uid(fault.pod.uid);
  if (subject == nullptr) return view.stage();
  if (ended_by_restart(*view.job, *subject)) return JobStage::restarting;
  if (const std::optional<JobStage> stage = view.stage()) return stage;
  // What a pod that ends tells goes with it, and Volcano may have replaced all of them before an
  // operator that has just started hears a sidecar. A record too many of a job that had not begun
  // loses nothing.
  const bool ends = is_deleting(*subject) || is_finished(*subject) || !subject->ended.empty();
  return ends ? std::optional(JobStage::training) : std::nullopt;
}

// Pods that failed before their attempt began: this one, those that fail beside it (a program that
// cannot start fails in all of them at once), and those that an earlier record was about to
// replace, which this one takes over. Pods that are being deleted are apart: nothing is left to be
// done about them.
std::vector<PodRef> failed_before_attempt(const View& view, const std::vector<Fault>& faults, const Fault& fault) {
  std::vector<PodRef> pods{fault.pod};
  const Pod* subject = view.pod_by_uid(fault.pod.uid);
  const bool goes = subject == nullptr || is_deleting(*subject);
  const auto add = [&](const PodRef& pod) {
    const Pod* other = view.pod_by_uid(pod.uid);
    if (other != nullptr && is_deleting(*other) == goes && !contains_pod(pods, pod.uid)) pods.push_back(pod);
  };
  for (const Fault& other : faults) {
    if (respond(other.fault_class, JobStage::starting).response != Response::replace_pod) continue;
    if (view.record_of(other.pod.uid) == nullptr) add(other.pod);
  }
  if (view.recovery != nullptr) std::ranges::for_each(view.recovery->spec.pods, add);
  std::ranges::sort(pods);
  return pods;
}

// A restart that goes on already is recorded when it takes an attempt with it.
bool ends_an_attempt(const View& view, const Fault& fault) {
  if (view.gone_pod(fault.pod.uid) != nullptr) return true;
  const Pod* subject = view.pod_by_uid(fault.pod.uid);
  return subject != nullptr && view.in_attempt(*subject);
}

}  // namespace

void plan_fault(const View& view, PlanBuilder& out) {
  if (!is_protected(*view.job) || stage_of(*view.job) == JobStage::ending) return;
  std::vector<Fault> faults;
  faults_of_pods(view, out, faults);
  faults_of_gone_pods(view, out, faults);
  faults_of_newcomers(view, out, faults);
  faults_of_reports(view, out, faults);
  std::ranges::sort(faults, {}, [](const Fault& fault) {
    return std::tuple(fault.seen.value_or(WallTime{}), fault.fault_class, fault.pod.name, fault.pod.uid);
  });

  for (const Fault& fault : faults) {
    const std::string what = format("{}: {}", to_string(fault.fault_class), fault.message);
    if (const Breakpoint* record = fault.pod.uid.empty() ? nullptr : view.record_of(fault.pod.uid)) {
      out.add_reason(format("{} is recorded in {}", what, record->name));
      continue;
    }
    const std::optional<JobStage> stage = stage_at(view, fault);
    if (!stage) {
      out.add_reason(what + ": waiting for the sidecars' reports");
      out.reached(view.seen.operator_started + view.limits.report_patience, view.now);
      return;
    }
    const ResponseCell& cell = respond(fault.fault_class, *stage);
    out.add_reason(format("{} while {} -> {}: {}", what, to_string(*stage), to_string(cell.response), cell.why));
    std::vector<PodRef> pods;
    if (cell.response == Response::replace_pod) {
      if (fault.pod.uid.empty()) continue;
      pods = failed_before_attempt(view, faults, fault);
    } else if (cell.response == Response::restart_job ||
               (cell.response == Response::join && *stage == JobStage::restarting && ends_an_attempt(view, fault))) {
      pods = members_of_attempt(view, fault);
    } else {
      continue;
    }
    // A fault about no single pod is recorded when the pods that it would restart are in a record
    // already.
    if (pods.empty() || std::ranges::any_of(pods, [&](const PodRef& pod) {
          const Breakpoint* record = view.record_of(pod.uid);
          return record != nullptr && !is_final(record->status.state) &&
                 record->status.state != BreakpointState::restarting;
        })) {
      continue;
    }
    if (fault.pod.uid.empty() &&
        std::ranges::all_of(pods, [&](const PodRef& pod) { return view.record_of(pod.uid) != nullptr; })) {
      continue;
    }
    CreateBreakpoint create = intent(view, fault, std::move(pods));
    const bool exists =
        std::ranges::any_of(view.breakpoints, [&](const Breakpoint* each) { return each->name == create.object.name; });
    if (exists) continue;
    RecordEvent event{.warning = true,
                      .reason = std::string(names::reason::kFaultSeen),
                      .action = "Recover",
                      .note = format("{}; recorded as breakpoint {}", fault.message, create.object.name),
                      .regarding = view.job_reference()};
    out.act(std::move(create));
    out.act(std::move(event));
    return;  // one intent at a time: what it covers is seen when it is there
  }
}

}  // namespace rekindle::op
