#include "worker-sidecar/runtime/src/registry.h"

#include <algorithm>

#include "common/base/sentence.h"
#include "worker-sidecar/runtime/src/c_struct.h"

namespace rekindle {
namespace {

Outcome<Extents> read_extents(const std::int64_t* numbers, std::int32_t count, std::string_view tensor, std::string_view field) {
  Extents extents;
  for (std::int32_t i = 0; i < count; ++i) {
    if (numbers[i] < 0) {
      return refuse(RK_ERROR_ARGUMENT, sentence("tensor '{}': {}[{}] is {}, which is negative", tensor, field, i, numbers[i]));
    }
    extents.push_back(static_cast<std::uint64_t>(numbers[i]));
  }
  return extents;
}

bool all_zero(const std::int64_t* numbers) {
  return std::all_of(numbers, numbers + RK_DIMENSIONS_MAX, [](std::int64_t number) { return number == 0; });
}

Outcome<TensorDescription> describe(const rk_tensor& tensor) {
  TensorDescription description;
  description.name = tensor.name;
  const std::optional<Dtype> dtype = dtype_from_number(number_of(tensor.dtype));
  if (!dtype) {
    return refuse(RK_ERROR_ARGUMENT, sentence("tensor '{}': dtype {} is none of rk_dtype", tensor.name, number_of(tensor.dtype)));
  }
  description.dtype = *dtype;
  if (tensor.rank < 0 || tensor.rank > RK_DIMENSIONS_MAX) {
    return refuse(RK_ERROR_ARGUMENT,
                  sentence("tensor '{}' has {} dimensions; there may be 0 to {}", tensor.name, tensor.rank, RK_DIMENSIONS_MAX));
  }
  Outcome<Extents> shape = read_extents(tensor.shape, tensor.rank, tensor.name, "shape");
  if (!shape) return std::unexpected(shape.error());
  description.shape = *std::move(shape);
  if (all_zero(tensor.shard.global_shape) && all_zero(tensor.shard.offset)) {
    description.global_shape = description.shape;
    description.offset.assign(description.shape.size(), 0);
  } else {
    Outcome<Extents> global_shape = read_extents(tensor.shard.global_shape, tensor.rank, tensor.name, "shard.global_shape");
    if (!global_shape) return std::unexpected(global_shape.error());
    Outcome<Extents> offset = read_extents(tensor.shard.offset, tensor.rank, tensor.name, "shard.offset");
    if (!offset) return std::unexpected(offset.error());
    description.global_shape = *std::move(global_shape);
    description.offset = *std::move(offset);
  }
  const int written_in = number_of(tensor.written_in);
  if (written_in != RK_UPDATE && written_in != RK_ANYWHERE) {
    return refuse(RK_ERROR_ARGUMENT,
                  sentence("tensor '{}': written_in {} is none of rk_written_in", tensor.name, written_in));
  }
  description.written_in = written_in == RK_ANYWHERE ? WrittenIn::anywhere : WrittenIn::update;
  if (Status status = check_tensor(description); !status) return refuse(RK_ERROR_ARGUMENT, status.error().message);
  return description;
}

}  // namespace

Done Registry::check_name_is_free(std::string_view name) const {
  if (std::string fault = find_name_fault(name); !fault.empty()) {
    return refuse(RK_ERROR_ARGUMENT, sentence("the name '{}' {}", name, fault));
  }
  const bool taken = find_tensor(name) != nullptr ||
                     std::any_of(states_.begin(), states_.end(), [&](const RegisteredState& state) { return state.description.name == name; });
  if (taken) {
    return refuse(RK_ERROR_ARGUMENT, sentence("the name '{}' is registered already; names are unique in a session, tensors and states together", name));
  }
  return {};
}

Done Registry::check_room(std::string_view name, std::uint64_t bytes, std::uint64_t slot_room) const {
  std::vector<CapturedValue> values = captured_values();
  std::uint64_t total = 0;
  for (const CapturedValue& value : values) total += value.bytes;
  // The room for names is the library's business as long as it suffices; the caller counts the bytes of values.
  if (bytes > state_bytes_max_ || total > state_bytes_max_ - bytes) {
    return refuse(RK_ERROR_ARGUMENT, sentence("'{}' with {} bytes brings small state and RK_ANYWHERE tensors to {} bytes, over state_bytes_max = {}; raise "
                                                 "rk_options.state_bytes_max", name, bytes, total + bytes, state_bytes_max_));
  }
  values.push_back({.name = std::string(name), .data = nullptr, .bytes = bytes});
  if (const std::uint64_t needed = SmallState::payload_bytes(values); needed > slot_room) {
    return refuse(RK_ERROR_ARGUMENT, sentence("'{}' brings small state and RK_ANYWHERE tensors with their names to {} bytes, and a slot holds {}; raise "
                                                 "rk_options.state_bytes_max", name, needed, slot_room));
  }
  return {};
}

Done Registry::add_tensor(const rk_tensor& tensor, std::uint64_t slot_room) {
  if (tensor.name == nullptr) return refuse(RK_ERROR_ARGUMENT, "rk_tensor.name is NULL");
  if (Done done = check_name_is_free(tensor.name); !done) return done;
  Outcome<TensorDescription> description = describe(tensor);
  if (!description) return std::unexpected(description.error());
  const std::uint64_t bytes = tensor_bytes(*description);
  if (tensor.data == nullptr && bytes != 0) {
    return refuse(RK_ERROR_ARGUMENT, sentence("tensor '{}' has {} bytes and data is NULL", tensor.name, bytes));
  }
  if (tensors_.size() >= kTensorsMax) {
    return refuse(RK_ERROR_ARGUMENT, sentence("there are {} tensors already, which is the most one rank can register", tensors_.size()));
  }
  const bool anywhere = description->written_in == WrittenIn::anywhere;
  if (anywhere) {
    if (Done done = check_room(tensor.name, bytes, slot_room); !done) return done;
  }
  tensors_.push_back({.description = *std::move(description), .data = tensor.data, .bytes = bytes, .captured_index = std::nullopt});
  if (anywhere) captured_.push_back({.is_state = false, .name = tensor.name});
  number_captured();
  return {};
}

Done Registry::add_state(const char* name, void* data, std::uint64_t bytes, std::uint64_t slot_room) {
  if (name == nullptr) return refuse(RK_ERROR_ARGUMENT, "rk_register_state: name is NULL");
  if (Done done = check_name_is_free(name); !done) return done;
  if (data == nullptr && bytes != 0) {
    return refuse(RK_ERROR_ARGUMENT, sentence("state '{}' has {} bytes and data is NULL", name, bytes));
  }
  if (Done done = check_room(name, bytes, slot_room); !done) return done;
  states_.push_back({.description = {.name = name, .bytes = bytes}, .data = data});
  captured_.push_back({.is_state = true, .name = name});
  number_captured();
  return {};
}

Done Registry::move_tensor(const char* name, void* data) {
  if (name == nullptr) return refuse(RK_ERROR_ARGUMENT, "rk_move: name is NULL");
  for (RegisteredTensor& tensor : tensors_) {
    if (tensor.description.name != name) continue;
    if (data == nullptr && tensor.bytes != 0) {
      return refuse(RK_ERROR_ARGUMENT, sentence("tensor '{}' has {} bytes and cannot move to NULL", name, tensor.bytes));
    }
      tensor.data = data;
    return {};
  }
  return refuse(RK_ERROR_ARGUMENT, sentence("no tensor '{}' is registered", name));
}

Done Registry::remove_tensor(const char* name) {
  if (name == nullptr) return refuse(RK_ERROR_ARGUMENT, "rk_unregister: name is NULL");
  const auto found = std::find_if(tensors_.begin(), tensors_.end(),
                                  [&](const RegisteredTensor& tensor) { return tensor.description.name == name; });
  if (found == tensors_.end()) return refuse(RK_ERROR_ARGUMENT, sentence("no tensor '{}' is registered", name));
  std::erase_if(captured_, [&](const Captured& captured) { return !captured.is_state && captured.name == name; });
  tensors_.erase(found);
  number_captured();
  return {};
}

const RegisteredTensor* Registry::find_tensor(std::string_view name) const {
  const auto found = std::find_if(tensors_.begin(), tensors_.end(),
                                  [&](const RegisteredTensor& tensor) { return tensor.description.name == name; });
  return found == tensors_.end() ? nullptr : &*found;
}

Layout Registry::layout() const {
  Layout layout;
  for (const RegisteredTensor& tensor : tensors_) layout.tensors.push_back(tensor.description);
  return layout;
}

std::vector<StateDescription> Registry::state_descriptions() const {
  std::vector<StateDescription> descriptions;
  for (const RegisteredState& state : states_) descriptions.push_back(state.description);
  return descriptions;
}

std::vector<CapturedValue> Registry::captured_values() const {
  std::vector<CapturedValue> values;
  for (const Captured& captured : captured_) {
    if (captured.is_state) {
      const auto state = std::find_if(states_.begin(), states_.end(),
                                      [&](const RegisteredState& one) { return one.description.name == captured.name; });
      values.push_back({.name = captured.name, .data = state->data, .bytes = state->description.bytes});
    } else {
      const RegisteredTensor* const tensor = find_tensor(captured.name);
      values.push_back({.name = captured.name, .data = tensor->data, .bytes = tensor->bytes});
    }
  }
  return values;
}

void Registry::number_captured() {
  for (std::size_t index = 0; index < captured_.size(); ++index) {
    if (captured_[index].is_state) continue;
    const auto tensor = std::find_if(tensors_.begin(), tensors_.end(), [&](const RegisteredTensor& one) {
      return one.description.name == captured_[index].name;
    });
    tensor->captured_index = index;
  }
}

}  // namespace rekindle
