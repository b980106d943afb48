#include "worker-sidecar/cli/checkpoint_export.h"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "worker-sidecar/checkpoint/names.h"
#include "worker-sidecar/cli/checkpoint_place.h"
#include "worker-sidecar/storage/file_writer.h"
#include "worker-sidecar/storage/files.h"
#include "worker-sidecar/storage/piece_reader.h"
#include "worker-sidecar/storage/verifier.h"

namespace rekindle {
namespace {

// One whole tensor into `buffer`.
Status read_tensor(FileSystem& file_system, const std::string& folder, const ManifestTensor& tensor, std::vector<char>& buffer) {
  const TensorDescription whole = whole_tensor(tensor.name, tensor.dtype, tensor.global_shape);
  const Result<RestorePlan> plan = plan_restore(Manifest{.world_size = 1, .tensors = {tensor}}, {.layout = {{whole}}});
  if (!plan) return std::unexpected(plan.error());
  buffer.resize(tensor_bytes(whole));
  const Destination destination{buffer.data(), buffer.size()};
  return read_plan_unverified(file_system, folder, *plan, {.tensors = {&destination, 1}, .states = {}});
}

}  // namespace

Result<ExportReport> export_checkpoint(FileSystem& file_system, const std::string& directory, const std::string& target) {
  const Result<std::vector<CheckpointPlace>> places = find_places(file_system, directory);
  if (!places) return std::unexpected(places.error());
  if (places->size() != 1) return fail(ErrorCode::invalid_input, directory + " holds several jobs; give the folder of one");
  const Result<JobView> view = look_at_job(file_system, places->front().job_folder);
  if (!view) return std::unexpected(view.error());
  const Result<std::string> name = pick_checkpoint(places->front(), *view);
  if (!name) return std::unexpected(name.error());

  const Verification verification = verify_checkpoint(file_system, view->folder, *name);
  if (!verification.fine()) {
    const Finding& finding = verification.findings.front();
    return fail(ErrorCode::corrupt, *name + " is damaged and was not exported: " + finding.file + ": " + finding.sentence +
                                        ". `rekindle checkpoint ls` shows others.");
  }
  const Manifest& manifest = verification.sealed->manifest;
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
  const std::string folder = join_path(view->folder, *name);
  std::vector<char> buffer;
  for (const std::size_t i : writer->layout().source) {
    if (Status status = read_tensor(file_system, folder, *tensors[i], buffer); !status) return std::unexpected(status.error());
    if (Status status = writer->append(buffer.data(), buffer.size()); !status) return std::unexpected(status.error());
  }
  const Result<WrittenDataFile> written = writer->finish();
  if (!written) return std::unexpected(written.error());
  return ExportReport{*name, manifest.step, tensors.size(), written->bytes};
}

}  // namespace rekindle
