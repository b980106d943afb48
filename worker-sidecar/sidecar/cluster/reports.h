// What the machines of this pod say, in the words that the operator reads. Pure.
#pragma once

#include <string>
#include <vector>

#include "common/contract/sync_request.h"
#include "worker-sidecar/coordination/output.h"
#include "worker-sidecar/coordination/record.h"

namespace rekindle::sidecar {

struct TimedRecord {
  BreakpointRecord record;
  std::string time;  // wall clock of its beginning
};

// `pod_names[ordinal]` is what a person calls that pod; shorter, or empty there, when it is not
// known.
ReportedBreakpoint report_of(const TimedRecord& timed, const std::vector<std::string>& pod_names);

ReportedRestore report_of(const AttemptBegun& begun);

}  // namespace rekindle::sidecar
