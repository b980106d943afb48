#include "worker-sidecar/runtime/src/rollback.h"

#include <algorithm>
#include <cstring>

#include "common/base/format.h"

namespace rekindle::runtime {
namespace {

Done put_tensor(const RegisteredTensor& tensor, const std::byte* captured) {
  const std::string& name = tensor.description.name;
  if (captured == nullptr) {
    return refuse(RK_ERROR_STATE, format("tensor '{}', which changes anywhere in a step, could not be copied when "
                                         "this step was committed, so it cannot be put back; "
                                         "start the process again",
                                         name));
  }
  if (tensor.bytes == 0) return {};
  if (!tensor.array) {
    std::memcpy(tensor.data, captured, tensor.bytes);
    return {};
  }
  if (const Status copied = tensor.array->copy_in(0, captured, tensor.bytes); !copied) {
    return refuse(RK_ERROR_STATE, format("tensor '{}' cannot be put back: {}", name, copied.error().message));
  }
  return {};
}

}  // namespace

Outcome<Rollback> roll_back(const Registry& registry, const SmallState& small_state, std::uint8_t slot) {
  for (const RegisteredTensor& tensor : registry.tensors()) {
    if (!tensor.captured_index) continue;
    if (Done done = put_tensor(tensor, small_state.value(slot, *tensor.captured_index)); !done)
      return std::unexpected(done.error());
  }
  const auto is_missing = [&](const RegisteredState& state) {
    return small_state.value(slot, state.captured_index) == nullptr;
  };
  if (std::ranges::any_of(registry.states(), is_missing)) return Rollback{.state_missing = true};
  for (const RegisteredState& state : registry.states()) {
    const std::byte* const captured = small_state.value(slot, state.captured_index);
    const std::uint64_t bytes = small_state.value_bytes(slot, state.captured_index);
    if (state.load.function == nullptr) {
      if (bytes != 0) std::memcpy(state.data, captured, bytes);
    } else if (const int answer = state.load.function(state.load.context, captured, bytes); answer != 0) {
      return refuse(RK_ERROR_MISMATCH,
                    format("the load function of state '{}' returned {} for the {} bytes that were saved",
                           state.description.name, answer, bytes));
    }
  }
  return Rollback{};
}

}  // namespace rekindle::runtime
