// All tensors of one checkpoint as one plain safetensors file.
#pragma once

#include <string>

#include "common/base/error.h"
#include "worker-sidecar/storage/file_system.h"

namespace rekindle {

struct ExportReport {
  std::string checkpoint;
  std::uint64_t step = 0;
  std::size_t tensors = 0;
  std::uint64_t bytes = 0;
};

// Verifies the checkpoint that `directory` is (or the newest usable one of the job whose folder it is) and writes its tensors, whole and sorted by name, to
// `target`, which must not exist. Equal tensors give equal bytes, whoever wrote the checkpoint in however many parts. Errors leave no file.
Result<ExportReport> export_checkpoint(FileSystem& file_system, const std::string& directory, const std::string& target);

}  // namespace rekindle
