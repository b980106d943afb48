// Which pods Volcano's own restart of a job takes away. Volcano counts its kills in the job's
// status.version and writes the count on every pod that it makes. A pod whose count is older than
// the job's is no proof: one that was made while the kill was being written lives on with it,
// belongs to the new attempt, and its events only sync (release 1.14.1, killPods and
// applyPolicies).
#pragma once

#include "operator/model/job.h"
#include "operator/model/pod.h"

namespace rekindle::op {

// Volcano has ended this pod, or is about to.
bool ended_by_restart(const Job& job, const Pod& pod);

// Volcano answers no event of this pod by a policy: it makes the pod anew when it is gone, and
// nothing more.
bool only_syncs(const Job& job, const Pod& pod);

}  // namespace rekindle::op
