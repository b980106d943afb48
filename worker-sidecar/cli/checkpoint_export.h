// `rekindle checkpoint export`: the tensors of one checkpoint as files that others read.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/enum_names.h"
#include "common/base/error.h"
#include "worker-sidecar/cli/command_streams.h"
#include "worker-sidecar/mindspore/export_plan.h"
#include "worker-sidecar/storage/file_system.h"

namespace rekindle::cli {

enum class ExportFormat : std::uint8_t { safetensors, mindspore };
constexpr auto enum_names(ExportFormat) {
  return std::to_array<EnumName<ExportFormat>>(
      {{ExportFormat::safetensors, "safetensors"}, {ExportFormat::mindspore, "mindspore"}});
}

struct ExportQuestion {
  std::string directory;
  // safetensors: the file to write; mindspore: a folder that is there
  std::string target;
  ExportFormat format = ExportFormat::safetensors;
  MindSporeExportOptions mindspore;
};

// Verifies the checkpoint (of a job: its newest usable one), then writes its tensors sorted by
// name. Equal tensors give equal bytes, in however many parts the checkpoint was written. Files
// appear whole or not at all and replace nothing; after an error none is left. Returns the exit
// code.
int export_checkpoint(FileSystem& file_system, const ExportQuestion& question, const std::string& nonce,
                      CommandStreams streams);

}  // namespace rekindle::cli
