#include "worker-sidecar/cli/checkpoint_export.h"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "worker-sidecar/checkpoint/names.h"
#include "worker-sidecar/cli/opened_checkpoint.h"
#include "worker-sidecar/storage/file_writer.h"

namespace rekindle {
Result<ExportReport> export_checkpoint(FileSystem& file_system, const std::string& directory, const std::string& target) {
  const Result<OpenedCheckpoint> checkpoint = open_checkpoint(file_system, directory);
  if (!checkpoint) return std::unexpected(with_context(checkpoint.error(), "nothing was exported"));
  const Manifest& manifest = checkpoint->manifest;
  std::vector<const ManifestTensor*> tensors;
  for (const ManifestTensor& tensor : manifest.tensors) tensors.push_back(&tensor);
  std::ranges::sort(tensors, {}, &ManifestTensor::name);
  std::vector<DataEntry> entries;
  for (const ManifestTensor* tensor : tensors) entries.push_back({tensor->name, tensor->dtype, tensor->global_shape});

  const std::filesystem::path path = std::filesystem::absolute(target);
  const std::string file_name = path.filename().string();
  if (!is_safe_file_name(file_name)) return fail(ErrorCode::invalid_input, "\"" + target + "\" cannot be the name of a file");
  Result<DataFileWriter> writer = DataFileWriter::create(file_system, path.parent_path().string(), file_name, entries);
  if (!writer) return std::unexpected(writer.error());
  std::vector<char> buffer;
  for (const std::size_t i : writer->layout().source) {
    if (Status status = read_tensor(file_system, *checkpoint, *tensors[i], buffer); !status) return std::unexpected(status.error());
    if (Status status = writer->append(buffer.data(), buffer.size()); !status) return std::unexpected(status.error());
  }
  const Result<WrittenDataFile> written = writer->finish();
  if (!written) return std::unexpected(written.error());
  return ExportReport{checkpoint->name, manifest.step, tensors.size(), written->bytes};
}

}  // namespace rekindle
