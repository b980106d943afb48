#include "worker-sidecar/checkpoint/restore_plan.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "common/base/assert.h"
#include "common/base/format.h"
#include "worker-sidecar/checkpoint/coverage.h"
#include "worker-sidecar/checkpoint/cursor.h"

namespace rekindle {
namespace {

constexpr std::size_t kDifferencesShown = 8;

using TensorsByName = std::map<std::string_view, const ManifestTensor*>;

TensorsByName tensors_by_name(const Manifest& manifest) {
  TensorsByName tensors;
  for (const ManifestTensor& tensor : manifest.tensors) tensors.emplace(tensor.name, &tensor);
  return tensors;
}

std::string describe(Dtype dtype, const Extents& shape) {
  return format("{} {}", to_string(dtype), describe_shape(shape));
}

std::string describe_state_size(const std::string& name, std::uint64_t here, bool variable, std::uint64_t saved) {
  return format("state \"{}\" has {}{} bytes here and {} in the checkpoint", name, variable ? "at most " : "", here,
                saved);
}

std::optional<std::size_t> find_cursor_state(const std::vector<StateDescription>& states) {
  const auto found = std::ranges::find(states, kCursorName, &StateDescription::name);
  if (found == states.end()) return std::nullopt;
  return static_cast<std::size_t>(found - states.begin());
}

// The states of the rank in the manifest; empty when they belong to another number of ranks or were
// lost.
std::map<std::string_view, const ManifestState*> states_of(const Manifest& manifest, const RestoreTarget& target) {
  std::map<std::string_view, const ManifestState*> states;
  if (manifest.world_size != target.world_size) return states;
  if (std::ranges::find(manifest.inexact_ranks, target.rank) != manifest.inexact_ranks.end()) return states;
  for (const ManifestState& state : manifest.states) {
    if (state.rank == target.rank) states.emplace(state.name, &state);
  }
  return states;
}

std::string describe_difference(const TensorDescription& tensor, Dtype dtype, const Extents& global_shape,
                                std::string_view where) {
  return format("tensor \"{}\" is {} here and {} {}", tensor.name, describe(tensor.dtype, tensor.global_shape),
                describe(dtype, global_shape), where);
}

// `whole_job`: the layouts are those of all ranks, so that what no rank registers is gone from the
// model.
void list_tensor_differences(const Manifest& manifest, std::span<const Layout* const> layouts, bool whole_job,
                             std::vector<std::string>& differences) {
  const TensorsByName saved = tensors_by_name(manifest);
  std::map<std::string_view, const TensorDescription*> registered;
  std::vector<const TensorDescription*> in_order;
  for (const Layout* const layout : layouts) {
    for (const TensorDescription& tensor : layout->tensors) {
      const auto [known, fresh] = registered.emplace(tensor.name, &tensor);
      if (fresh) {
        in_order.push_back(&tensor);
      } else if (known->second->dtype != tensor.dtype || known->second->global_shape != tensor.global_shape) {
        differences.push_back(
            describe_difference(tensor, known->second->dtype, known->second->global_shape, "on another rank"));
      }
    }
  }
  for (const TensorDescription* const described : in_order) {
    const TensorDescription& tensor = *described;
    const auto found = saved.find(tensor.name);
    if (found == saved.end()) {
      differences.push_back(format("tensor \"{}\" is registered and not in the checkpoint", tensor.name));
    } else if (found->second->dtype != tensor.dtype || found->second->global_shape != tensor.global_shape) {
      differences.push_back(
          describe_difference(tensor, found->second->dtype, found->second->global_shape, "in the checkpoint"));
    }
  }
  if (!whole_job) return;
  for (const ManifestTensor& tensor : manifest.tensors) {
    if (!registered.contains(tensor.name))
      differences.push_back(format("tensor \"{}\" is in the checkpoint and not registered", tensor.name));
  }
}

// A box with its last dimension counted in bytes, and with one dimension at least: where all bytes
// of a tensor lie, whatever its elements are.
struct ByteBox {
  Extents offset;
  Extents shape;
};

ByteBox byte_box(Dtype dtype, Extents offset, Extents shape) {
  // packed elements are never scalars
  if (shape.empty()) return {{0}, {bytes_of_elements(dtype, 1)}};
  offset.back() = bytes_of_elements(dtype, offset.back());
  shape.back() = bytes_of_elements(dtype, shape.back());
  return {std::move(offset), std::move(shape)};
}

// Adds a dimension that is walked outside of everything so far. One that goes on where a run ends,
// or where the dimension inside it ends, makes that longer instead. `outward` has the innermost
// first.
void add_dimension(const Repeat& dimension, std::uint64_t& run_bytes, std::vector<Repeat>& outward) {
  if (dimension.count == 1) return;
  if (outward.empty()) {
    if (dimension.file_step == run_bytes && dimension.target_step == run_bytes) {
      run_bytes *= dimension.count;
      return;
    }
  } else if (Repeat& inner = outward.back(); dimension.file_step == inner.count * inner.file_step &&
                                             dimension.target_step == inner.count * inner.target_step) {
    inner.count *= dimension.count;
    return;
  }
  outward.push_back(dimension);
}

// What a piece and a registered tensor have in common. Both are dense boxes of one global tensor.
std::optional<ReadRange> find_common_part(const ManifestPiece& piece, const TensorDescription& tensor,
                                          std::size_t index) {
  const ByteBox from = byte_box(tensor.dtype, piece.offset, piece.shape);
  const ByteBox to = byte_box(tensor.dtype, tensor.offset, tensor.shape);
  ReadRange range{
      .begin_byte = piece.begin_byte, .bytes = 1, .kind = TargetKind::tensor, .index = index, .target_byte = 0};
  // of a dimension: the volume of those inside it
  Repeat step{.count = 1, .file_step = 1, .target_step = 1};
  for (std::size_t i = from.shape.size(); i-- > 0;) {
    const std::uint64_t begin = std::max(from.offset[i], to.offset[i]);
    const std::uint64_t end = std::min(from.offset[i] + from.shape[i], to.offset[i] + to.shape[i]);
    if (end <= begin) return std::nullopt;
    step.count = end - begin;
    range.begin_byte += (begin - from.offset[i]) * step.file_step;
    range.target_byte += (begin - to.offset[i]) * step.target_step;
    add_dimension(step, range.bytes, range.repeats);
    step.file_step *= from.shape[i];
    step.target_step *= to.shape[i];
  }
  std::ranges::reverse(range.repeats);
  return range;
}

}  // namespace

std::vector<std::string> list_differences(const Manifest& manifest, const RestoreTarget& target) {
  std::vector<std::string> differences;
  const Layout* const own = &target.layout;
  list_tensor_differences(manifest, {&own, 1}, !target.job_checked, differences);
  if (find_cursor_state(target.states)) {
    for (const ManifestState* const copy : find_cursor(manifest)) {
      if (copy->bytes == kCursorBytes) continue;
      differences.push_back(describe_state_size(std::string(kCursorName), kCursorBytes, false, copy->bytes));
      break;
    }
  }
  const auto saved = states_of(manifest, target);
  if (saved.empty()) return differences;
  std::map<std::string_view, const StateDescription*> registered;
  for (const StateDescription& state : target.states) {
    registered.emplace(state.name, &state);
    const auto found = saved.find(state.name);
    if (found == saved.end()) {
      differences.push_back(format("state \"{}\" is registered and not in the checkpoint", state.name));
    } else if (state.name != kCursorName &&
               (state.variable ? found->second->bytes > state.bytes : found->second->bytes != state.bytes)) {
      differences.push_back(describe_state_size(state.name, state.bytes, state.variable, found->second->bytes));
    }
  }
  for (const auto& [name, state] : saved) {
    if (!registered.contains(name))
      differences.push_back(format("state \"{}\" is in the checkpoint and not registered", name));
  }
  return differences;
}

std::vector<std::string> list_job_differences(const Manifest& manifest, std::span<const Layout* const> layouts) {
  std::vector<std::string> differences;
  list_tensor_differences(manifest, layouts, true, differences);
  return differences;
}

std::string describe_differences(const std::vector<std::string>& differences) {
  std::string text;
  for (std::size_t i = 0; i < std::min(differences.size(), kDifferencesShown); ++i)
    text += (i == 0 ? "" : "; ") + differences[i];
  if (differences.size() > kDifferencesShown) text += format("; and {} more", differences.size() - kDifferencesShown);
  return text;
}

Result<RestorePlan> plan_restore(const Manifest& manifest, const RestoreTarget& target) {
  if (const std::vector<std::string> differences = list_differences(manifest, target); !differences.empty()) {
    return fail(ErrorCode::invalid_input, format("the checkpoint of step {} does not fit what is registered: {}",
                                                 manifest.step, describe_differences(differences)));
  }

  std::map<std::string, std::vector<ReadRange>> files;
  const TensorsByName saved = tensors_by_name(manifest);
  for (std::size_t i = 0; i < target.layout.tensors.size(); ++i) {
    const TensorDescription& tensor = target.layout.tensors[i];
    for (const ManifestPiece& piece : saved.at(tensor.name)->pieces) {
      if (std::optional<ReadRange> common = find_common_part(piece, tensor, i))
        files[piece.file].push_back(*std::move(common));
    }
  }
  RestorePlan plan;
  const auto states = states_of(manifest, target);
  plan.state_bytes.assign(target.states.size(), 0);
  const auto read_state = [&](const ManifestState& state, std::size_t index) {
    const std::uint64_t target_byte = std::exchange(plan.state_bytes[index], plan.state_bytes[index] + state.bytes);
    if (state.bytes == 0) return;
    files[state.file].push_back({.begin_byte = state.begin_byte,
                                 .bytes = state.bytes,
                                 .kind = TargetKind::state,
                                 .index = index,
                                 .target_byte = target_byte});
  };
  const std::optional<std::size_t> cursor = find_cursor_state(target.states);
  for (std::size_t i = 0; i < target.states.size(); ++i) {
    if (i == cursor) continue;
    if (states.empty()) {
      plan.state_missing = true;
    } else {
      read_state(*states.at(target.states[i].name), i);
    }
  }
  if (cursor) {
    for (const ManifestState* const copy : find_cursor(manifest)) {
      read_state(*copy, *cursor);
      plan.cursor_ranks.push_back(copy->rank);
    }
    if (plan.cursor_ranks.empty()) plan.state_missing = true;
  }
  for (auto& [file, ranges] : files) {
    std::ranges::sort(ranges, {}, [](const ReadRange& range) { return std::pair(range.begin_byte, range.index); });
    plan.files.push_back({file, std::move(ranges)});
  }
  return plan;
}

}  // namespace rekindle
