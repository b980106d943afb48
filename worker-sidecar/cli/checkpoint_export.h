// `rekindle checkpoint export`: the tensors of one checkpoint as files that others read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/enum_names.h"
#include "common/base/error.h"
#include "worker-sidecar/cli/command_streams.h"
#include "worker-sidecar/storage/file_system.h"

namespace rekindle::cli {

enum class ExportFormat : std::uint8_t { safetensors, mindspore };
constexpr auto enum_names(ExportFormat) {
  return std::to_array<EnumName<ExportFormat>>(
      {{ExportFormat::safetensors, "safetensors"}, {ExportFormat::mindspore, "mindspore"}});
}

// How MindSpore's files are laid out and named (docs/formats/mindspore.md).
enum class ExportLayout : std::uint8_t {
  // one file with everything
  merged,
  // rank_<r>/..., as ModelCheckpoint saves them
  ranks,
  // tft_saved_checkpoints-step_<n>/rank_<r>/ttp_rank_<r>-..., as MindIO saves them
  tft,
};
constexpr auto enum_names(ExportLayout) {
  return std::to_array<EnumName<ExportLayout>>(
      {{ExportLayout::merged, "merged"}, {ExportLayout::ranks, "ranks"}, {ExportLayout::tft, "tft"}});
}

struct ExportQuestion {
  std::string directory;
  std::string target;  // safetensors: the file to write; mindspore: a folder that is there
  ExportFormat format = ExportFormat::safetensors;
  ExportLayout layout = ExportLayout::merged;
  std::string prefix;                            // empty: the job's name
  std::optional<std::uint64_t> epoch;            // when the checkpoint does not say it
  std::optional<std::uint64_t> steps_per_epoch;  // file names then have the step within its epoch
  // "NAME=DIMENSION": ranks hold equal parts of it; NAME may end in *
  std::vector<std::string> sharded;
};

// Verifies the checkpoint (of a job: its newest usable one), then writes its tensors sorted by
// name. Equal tensors give equal bytes, whoever wrote the checkpoint in however many parts. Files
// appear whole or not at all and replace nothing; after an error none is left. Returns the exit
// code.
int export_checkpoint(FileSystem& file_system, const ExportQuestion& question, const std::string& nonce,
                      CommandStreams streams);

}  // namespace rekindle::cli
