#include "worker-sidecar/runtime/src/checkpoint_loader.h"

#include <cstring>
#include <utility>

#include "common/base/format.h"
#include "worker-sidecar/checkpoint/cursor.h"
#include "worker-sidecar/checkpoint/restore_plan.h"
#include "worker-sidecar/storage/publisher.h"

namespace rekindle::runtime {
namespace {

bool is_cursor(const RegisteredState& state) { return state.description.name == kCursorName; }

bool is_held(const RegisteredState& state) { return is_cursor(state) || state.description.variable; }

bool is_saved(const RestorePlan& plan, const RegisteredState& state) {
  return is_cursor(state) ? !plan.cursor_ranks.empty() : !plan.state_missing;
}

// Every rank's copy has been read; what the program gets is the one that all of them are.
Status settle_cursor(std::vector<HeldState>& held, const Registry& registry, const std::vector<std::uint32_t>& ranks) {
  for (HeldState& value : held) {
    if (!is_cursor(registry.states()[value.index])) continue;
    const Result<Cursor> agreed = agree_on_cursor({value.bytes.data(), value.bytes.size()}, ranks);
    if (!agreed) return std::unexpected(agreed.error());
    value.bytes.resize(kCursorBytes);
  }
  return {};
}

Loading failed(const Error& error) { return {.result = refuse(error), .code = error.code}; }

}  // namespace

Loading load_checkpoint(FileSystem& file_system, const CheckpointPlace& place, const RankPlace& rank,
                        const Registry& registry) {
  const Result<SealedManifest> sealed = read_manifest(file_system, place.job_folder, place.path);
  if (!sealed) return failed(as_damage(sealed.error()));
  if (!place.manifest_hash.empty() && sealed->hash != place.manifest_hash) {
    return failed({ErrorCode::corrupt, format("the manifest of {} has hash {}, and {} was to be restored", place.path,
                                              sealed->hash, place.manifest_hash)});
  }
  const RestoreTarget target{.rank = rank.rank,
                             .world_size = rank.world_size,
                             .layout = registry.layout(),
                             .states = registry.state_descriptions(),
                             .job_checked = rank.job_checked};
  const Result<RestorePlan> plan = plan_restore(sealed->manifest, target);
  if (!plan) {
    return {.result = refuse(RK_ERROR_MISMATCH, format("checkpoint {} does not fit what is registered: {}", place.path,
                                                       plan.error().message)),
            .code = ErrorCode::invalid_input};
  }
  std::vector<Destination> tensors;
  for (const RegisteredTensor& tensor : registry.tensors())
    tensors.push_back({.data = tensor.data, .bytes = tensor.bytes, .array = tensor.array.get()});
  Loading loading{.result = {}, .state_missing = plan->state_missing, .memory_touched = true, .held = {}};
  std::vector<Destination> states;
  for (std::size_t i = 0; i < registry.states().size(); ++i) {
    const RegisteredState& state = registry.states()[i];
    if (!is_held(state) || !is_saved(*plan, state)) {
      states.push_back({.data = state.data, .bytes = plan->state_bytes[i]});
      continue;
    }
    HeldState& held =
        loading.held.emplace_back(HeldState{.index = i, .bytes = std::vector<char>(plan->state_bytes[i])});
    states.push_back({.data = held.bytes.data(), .bytes = held.bytes.size()});
  }
  const ReadOptions options{.ranks_here = rank.ranks_here, .report = &loading.read};
  const Status read = read_plan(file_system, format("{}/{}", place.job_folder, place.path), sealed->manifest, *plan,
                                {.tensors = tensors, .states = states}, {}, options);
  const Status agreed = read ? settle_cursor(loading.held, registry, plan->cursor_ranks) : read;
  if (!agreed) {
    const Error error = as_damage(with_context(agreed.error(), format("checkpoint {}", place.path)));
    loading.result = refuse(error);
    loading.code = error.code;
  }
  return loading;
}

Loading load_patiently(FileSystem& file_system, const CheckpointPlace& place, const RankPlace& rank,
                       const Registry& registry, RestoreTries tries, AfterFailure& then) {
  for (;;) {
    Loading loading = load_checkpoint(file_system, place, rank, registry);
    if (loading.result) return loading;
    then = tries.after(loading.code);
    if (then != AfterFailure::try_again) return loading;
  }
}

Done hand_over(const std::vector<HeldState>& held, const Registry& registry) {
  for (const HeldState& value : held) {
    const RegisteredState& state = registry.states()[value.index];
    if (state.load.function == nullptr) {
      std::memcpy(state.data, value.bytes.data(), value.bytes.size());
    } else if (const int answer = state.load.function(state.load.context, value.bytes.data(), value.bytes.size());
               answer != 0) {
      return refuse(RK_ERROR_MISMATCH,
                    format("the load function of state '{}' returned {} for the {} bytes that were saved",
                           state.description.name, answer, value.bytes.size()));
    }
  }
  return {};
}

}  // namespace rekindle::runtime
