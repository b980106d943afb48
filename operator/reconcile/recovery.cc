#include "operator/reconcile/recovery.h"

#include <algorithm>

namespace rekindle::op {
namespace {

int rank_of(SaveState state) {
  switch (state) {
    case SaveState::failed: return 0;
    case SaveState::unknown:
    case SaveState::collecting: return 1;
    case SaveState::writing: return 2;
    case SaveState::durable: return 3;
  }
  return 0;
}

bool better(const ReportedBreakpoint& candidate, const ReportedBreakpoint& best) {
  return std::tuple(rank_of(candidate.state), candidate.step, candidate.term) >
         std::tuple(rank_of(best.state), best.step, best.term);
}

template <typename Matches>
std::optional<SavedBy> best_save(const View& view, Matches matches) {
  std::optional<SavedBy> best;
  std::uint64_t ranks_expected = 0;
  for (const SidecarReport& report : view.seen.reports) {
    for (const ReportedBreakpoint& reported : report.sync.breakpoints) {
      if (!matches(report, reported)) continue;
      ranks_expected = std::max(ranks_expected, report.sync.ranks.value_or(RankCounts{}).expected);
      if (!best || better(reported, *best->reported)) best = SavedBy{&reported, report.sync.attempt, 0};
    }
  }
  if (!best) return best;
  const auto configured = static_cast<std::uint64_t>(pods_expected(*view.job) * view.job->settings.ranks_per_pod);
  best->ranks_expected = ranks_expected != 0 ? ranks_expected : configured;
  return best;
}

}  // namespace

bool training_goes_on(const ReportedBreakpoint& reported) {
  return reported.rebuild || training_goes_on(trigger_from_cause(reported.cause));
}

std::optional<SavedBy> find_save(const View& view, const Breakpoint& recovery) {
  return best_save(view, [&](const SidecarReport& report, const ReportedBreakpoint& reported) {
    if (reported.id == recovery.name) return true;
    return reported.id.empty() && !training_goes_on(reported) &&
           contains_pod(recovery.spec.pods, report.sender.pod_uid);
  });
}

std::optional<SavedBy> find_save_by_name(const View& view, std::string_view name) {
  return best_save(view, [&](const SidecarReport&, const ReportedBreakpoint& reported) { return reported.id == name; });
}

std::vector<const Pod*> remaining_pods(const View& view, const Breakpoint& recovery) {
  std::vector<const Pod*> remaining;
  for (const Pod* pod : view.pods) {
    if (contains_pod(recovery.spec.pods, pod->uid)) remaining.push_back(pod);
  }
  return remaining;
}

bool anything_to_save(const View& view, const Breakpoint& recovery) {
  const std::vector<const Pod*> remaining = remaining_pods(view, recovery);
  return std::ranges::any_of(remaining, [&](const Pod* pod) {
    if (is_finished(*pod)) return false;  // its sidecar has ended as well
    return view.in_attempt(*pod) || view.report_of(pod->uid) == nullptr;
  });
}

bool has_begun(const View& view, const Breakpoint& recovery) {
  return std::ranges::any_of(recovery.spec.pods, [&](const PodRef& pod) {
    const SidecarReport* report = view.report_of(pod.uid);
    return report == nullptr || report->sync.attempt > 0;
  });
}

}  // namespace rekindle::op
