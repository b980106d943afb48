#include "worker-sidecar/runtime/src/registry.h"

#include <algorithm>
#include <cstddef>

#include "common/base/format.h"
#include "worker-sidecar/checkpoint/cursor.h"
#include "worker-sidecar/runtime/src/c_struct.h"
#include "worker-sidecar/runtime/src/strided_memory.h"

namespace rekindle::runtime {
namespace {

Outcome<Extents> read_extents(const std::int64_t* numbers, std::int32_t count, std::string_view tensor,
                              std::string_view field) {
  Extents extents;
  for (std::int32_t i = 0; i < count; ++i) {
    if (numbers[i] < 0) {
      return refuse(RK_ERROR_ARGUMENT,
                    format("tensor '{}': {}[{}] is {}, which is negative", tensor, field, i, numbers[i]));
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
    return refuse(RK_ERROR_ARGUMENT,
                  format("tensor '{}': dtype {} is none of rk_dtype", tensor.name, number_of(tensor.dtype)));
  }
  description.dtype = *dtype;
  if (tensor.rank < 0 || tensor.rank > RK_DIMENSIONS_MAX) {
    return refuse(RK_ERROR_ARGUMENT, format("tensor '{}' has {} dimensions; there may be 0 to {}", tensor.name,
                                            tensor.rank, RK_DIMENSIONS_MAX));
  }
  Outcome<Extents> shape = read_extents(tensor.shape, tensor.rank, tensor.name, "shape");
  if (!shape) return std::unexpected(shape.error());
  description.shape = *std::move(shape);
  if (all_zero(tensor.shard.global_shape) && all_zero(tensor.shard.offset)) {
    description.global_shape = description.shape;
    description.offset.assign(description.shape.size(), 0);
  } else {
    Outcome<Extents> global_shape =
        read_extents(tensor.shard.global_shape, tensor.rank, tensor.name, "shard.global_shape");
    if (!global_shape) return std::unexpected(global_shape.error());
    Outcome<Extents> offset = read_extents(tensor.shard.offset, tensor.rank, tensor.name, "shard.offset");
    if (!offset) return std::unexpected(offset.error());
    description.global_shape = *std::move(global_shape);
    description.offset = *std::move(offset);
  }
  const int written_in = number_of(tensor.written_in);
  if (written_in != RK_UPDATE && written_in != RK_ANYWHERE && written_in != RK_DERIVED) {
    return refuse(RK_ERROR_ARGUMENT,
                  format("tensor '{}': written_in {} is none of rk_written_in", tensor.name, written_in));
  }
  description.written_in = written_in == RK_ANYWHERE ? WrittenIn::anywhere : WrittenIn::update;
  if (Status status = check_tensor(description); !status) return refuse(RK_ERROR_ARGUMENT, status.error().message);
  return description;
}

// Null for dense memory of this process.
Outcome<std::unique_ptr<RegisteredMemory>> find_way_to(const rk_tensor& tensor, const TensorDescription& description) {
  const bool strided = !all_zero(tensor.stride);
  if (tensor.memory == nullptr) {
    if (!strided) return nullptr;
    return StridedMemory::make(description, tensor.stride, tensor.data);
  }
  if (strided) {
    return refuse(RK_ERROR_ARGUMENT, format("tensor '{}' has strides and rk_memory; views of device memory cannot be "
                                            "registered, register the array itself",
                                            tensor.name));
  }
  const Outcome<rk_memory> functions = read_struct(tensor.memory, "rk_memory");
  if (!functions) return std::unexpected(functions.error());
  if (functions->copy_out == nullptr || functions->copy_in == nullptr) {
    return refuse(RK_ERROR_ARGUMENT, format("tensor '{}': rk_memory.{} is NULL; both copy functions are needed",
                                            tensor.name, functions->copy_out == nullptr ? "copy_out" : "copy_in"));
  }
  return std::make_unique<DeviceMemory>(tensor.name, *functions, tensor.data);
}

}  // namespace

Done Registry::check_name(std::string_view name) const {
  if (name.starts_with(kReservedNames)) {
    return refuse(RK_ERROR_ARGUMENT, format("the name '{}' begins with '{}', which is the library's; use another one",
                                            name, kReservedNames));
  }
  return check_name_is_free(name);
}

Done Registry::check_name_is_free(std::string_view name) const {
  if (std::string fault = find_name_fault(name); !fault.empty()) {
    return refuse(RK_ERROR_ARGUMENT, format("the name '{}' {}", name, fault));
  }
  const bool taken = places_.contains(name) || derived_.contains(name) ||
                     std::any_of(states_.begin(), states_.end(),
                                 [&](const RegisteredState& state) { return state.description.name == name; });
  if (taken) {
    return refuse(
        RK_ERROR_ARGUMENT,
        format("the name '{}' is registered already; names are unique in a session, tensors and states together",
               name));
  }
  return {};
}

Done Registry::check_room(std::string_view name, std::uint64_t bytes, std::uint64_t slot_room) const {
  std::vector<CapturedValue> values = captured_values();
  std::uint64_t total = 0;
  for (const CapturedValue& value : values) total += value.bytes;
  // The room for names is the library's business as long as it suffices; the caller counts the
  // bytes of values.
  if (bytes > state_bytes_max_ || total > state_bytes_max_ - bytes) {
    return refuse(RK_ERROR_ARGUMENT, format("'{}' with {} bytes brings small state and RK_ANYWHERE tensors to {} "
                                            "bytes, over state_bytes_max = {}; raise "
                                            "rk_options.state_bytes_max",
                                            name, bytes, total + bytes, state_bytes_max_));
  }
  values.push_back({.name = std::string(name), .data = nullptr, .bytes = bytes});
  if (const std::uint64_t needed = SmallState::payload_bytes(values); needed > slot_room) {
    return refuse(
        RK_ERROR_ARGUMENT,
        format(
            "'{}' brings small state and RK_ANYWHERE tensors with their names to {} bytes, and a slot holds {}; raise "
            "rk_options.state_bytes_max",
            name, needed, slot_room));
  }
  return {};
}

Done Registry::add_tensor(const rk_tensor& tensor, std::uint64_t slot_room) {
  if (tensor.name == nullptr) return refuse(RK_ERROR_ARGUMENT, "rk_tensor.name is NULL");
  if (Done done = check_name(tensor.name); !done) return done;
  Outcome<TensorDescription> description = describe(tensor);
  if (!description) return std::unexpected(description.error());
  const std::uint64_t bytes = tensor_bytes(*description);
  if (tensor.data == nullptr && bytes != 0) {
    return refuse(RK_ERROR_ARGUMENT, format("tensor '{}' has {} bytes and data is NULL", tensor.name, bytes));
  }
  if (tensors_.size() >= kTensorsMax) {
    return refuse(RK_ERROR_ARGUMENT,
                  format("there are {} tensors already, which is the most one rank can register", tensors_.size()));
  }
  Outcome<std::unique_ptr<RegisteredMemory>> array = find_way_to(tensor, *description);
  if (!array) return std::unexpected(array.error());
  if (number_of(tensor.written_in) == RK_DERIVED) {
    derived_.emplace(tensor.name);
    return {};
  }
  const bool anywhere = description->written_in == WrittenIn::anywhere;
  if (anywhere) {
    if (Done done = check_room(tensor.name, bytes, slot_room); !done) return done;
  }
  const bool plain = *array == nullptr;
  tensors_.push_back({.description = *std::move(description),
                      .data = tensor.data,
                      .bytes = bytes,
                      .array = *std::move(array),
                      .captured_index = std::nullopt});
  places_.emplace(tensor.name, tensors_.size() - 1);
  if (anywhere) add_captured({.is_state = false, .name = tensor.name, .plain = plain});
  list_device(tensors_.back());
  return {};
}

Done Registry::add_state(const char* name, void* data, std::uint64_t bytes, std::uint64_t slot_room) {
  if (name == nullptr) return refuse(RK_ERROR_ARGUMENT, "rk_register_state: name is NULL");
  if (Done done = check_name(name); !done) return done;
  if (data == nullptr && bytes != 0) {
    return refuse(RK_ERROR_ARGUMENT, format("state '{}' has {} bytes and data is NULL", name, bytes));
  }
  return add_checked_state({.description = {.name = name, .bytes = bytes}, .data = data}, slot_room);
}

Done Registry::add_state(const char* name, std::uint64_t bytes_max, SaveState save, LoadState load,
                         std::uint64_t slot_room) {
  if (name == nullptr) return refuse(RK_ERROR_ARGUMENT, "rk_register_state_callback: name is NULL");
  if (Done done = check_name(name); !done) return done;
  if (save.function == nullptr || load.function == nullptr) {
    return refuse(RK_ERROR_ARGUMENT, format("state '{}': {} is NULL; both functions are needed", name,
                                            save.function == nullptr ? "save" : "load"));
  }
  return add_checked_state(
      {.description = {.name = name, .bytes = bytes_max, .variable = true}, .save = save, .load = load}, slot_room);
}

Done Registry::add_cursor(rk_cursor* cursor, std::uint64_t slot_room) {
  // What is kept of it is these two numbers as they lie there.
  static_assert(offsetof(rk_cursor, samples) == offsetof(rk_cursor, epoch) + sizeof(cursor->epoch) &&
                kCursorBytes == 2 * sizeof(cursor->epoch));
  if (const Outcome<rk_cursor> given = read_struct(cursor, "rk_cursor"); !given) return std::unexpected(given.error());
  if (Done done = check_name_is_free(kCursorName); !done)
    return refuse(RK_ERROR_ARGUMENT, "a cursor is registered already, and a session has one");
  return add_checked_state(
      {.description = {.name = std::string(kCursorName), .bytes = kCursorBytes}, .data = &cursor->epoch}, slot_room);
}

Done Registry::add_checked_state(RegisteredState state, std::uint64_t slot_room) {
  if (Done done = check_room(state.description.name, state.description.bytes, slot_room); !done) return done;
  Captured captured{.is_state = true, .name = state.description.name, .plain = state.save.function == nullptr};
  states_.push_back(std::move(state));
  add_captured(std::move(captured));
  return {};
}

void Registry::add_captured(Captured captured) {
  const auto behind_plain = std::ranges::find(captured_, false, &Captured::plain);
  captured_.insert(captured.plain ? behind_plain : captured_.end(), std::move(captured));
  number_captured();
}

void Registry::list_device(const RegisteredTensor& tensor) {
  const auto* const device = dynamic_cast<const DeviceMemory*>(tensor.array.get());
  if (device == nullptr || device->functions().wait == nullptr) return;
  const rk_memory& functions = device->functions();
  const bool listed = std::ranges::any_of(devices_, [&](const rk_memory& known) {
    return known.context == functions.context && known.wait == functions.wait;
  });
  if (!listed) devices_.push_back(functions);
}

// After one has gone.
void Registry::number_tensors() {
  places_.clear();
  devices_.clear();
  for (const RegisteredTensor& tensor : tensors_) {
    places_.emplace(tensor.description.name, places_.size());
    list_device(tensor);
  }
}

Done Registry::move_tensor(const char* name, void* data) {
  if (name == nullptr) return refuse(RK_ERROR_ARGUMENT, "rk_move: name is NULL");
  if (const auto found = places_.find(std::string_view(name)); found != places_.end()) {
    RegisteredTensor& tensor = tensors_[found->second];
    if (data == nullptr && tensor.bytes != 0) {
      return refuse(RK_ERROR_ARGUMENT, format("tensor '{}' has {} bytes and cannot move to NULL", name, tensor.bytes));
    }
    tensor.data = data;
    if (tensor.array) tensor.array->move_to(data);
    return {};
  }
  if (derived_.contains(std::string_view(name))) return {};
  return refuse(RK_ERROR_ARGUMENT, format("no tensor '{}' is registered", name));
}

Done Registry::remove_tensor(const char* name) {
  if (name == nullptr) return refuse(RK_ERROR_ARGUMENT, "rk_unregister: name is NULL");
  if (derived_.erase(name) != 0) return {};
  const auto found = places_.find(std::string_view(name));
  if (found == places_.end()) return refuse(RK_ERROR_ARGUMENT, format("no tensor '{}' is registered", name));
  std::erase_if(captured_, [&](const Captured& captured) { return !captured.is_state && captured.name == name; });
  tensors_.erase(tensors_.begin() + static_cast<std::ptrdiff_t>(found->second));
  number_tensors();
  number_captured();
  return {};
}

const RegisteredTensor* Registry::find_tensor(std::string_view name) const {
  const auto found = places_.find(name);
  return found == places_.end() ? nullptr : &tensors_[found->second];
}

Layout Registry::layout() const {
  Layout layout;
  layout.tensors.reserve(tensors_.size());
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
      const RegisteredState& state =
          *std::ranges::find(states_, captured.name,
                             [](const RegisteredState& one) -> const std::string& { return one.description.name; });
      values.push_back({.name = captured.name,
                        .data = state.data,
                        .bytes = state.description.bytes,
                        .array = nullptr,
                        .save = state.save});
    } else {
      const RegisteredTensor* const tensor = find_tensor(captured.name);
      values.push_back({.name = captured.name,
                        .data = tensor->data,
                        .bytes = tensor->bytes,
                        .array = tensor->array.get(),
                        .save = {}});
    }
  }
  return values;
}

void Registry::number_captured() {
  for (std::size_t index = 0; index < captured_.size(); ++index) {
    const std::string& name = captured_[index].name;
    if (captured_[index].is_state) {
      std::ranges::find(states_, name, [](const RegisteredState& one) -> const std::string& {
        return one.description.name;
      })->captured_index = index;
    } else {
      tensors_[places_.find(name)->second].captured_index = index;
    }
  }
}

}  // namespace rekindle::runtime
