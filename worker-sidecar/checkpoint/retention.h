// Which folders may go after a new checkpoint is durable. Pure.
#pragma once

#include <string>
#include <vector>

#include "common/contract/retention_policy.h"
#include "worker-sidecar/checkpoint/candidates.h"

namespace rekindle {

struct Removal {
  std::string path;
  std::string reason;
};

// Nothing goes while there is no usable checkpoint, or when a newer attempt than the own exists (a
// late process of an earlier attempt may not prune). Otherwise the `keep` newest usable ones stay;
// what goes is: older usable ones, complete ones of an abandoned line, and incomplete folders of
// earlier attempts. Folders whose manifest cannot be read stay for a person to inspect.
std::vector<Removal> plan_retention(const FolderScan& scan, const JobIdentity& job, const RetentionPolicy& policy);

}  // namespace rekindle
