// The environment of one rank.
#pragma once

#include <cstdint>

#include "worker-sidecar/launcher/children.h"

namespace rekindle::launcher {

struct RankPlacement {
  std::uint32_t rank = 0;
  std::uint32_t world_size = 1;
  std::uint32_t local_rank = 0;
};

// The launcher's own variables.
Environment own_environment();

// `base` with REKINDLE_RANK, REKINDLE_WORLD_SIZE, RANK_ID, RANK_SIZE, LOCAL_RANK set, and
// MASTER_ADDR unless it is there already: the first host of the Volcano svc plugin's lists
// (VC_<TASK>_HOSTS; a task called master or chief first, then by name).
Environment rank_environment(const Environment& base, const RankPlacement& placement);

}  // namespace rekindle::launcher
