#include "worker-sidecar/cli/opened_checkpoint.h"

#include <algorithm>
#include <utility>

#include "common/base/format.h"
#include "worker-sidecar/checkpoint/coverage.h"
#include "worker-sidecar/cli/checkpoint_place.h"
#include "worker-sidecar/storage/files.h"
#include "worker-sidecar/storage/piece_reader.h"
#include "worker-sidecar/storage/verifier.h"

namespace rekindle::cli {
namespace {

constexpr std::uint64_t kBlockBytes = 16u << 20;

// Cuts along `dimension` into slabs that fit, or, where one element of it is too large, along the
// next.
void cut_into_blocks(const ManifestTensor& tensor, const TensorBox& box, std::size_t dimension,
                     std::vector<TensorBox>& blocks) {
  const std::uint64_t bytes = box_bytes(tensor, box);
  if (bytes <= kBlockBytes || dimension == box.shape.size()) {
    blocks.push_back(box);
    return;
  }
  const std::uint64_t extent = box.shape[dimension];
  const std::uint64_t step = dimension + 1 == box.shape.size() ? packed_elements(tensor.dtype) : 1;
  const std::uint64_t slab = step * std::max<std::uint64_t>(1, kBlockBytes / (bytes / (extent / step)));
  for (std::uint64_t begin = 0; begin < extent; begin += slab) {
    TensorBox part = box;
    part.offset[dimension] += begin;
    part.shape[dimension] = std::min(slab, extent - begin);
    cut_into_blocks(tensor, part, dimension + 1, blocks);
  }
}

}  // namespace

Result<OpenedCheckpoint> open_checkpoint(FileSystem& file_system, const std::string& directory, Progress& progress) {
  const Result<std::vector<CheckpointPlace>> places = find_places(file_system, directory);
  if (!places) return std::unexpected(places.error());
  if (places->size() != 1)
    return fail(ErrorCode::invalid_input, directory + " holds several jobs; give the folder of one");
  const Result<JobView> view = inspect_job(file_system, places->front().job_folder);
  if (!view) return std::unexpected(view.error());
  const Result<std::string> name = pick_checkpoint(places->front(), *view);
  if (!name) return std::unexpected(name.error());
  progress.begin("verifying " + *name);
  Verification verification =
      verify_checkpoint(file_system, view->folder, *name, std::nullopt,
                        [&](std::uint64_t done, std::uint64_t all) { progress.report(done, all); });
  if (!verification.fine()) {
    const Finding& finding = verification.findings.front();
    return fail(ErrorCode::corrupt, format("{} is damaged: {}: {}. `rekindle checkpoint ls` shows others.", *name,
                                           finding.file, finding.message));
  }
  return OpenedCheckpoint{join_path(view->folder, *name), *name, std::move(verification.sealed->manifest)};
}

std::vector<TensorBox> blocks_of(const ManifestTensor& tensor, const TensorBox& box) {
  std::vector<TensorBox> blocks;
  if (box_bytes(tensor, box) > 0) cut_into_blocks(tensor, box, 0, blocks);
  return blocks;
}

Status read_box(FileSystem& file_system, const OpenedCheckpoint& checkpoint, const ManifestTensor& tensor,
                const TensorBox& box, std::vector<char>& buffer) {
  const TensorDescription part{.name = tensor.name,
                               .dtype = tensor.dtype,
                               .shape = box.shape,
                               .global_shape = tensor.global_shape,
                               .offset = box.offset};
  const Result<RestorePlan> plan = plan_restore(Manifest{.world_size = 1, .tensors = {tensor}}, {.layout = {{part}}});
  if (!plan) return std::unexpected(plan.error());
  buffer.resize(tensor_bytes(part));
  const Destination destination{buffer.data(), buffer.size()};
  return read_plan_unverified(file_system, checkpoint.folder, *plan, {.tensors = {&destination, 1}, .states = {}});
}

Status read_state(FileSystem& file_system, const OpenedCheckpoint& checkpoint, const ManifestState& state,
                  std::vector<char>& buffer) {
  const std::string path = join_path(checkpoint.folder, state.file);
  const Result<OpenFile> file = open_for_reading(file_system, path);
  if (!file) return std::unexpected(file.error());
  buffer.resize(state.bytes);
  return read_exactly(file_system, file->descriptor(), buffer.data(), buffer.size(), state.begin_byte, path);
}

Status stream_box(FileSystem& file_system, const OpenedCheckpoint& checkpoint, const ManifestTensor& tensor,
                  const TensorBox& box, const std::function<Status(const char*, std::size_t)>& take) {
  std::vector<char> buffer;
  for (const TensorBox& block : blocks_of(tensor, box)) {
    if (Status status = read_box(file_system, checkpoint, tensor, block, buffer); !status) return status;
    if (Status status = take(buffer.data(), buffer.size()); !status) return status;
  }
  return {};
}

}  // namespace rekindle::cli
