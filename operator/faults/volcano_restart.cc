#include "operator/faults/volcano_restart.h"

#include <chrono>

namespace rekindle::op {
namespace {

// Both times are whole seconds, of two clocks.
constexpr std::chrono::seconds kClocksApart{2};

}  // namespace

bool ended_by_restart(const Job& job, const Pod& pod) {
  // it says so itself (1.14 and newer), before the job's status says anything
  if (pod.out_of_sync) return true;
  if (pod.job_version >= job.version) return false;
  if (job.phase == JobPhase::restarting) return true;
  // The job has moved on. What the restart deleted, it deleted before that; a later delete is
  // another actor's.
  const std::optional<WallTime> began = deletion_began(pod);
  return began && (!job.phase_since || *began <= *job.phase_since + kClocksApart);
}

bool only_syncs(const Job& job, const Pod& pod) { return pod.job_version < job.version || pod.out_of_sync; }

}  // namespace rekindle::op
