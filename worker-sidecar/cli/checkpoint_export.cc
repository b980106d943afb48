#include "worker-sidecar/cli/checkpoint_export.h"

#include <algorithm>
#include <filesystem>
#include <ostream>
#include <utility>

#include "common/base/json_fields.h"
#include "worker-sidecar/checkpoint/safetensors.h"
#include "worker-sidecar/cli/mindspore_export.h"
#include "worker-sidecar/cli/new_file.h"
#include "worker-sidecar/cli/opened_checkpoint.h"
#include "worker-sidecar/cli/table.h"

namespace rekindle::cli {
namespace {

std::vector<const ManifestTensor*> tensors_by_name(const Manifest& manifest) {
  std::vector<const ManifestTensor*> tensors;
  for (const ManifestTensor& tensor : manifest.tensors) tensors.push_back(&tensor);
  std::ranges::sort(tensors, {}, &ManifestTensor::name);
  return tensors;
}

Result<ExportedFile> export_safetensors(FileSystem& file_system, const OpenedCheckpoint& checkpoint,
                                        const ExportQuestion& question, const std::string& nonce, Progress& progress) {
  const std::vector<const ManifestTensor*> tensors = tensors_by_name(checkpoint.manifest);
  std::vector<DataEntry> entries;
  for (const ManifestTensor* tensor : tensors) entries.push_back({tensor->name, tensor->dtype, tensor->global_shape});
  const Result<DataFileLayout> layout = lay_out_data_file(entries);
  if (!layout) return std::unexpected(layout.error());
  const std::filesystem::path path = std::filesystem::absolute(question.target);
  Result<NewFile> file =
      NewFile::create(file_system, path.parent_path().string(), path.filename().string(), layout->file_bytes, nonce);
  if (!file) return std::unexpected(file.error());
  if (Status status = file->append(layout->header.data(), layout->header.size()); !status)
    return std::unexpected(status.error());
  std::uint64_t done = layout->header.size();
  for (const std::size_t i : layout->source) {
    const Status status = stream_box(file_system, checkpoint, *tensors[i], whole_box(*tensors[i]),
                                     [&](const char* data, std::size_t bytes) {
                                       progress.report(done += bytes, layout->file_bytes);
                                       return file->append(data, bytes);
                                     });
    if (!status) return std::unexpected(status.error());
  }
  if (const Result<std::string> synced = file->sync(); !synced) return std::unexpected(synced.error());
  if (Status status = file->publish(); !status) return std::unexpected(status.error());
  return ExportedFile{question.target, layout->file_bytes};
}

Result<std::vector<ExportedFile>> export_files(FileSystem& file_system, const OpenedCheckpoint& checkpoint,
                                               const ExportQuestion& question, const std::string& nonce,
                                               Progress& progress) {
  progress.begin("exporting " + checkpoint.name);
  if (question.format == ExportFormat::mindspore) {
    return export_mindspore(file_system, checkpoint, tensors_by_name(checkpoint.manifest), question, nonce, progress);
  }
  Result<ExportedFile> file = export_safetensors(file_system, checkpoint, question, nonce, progress);
  if (!file) return std::unexpected(file.error());
  return std::vector<ExportedFile>{std::move(*file)};
}

}  // namespace

int export_checkpoint(FileSystem& file_system, const ExportQuestion& question, const std::string& nonce,
                      CommandStreams streams) {
  const Result<OpenedCheckpoint> checkpoint = open_checkpoint(file_system, question.directory, streams.progress);
  if (!checkpoint) return report(streams, with_context(checkpoint.error(), "nothing was exported"));
  const Result<std::vector<ExportedFile>> files =
      export_files(file_system, *checkpoint, question, nonce, streams.progress);
  if (!files) return report(streams, with_context(files.error(), "nothing was exported"));
  std::uint64_t bytes = 0;
  Json paths = Json::array();
  for (const ExportedFile& file : *files) {
    bytes += file.bytes;
    paths.push_back(file.path);
  }
  const Manifest& manifest = checkpoint->manifest;
  if (streams.json) {
    streams.out << dump_json({{"checkpoint", checkpoint->name},
                              {"step", manifest.step},
                              {"tensors", manifest.tensors.size()},
                              {"bytes", bytes},
                              {"files", std::move(paths)}})
                << '\n';
    return kExitOk;
  }
  streams.out << printable(checkpoint->name) << ": " << manifest.tensors.size() << " tensors of step " << manifest.step
              << ", " << human_bytes(bytes) << " in\n";
  for (const ExportedFile& file : *files) streams.out << "  " << printable(file.path) << '\n';
  return kExitOk;
}

}  // namespace rekindle::cli
