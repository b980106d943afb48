// Which folders may go after a new checkpoint is durable. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "worker-sidecar/checkpoint/candidates.h"

namespace rekindle {

struct RetentionPolicy {
  std::uint32_t keep = 3;         // complete checkpoints that stay; 0 counts as 1
  // Not 0: instead of `keep`, of all complete ones so many stay that two of them are this far apart, besides the newest. By the manifests'
  // wall clock; one whose time cannot be read stays.
  std::chrono::seconds keep_one_each{0};
  std::uint64_t own_attempt = 0;  // of the one that prunes: nothing of a newer attempt is touched
};

struct Removal {
  std::string path;
  std::string reason;
};

// Nothing goes while there is no usable checkpoint, or when a newer attempt than the own exists (a late process of an old
// attempt may not prune). Otherwise the `keep` newest usable ones stay; what goes is: older usable ones, complete ones of an abandoned line, and
// incomplete folders of earlier attempts. Folders whose manifest cannot be read stay for a person to look at.
std::vector<Removal> plan_retention(const FolderScan& scan, const JobIdentity& job, const RetentionPolicy& policy);

}  // namespace rekindle
