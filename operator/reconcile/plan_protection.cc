// Whether the job is protected at all: its certificate, pods that the webhook missed, and what
// people should know about it.
#include <algorithm>

#include "common/base/format.h"
#include "operator/faults/classify.h"
#include "operator/model/names.h"
#include "operator/reconcile/view.h"

namespace rekindle::op {
namespace {

void record_once(const View& view, PlanBuilder& out, std::string_view reason, std::string_view action, std::string note,
                 std::string once_key) {
  once_key = format("{}/{}", view.job->uid, once_key);
  if (view.seen.events_recorded.contains(once_key)) return;
  out.act(RecordEvent{.warning = true,
                      .reason = std::string(reason),
                      .action = std::string(action),
                      .note = std::move(note),
                      .regarding = view.job_reference(),
                      .once_key = std::move(once_key)});
}

void plan_unprotected(const View& view, PlanBuilder& out) {
  const std::string& value = view.job->settings.scheduling;
  const bool is_known =
      value.empty() || value == names::kSchedulingOff || value == names::kSchedulingNone || wants_protection(*view.job);
  if (!is_known) {  // admitted all the same: docs/decisions/0001
    record_once(view, out, names::reason::kNotProtected, "Protect",
                format("Protected=False: fault-scheduling: \"{}\" is not one of grace, force, off. Create the job "
                       "again with grace to protect it.",
                       value),
                "not-protected");
    return;
  }
  if (!wants_protection(*view.job)) return;
  record_once(view, out, names::reason::kNotProtected, "Protect",
              "Protected=False: the label fault-scheduling was added after the job was created, or the job is older "
              "than Rekindle's "
              "webhook. It is left alone. Create it again with the label to protect it.",
              "not-protected");
}

// One pod at a time: under `PodEvicted: RestartJob` Volcano makes all of them anew after the first.
void plan_gated(const View& view, PlanBuilder& out) {
  if (stage_of(*view.job) != JobStage::training) return;
  const auto missed = [](const Pod* pod) { return pod->gated && !pod->injected; };
  const Pod* oldest = nullptr;
  for (const Pod* pod : view.pods) {
    if (!missed(pod)) continue;
    if (is_deleting(*pod)) return;
    if (!pod->not_injected.empty()) {
      record_once(view, out, names::reason::kInjectionRefused, "Protect",
                  format("pod {} waits unscheduled, because Rekindle cannot protect it: {}. Change the job's "
                         "template and create the job again.",
                         pod->name, pod->not_injected),
                  "not-injected");
      continue;
    }
    if (oldest == nullptr || pod->created < oldest->created) oldest = pod;
  }
  if (oldest == nullptr || !oldest->created) return;
  if (!view.seen.webhook.answers || !view.seen.webhook.answering_since) {
    out.add_reason(format("pod {} is gated and the webhook does not answer yet", oldest->name));
    return;
  }
  const bool made_while_away = *oldest->created < *view.seen.webhook.answering_since + view.limits.webhook_settles;
  const auto patience = made_while_away ? view.limits.gated_after : view.limits.gated_again;
  if (!out.reached(*oldest->created + patience, view.now)) return;
  out.act(DeletePod{.namespace_name = oldest->namespace_name,
                    .name = oldest->name,
                    .uid = oldest->uid,
                    .job_uid = view.job->uid,
                    .why = "the webhook missed it; Volcano makes it anew"});
  out.act(RecordEvent{
      .warning = true,
      .reason = std::string(names::reason::kInjectionMissed),
      .action = "Protect",
      .note = format("pod {} was created while Rekindle's webhook did not answer; it is deleted so that Volcano "
                     "creates it again with its sidecar",
                     oldest->name),
      .regarding = view.job_reference()});
}

void plan_problems(const View& view, PlanBuilder& out) {
  for (const SidecarReport& report : view.seen.reports) {
    if (view.pod_by_uid(report.sender.pod_uid) == nullptr) continue;
    for (const ReportedProblem& problem : report.sync.problems) {
      record_once(view, out, names::reason::kSidecarProblem, "Protect",
                  "pod " + report.sender.pod_name + ": " + problem.message + " (" + problem.code + ")",
                  "problem/" + problem.code);
    }
  }
}

// The ranks that train were told how many they are; newcomers have to wait until all start again.
void plan_scaled_up(const View& view, PlanBuilder& out) {
  const auto configured = static_cast<std::uint64_t>(pods_expected(*view.job) * view.job->settings.ranks_per_pod);
  for (const SidecarReport& report : view.seen.reports) {
    if (view.pod_by_uid(report.sender.pod_uid) == nullptr || report.sync.phase != SidecarPhase::training) continue;
    const std::uint64_t ranks = report.sync.ranks.value_or(RankCounts{}).expected;
    if (ranks == 0 || ranks >= configured) continue;
    record_once(view, out, names::reason::kScaledWhileTraining, "Protect",
                "the job was scaled to " + std::to_string(configured) + " ranks while " + std::to_string(ranks) +
                    " train: the new pods wait until the job is restarted",
                "scaled/" + std::to_string(configured));
    return;
  }
}

}  // namespace

void plan_protection(const View& view, PlanBuilder& out) {
  if (stage_of(*view.job) == JobStage::ending) return;
  if (!is_protected(*view.job)) {
    plan_unprotected(view, out);
    return;
  }
  if (!view.seen.certificate_ensured) {
    out.act(CreateCertificateSecret{.namespace_name = view.job->namespace_name,
                                    .name = certificate_secret_name(view.job->name, view.job->uid),
                                    .job_name = view.job->name,
                                    .job_uid = view.job->uid});
  }
  plan_gated(view, out);
  plan_scaled_up(view, out);
  plan_problems(view, out);
}

}  // namespace rekindle::op
