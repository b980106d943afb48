// One checkpoint whose every byte has been verified, ready to be read tensor by tensor.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "worker-sidecar/checkpoint/manifest.h"
#include "worker-sidecar/checkpoint/tensor_box.h"
#include "worker-sidecar/cli/progress.h"
#include "worker-sidecar/storage/file_system.h"

namespace rekindle::cli {

struct OpenedCheckpoint {
  std::string folder;  // path
  std::string name;
  Manifest manifest;
};

// The one that `directory` is, or the newest usable one of the job whose folder it is. Errors: not
// found, several jobs, damaged (with what is damaged).
Result<OpenedCheckpoint> open_checkpoint(FileSystem& file_system, const std::string& directory, Progress& progress);

// The box cut into boxes of some megabytes, in row-major order: end to end their bytes are the
// box's. None for an empty box.
std::vector<TensorBox> blocks_of(const ManifestTensor& tensor, const TensorBox& box);

// A box, or a whole state, into `buffer`.
Status read_box(FileSystem& file_system, const OpenedCheckpoint& checkpoint, const ManifestTensor& tensor,
                const TensorBox& box, std::vector<char>& buffer);
Status read_state(FileSystem& file_system, const OpenedCheckpoint& checkpoint, const ManifestState& state,
                  std::vector<char>& buffer);

// A box of any size in portions of some megabytes.
Status stream_box(FileSystem& file_system, const OpenedCheckpoint& checkpoint, const ManifestTensor& tensor,
                  const TensorBox& box, const std::function<Status(const char*, std::size_t)>& take);

}  // namespace rekindle::cli
