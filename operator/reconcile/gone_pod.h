// A pod that is not there any more. A plain DELETE is over in less than two seconds, and Volcano
// has often restarted the job by then: what the pod was and how the job stood tell afterwards
// whether that restart took the pod or answered its loss.
#pragma once

#include <memory>

#include "common/contract/wall_time.h"
#include "operator/model/job.h"
#include "operator/model/pod.h"

namespace rekindle::op {

struct GonePod {
  std::shared_ptr<const Pod> pod;  // as it was last seen
  // as it stood when the pod went; null: it went while no watch was open
  std::shared_ptr<const Job> job;
  WallTime gone{};  // or when that was found out
};

}  // namespace rekindle::op
