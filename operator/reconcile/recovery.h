// Questions about one recovery that several concerns ask.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "operator/reconcile/view.h"

namespace rekindle::op {

// A save that sidecars report, with what the report says around it.
struct SavedBy {
  const ReportedBreakpoint* reported = nullptr;
  std::uint64_t attempt = 0;
  std::uint64_t ranks_expected = 0;
};

// No pod is to be restarted for this: a user or the schedule requested it, or the ranks that it was
// about make their communicators anew.
bool training_goes_on(const ReportedBreakpoint& reported);

// The save that belongs to a recovery: requested under its name, or begun by the sidecars of its
// pods themselves. A durable one wins (the newest step of those), then the one that is still going
// on, then the newest failure.
std::optional<SavedBy> find_save(const View& view, const Breakpoint& recovery);
std::optional<SavedBy> find_save_by_name(const View& view, std::string_view name);

// Whether a pod of the recovery still lives that may save, or may tell that it did.
bool anything_to_save(const View& view, const Breakpoint& recovery);

// Whether one of its pods is known to have been in an attempt, or may have been.
bool has_begun(const View& view, const Breakpoint& recovery);

// The pods of the recovery that still exist.
std::vector<const Pod*> remaining_pods(const View& view, const Breakpoint& recovery);

// How often in a row the program failed by itself without getting any further than the time before,
// as its records tell. One failed start may stand in several records, one a pod that died; the
// same pod under another uid is another start. `outcome` stands for the status of view.recovery,
// which may not be written yet.
struct FailedStarts {
  std::uint32_t starts = 0;
  std::uint64_t step = 0;   // the furthest that one of them got
  std::size_t records = 0;  // the newest ones, by which they are counted
};
FailedStarts failed_starts(const View& view, const BreakpointStatus& outcome);

// Why the pods of view.recovery stay as they are instead of being restarted; none when they are
// restarted, or when a restart of them is under way.
struct LeftToPeople {
  std::string_view reason;
  std::string why;
};
std::optional<LeftToPeople> left_to_people(const View& view, const BreakpointStatus& outcome);

// Breakpoints of users whose job is not there.
void plan_orphan_requests(const View& view, PlanBuilder& out);

}  // namespace rekindle::op
