// Which checkpoints are to stay when a newer one is durable. What it means is plan_retention's, in
// worker-sidecar/checkpoint/retention.h.
#pragma once

#include <chrono>
#include <cstdint>

namespace rekindle {

struct RetentionPolicy {
  std::uint32_t keep = 3;  // complete checkpoints that stay; 0 counts as 1
  // Not 0: instead of `keep`, of all complete ones so many stay that two of them are this far
  // apart, besides the newest. By the manifests' wall clock; one whose time cannot be read stays.
  std::chrono::seconds keep_one_each{0};
  std::uint64_t own_attempt = 0;  // of the one that prunes: nothing of a newer attempt is touched
};

}  // namespace rekindle
