// A verb that takes many DIRs, each a root, a job or one checkpoint.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "worker-sidecar/cli/checkpoint_place.h"
#include "worker-sidecar/cli/command_streams.h"

namespace rekindle::cli {

// Calls use(place, view), which returns an exit code, for every place of every directory; what
// cannot be inspected is reported, and the rest goes on. Returns the largest exit code.
template <typename Use>
int for_each_place(FileSystem& file_system, const std::vector<std::string>& directories, CommandStreams streams,
                   Use use) {
  int code = kExitOk;
  for (const std::string& directory : directories) {
    const Result<std::vector<CheckpointPlace>> places = find_places(file_system, directory);
    if (!places) {
      code = std::max(code, report(streams, places.error()));
      continue;
    }
    for (const CheckpointPlace& place : *places) {
      const Result<JobView> view = inspect_job(file_system, place.job_folder);
      code = std::max(code, view ? use(place, *view) : report(streams, view.error()));
    }
  }
  return code;
}

}  // namespace rekindle::cli
