// What a sidecar process leaves in the run folder for the one that comes after it: the hash of what
// all ranks of the job hold, in `job-layout`.
#pragma once

#include <optional>
#include <string>

#include "common/base/error.h"
#include "worker-sidecar/coordination/event.h"
#include "worker-sidecar/coordination/output.h"

namespace rekindle::sidecar {

// Both never wait, whatever other processes of the pod have put there: the folder is theirs as
// well.

// Replaces what was there. A memory volume that is full costs the memory, not the sidecar.
Status remember_job(const std::string& run_folder, const RememberJob& job);

// Nothing when there is none; an error when it is not a file that this sidecar made, or does not
// read like one.
Result<std::optional<JobRemembered>> remembered_job(const std::string& run_folder);

}  // namespace rekindle::sidecar
