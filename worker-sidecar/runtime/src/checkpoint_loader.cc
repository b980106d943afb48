#include "worker-sidecar/runtime/src/checkpoint_loader.h"

#include <utility>
#include <vector>

#include <poll.h>

#include "common/base/sentence.h"
#include "worker-sidecar/checkpoint/restore_plan.h"
#include "worker-sidecar/storage/publisher.h"

namespace rekindle {
namespace {

// A network file system may remember for some seconds that a name was not there (P17).
constexpr int kLooksMax = 50;
constexpr int kMillisecondsBetweenLooks = 100;

Result<SealedManifest> read_manifest_patiently(FileSystem& file_system, const CheckpointPlace& place) {
  for (int look = 1;; ++look) {
    Result<SealedManifest> sealed = read_manifest(file_system, place.job_folder, place.path);
    if (sealed || sealed.error().code != ErrorCode::not_found || look == kLooksMax) return sealed;
    ::poll(nullptr, 0, kMillisecondsBetweenLooks);
  }
}

}  // namespace

Loading load_checkpoint(FileSystem& file_system, const CheckpointPlace& place, const RankPlace& rank, const Registry& registry) {
  const Result<SealedManifest> sealed = read_manifest_patiently(file_system, place);
  if (!sealed) return {.result = refuse(sealed.error())};
  if (!place.manifest_hash.empty() && sealed->hash != place.manifest_hash) {
    return {.result = refuse(RK_ERROR_CORRUPT, sentence("the manifest of {} has hash {}, and {} was to be restored", place.path, sealed->hash,
                                                           place.manifest_hash))};
  }
  const RestoreTarget target{.rank = rank.rank, .world_size = rank.world_size, .layout = registry.layout(), .states = registry.state_descriptions()};
  const Result<RestorePlan> plan = plan_restore(sealed->manifest, target);
  if (!plan) {
    return {.result = refuse(RK_ERROR_MISMATCH, sentence("checkpoint {} does not fit what is registered: {}", place.path, plan.error().message))};
  }
  std::vector<Destination> tensors;
  for (const RegisteredTensor& tensor : registry.tensors()) tensors.push_back({.data = tensor.data, .bytes = tensor.bytes});
  std::vector<Destination> states;
  for (const RegisteredState& state : registry.states()) states.push_back({.data = state.data, .bytes = state.description.bytes});
  Loading loading{.state_missing = plan->state_missing, .memory_touched = true};
  const Status read = read_plan(file_system, place.job_folder + "/" + place.path, sealed->manifest, *plan, {.tensors = tensors, .states = states}, {},
                                {.ranks_here = rank.ranks_here, .report = &loading.read});
  if (!read) loading.result = refuse(with_context(read.error(), sentence("checkpoint {}", place.path)));
  return loading;
}

}  // namespace rekindle
