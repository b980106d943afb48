// What a sidecar process leaves in the run folder for the one that comes after it: the hash of what
// all ranks of the job hold, in `job-layout`.
#pragma once

#include <optional>
#include <string>

#include "worker-sidecar/coordination/event.h"
#include "worker-sidecar/coordination/output.h"

namespace rekindle::sidecar {

// Replaces what was there. A memory volume that is full costs the memory, not the sidecar.
void remember_job(const std::string& run_folder, const RememberJob& job);

// Nothing when there is none, or it does not read like one.
std::optional<JobRemembered> remembered_job(const std::string& run_folder);

}  // namespace rekindle::sidecar
