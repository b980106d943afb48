// Carries out checkpoint/retention.h after a checkpoint has become durable.
#pragma once

#include <string>
#include <vector>

#include "common/base/error.h"
#include "worker-sidecar/checkpoint/retention.h"
#include "worker-sidecar/storage/file_system.h"

namespace rekindle {

struct PruneReport {
  std::vector<Removal> removed;
  // what could not be removed; nothing else suffers from it
  std::vector<Error> failures;
};

// Scans, plans, removes. Error: the scan failed, nothing was touched.
Result<PruneReport> prune_checkpoints(FileSystem& file_system, const std::string& job_folder, const JobIdentity& job,
                                      const RetentionPolicy& policy);

}  // namespace rekindle
