// One checkpoint whose every byte has been verified, ready to be read tensor by tensor.
#pragma once

#include <string>
#include <vector>

#include "common/base/error.h"
#include "worker-sidecar/checkpoint/manifest.h"
#include "worker-sidecar/storage/file_system.h"

namespace rekindle {

struct OpenedCheckpoint {
  std::string folder;  // path
  std::string name;
  Manifest manifest;
};

// The one that `directory` is, or the newest usable one of the job whose folder it is. Errors: not found, several jobs, damaged (with what is damaged).
Result<OpenedCheckpoint> open_checkpoint(FileSystem& file_system, const std::string& directory);

// One whole tensor, or one state, into `buffer`.
Status read_tensor(FileSystem& file_system, const OpenedCheckpoint& checkpoint, const ManifestTensor& tensor, std::vector<char>& buffer);
Status read_state(FileSystem& file_system, const OpenedCheckpoint& checkpoint, const ManifestState& state, std::vector<char>& buffer);

}  // namespace rekindle
