// Reads a job's folder into the input of checkpoint/candidates.h and checkpoint/retention.h.
#pragma once

#include <string>

#include "common/base/error.h"
#include "worker-sidecar/checkpoint/candidates.h"
#include "worker-sidecar/storage/file_system.h"

namespace rekindle {

// Attempts and folders with their manifests; data files are not opened. Names that are not ours are
// left out. A folder that another process removes meanwhile is left out too. Error: the job's
// folder cannot be listed.
Result<FolderScan> scan_job_folder(FileSystem& file_system, const std::string& job_folder);

}  // namespace rekindle
