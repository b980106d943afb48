// What a DIR on the command line is: a root with many jobs, the folder of one job, or one
// checkpoint.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "worker-sidecar/checkpoint/candidates.h"
#include "worker-sidecar/storage/file_system.h"

namespace rekindle::cli {

struct CheckpointPlace {
  std::string job_folder;
  // name of the one that DIR is; empty: all of the job
  std::optional<std::string> checkpoint;
};

// One place, or one for each job below a root. Error: there is nothing of ours.
Result<std::vector<CheckpointPlace>> find_places(FileSystem& file_system, const std::string& directory);

// What a job's folder holds, judged.
struct JobView {
  std::string folder;
  JobIdentity job;
  FolderScan scan;
  CandidateOrder order;
  // names in the folder that are none of ours
  std::vector<std::string> strangers;
};

std::string display_name(const JobIdentity& job);  // "team-a/digits"

// Whose folder it is comes from job.json, or from its checkpoints when that is missing (a copied
// folder).
Result<JobView> inspect_job(FileSystem& file_system, const std::string& job_folder);

// The one that `place` names, or the newest usable one of the job.
Result<std::string> pick_checkpoint(const CheckpointPlace& place, const JobView& view);

}  // namespace rekindle::cli
