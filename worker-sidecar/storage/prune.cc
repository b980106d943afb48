#include "worker-sidecar/storage/prune.h"

#include <utility>

#include "worker-sidecar/storage/folder.h"
#include "worker-sidecar/storage/scan.h"

namespace rekindle {

Result<PruneReport> prune_checkpoints(FileSystem& file_system, const std::string& job_folder, const JobIdentity& job,
                                      const RetentionPolicy& policy) {
  const Result<FolderScan> scan = scan_job_folder(file_system, job_folder);
  if (!scan) return std::unexpected(scan.error());
  PruneReport report;
  for (Removal& removal : plan_retention(*scan, job, policy)) {
    if (Status status = remove_checkpoint_folder(file_system, job_folder, removal.path); !status) {
      report.failures.push_back(status.error());
    } else {
      report.removed.push_back(std::move(removal));
    }
  }
  return report;
}

}  // namespace rekindle
