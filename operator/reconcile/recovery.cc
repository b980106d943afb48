#include "operator/reconcile/recovery.h"

#include <algorithm>
#include <map>
#include <string>

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

FailedStarts failed_starts(const View& view, const BreakpointStatus& outcome) {
  FailedStarts failed;
  std::map<std::string_view, std::string_view> uid_of;  // by name, the pods of the start that is looked at
  std::uint64_t reached_later = 0;                      // by the start after it
  std::uint64_t reached = 0;
  const auto count_start = [&] {
    ++failed.starts;
    failed.step = std::max(failed.step, reached);
  };
  for (auto it = view.breakpoints.rbegin(); it != view.breakpoints.rend(); ++it) {
    const Breakpoint& each = **it;
    if (training_goes_on(each.spec.trigger)) continue;
    if (each.spec.trigger != Trigger::container_died && each.spec.trigger != Trigger::rank_died) break;
    const bool another_start = std::ranges::any_of(each.spec.pods, [&](const PodRef& pod) {
      const auto known = uid_of.find(pod.name);
      return known != uid_of.end() && known->second != pod.uid;
    });
    if (another_start) {
      if (reached < reached_later) return failed;  // the one after it got further
      count_start();
      reached_later = reached;
      reached = 0;
      uid_of.clear();
    }
    const BreakpointStatus& status = &each == view.recovery ? outcome : each.status;
    reached = std::max({reached, status.step, status.restored_step});
    for (const PodRef& pod : each.spec.pods) uid_of.try_emplace(pod.name, pod.uid);
    failed.records = static_cast<std::size_t>(it - view.breakpoints.rbegin()) + 1;
  }
  if (!uid_of.empty() && reached >= reached_later) count_start();
  return failed;
}

}  // namespace rekindle::op
