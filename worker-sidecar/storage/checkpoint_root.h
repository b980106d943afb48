// The job's folder below the root: made or found, shared by group, owned by one job, on storage
// that can keep our promises.
#pragma once

#include <string>

#include "common/base/error.h"
#include "worker-sidecar/checkpoint/manifest.h"
#include "worker-sidecar/storage/file_system.h"

namespace rekindle {

struct CheckpointRootOptions {
  std::string root;   // REKINDLE_CHECKPOINT_DIR
  JobIdentity job;    // the uid may be empty
  std::string nonce;  // random, is_nonce; names temporary files
  // for `rekindle run` on a laptop; in a pod a missing root is a missing mount
  bool create_root = false;
};

struct JobFolder {
  std::string path;  // <root>/<namespace>.<job>
  bool created = false;
  // it belongs to the shared group 64532
  bool shared = false;
};

// Opens or creates the job's folder with `attempts/` and `job.json` in it, then probes it. Errors,
// each with a message that says what to change: root missing, not a folder, read-only, full, no
// permission; the folder belongs to another job (both named); storage that cannot create or link
// exclusively (refused). Safe when several processes of the job do it at once.
Result<JobFolder> open_job_folder(FileSystem& file_system, const CheckpointRootOptions& options);

// Whose folder it is: namespace and name from job.json. not_found when it has none.
Result<JobIdentity> read_job_file(FileSystem& file_system, const std::string& job_folder);

// Writes, links, syncs, reads back and removes a small file in `folder`, and checks that a second
// exclusive create and a second link fail.
Status probe_storage(FileSystem& file_system, const std::string& folder, const std::string& nonce);

}  // namespace rekindle
