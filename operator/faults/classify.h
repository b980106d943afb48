// From what is seen of one pod to a fault, or to none. Two ordered chains: first what is not a
// fault (an actor does its duty: Volcano's restart, suspend, scale-down, the job's deletion or its
// end), then the classes; the first that hits wins. Each link has a name, which is also the reason
// that logs and tests show. Pure; time is needed by none of them (how long to wait before believing
// is the caller's matter).
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "operator/faults/fault.h"

namespace rekindle::op {

struct BenignCause {
  std::string_view name;  // "volcano_restart"
  bool (*matches)(const FaultEvidence&);
};

struct Classifier {
  std::string_view name;
  std::optional<Fault> (*classify)(const FaultEvidence&);
};

// For tests: every row of the table has an example.
std::span<const BenignCause> benign_causes();
// For tests: every row of the table has an example.
std::span<const Classifier> classifiers();

struct Verdict {
  std::optional<Fault> fault;
  std::string_view by;  // the link that decided; "nothing_happened" when none did
};

Verdict classify(const FaultEvidence& evidence);

// The stage as the Job alone tells it; starting needs more (see operator/reconcile).
JobStage stage_of(const Job& job);

}  // namespace rekindle::op
