#include "worker-sidecar/cli/opened_checkpoint.h"

#include <utility>

#include "worker-sidecar/cli/checkpoint_place.h"
#include "worker-sidecar/storage/files.h"
#include "worker-sidecar/storage/piece_reader.h"
#include "worker-sidecar/storage/verifier.h"

namespace rekindle {

Result<OpenedCheckpoint> open_checkpoint(FileSystem& file_system, const std::string& directory) {
  const Result<std::vector<CheckpointPlace>> places = find_places(file_system, directory);
  if (!places) return std::unexpected(places.error());
  if (places->size() != 1) return fail(ErrorCode::invalid_input, directory + " holds several jobs; give the folder of one");
  const Result<JobView> view = look_at_job(file_system, places->front().job_folder);
  if (!view) return std::unexpected(view.error());
  const Result<std::string> name = pick_checkpoint(places->front(), *view);
  if (!name) return std::unexpected(name.error());
  Verification verification = verify_checkpoint(file_system, view->folder, *name);
  if (!verification.fine()) {
    const Finding& finding = verification.findings.front();
    return fail(ErrorCode::corrupt, *name + " is damaged: " + finding.file + ": " + finding.sentence + ". `rekindle checkpoint ls` shows others.");
  }
  return OpenedCheckpoint{join_path(view->folder, *name), *name, std::move(verification.sealed->manifest)};
}

Status read_tensor(FileSystem& file_system, const OpenedCheckpoint& checkpoint, const ManifestTensor& tensor, std::vector<char>& buffer) {
  const TensorDescription whole = whole_tensor(tensor.name, tensor.dtype, tensor.global_shape);
  const Result<RestorePlan> plan = plan_restore(Manifest{.world_size = 1, .tensors = {tensor}}, {.layout = {{whole}}});
  if (!plan) return std::unexpected(plan.error());
  buffer.resize(tensor_bytes(whole));
  const Destination destination{buffer.data(), buffer.size()};
  return read_plan_unverified(file_system, checkpoint.folder, *plan, {.tensors = {&destination, 1}, .states = {}});
}

Status read_state(FileSystem& file_system, const OpenedCheckpoint& checkpoint, const ManifestState& state, std::vector<char>& buffer) {
  const std::string path = join_path(checkpoint.folder, state.file);
  const Result<OpenFile> file = open_for_reading(file_system, path);
  if (!file) return std::unexpected(file.error());
  buffer.resize(state.bytes);
  return read_exactly(file_system, file->descriptor(), buffer.data(), buffer.size(), state.begin_byte, path);
}

}  // namespace rekindle
