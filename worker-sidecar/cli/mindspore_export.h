// A checkpoint as MindSpore's files (docs/formats/mindspore.md).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "worker-sidecar/cli/checkpoint_export.h"
#include "worker-sidecar/cli/opened_checkpoint.h"

namespace rekindle::cli {

struct ExportedFile {
  std::string path;
  std::uint64_t bytes = 0;
};

// Everything that MindSpore could not read back as it is (f8 types, [0], a name that it uses
// itself) is refused before a file is made.
Result<std::vector<ExportedFile>> export_mindspore(FileSystem& file_system, const OpenedCheckpoint& checkpoint,
                                                   const std::vector<const ManifestTensor*>& tensors,
                                                   const ExportQuestion& question, const std::string& nonce,
                                                   Progress& progress);

}  // namespace rekindle::cli
