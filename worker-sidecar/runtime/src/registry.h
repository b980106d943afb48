// What the program has registered: tensors and small state, with their addresses, in order of
// registration.
//
// Threads: the training thread changes it; the library's thread reads addresses while it writes a
// checkpoint. A caller that changes something holds lock() for the change and for what has to
// change with it (the small state), and a writer holds it for the whole of its write, so that
// memory is not handed back to the program while it is being read. Reading on the training thread
// needs no lock.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "worker-sidecar/checkpoint/layout.h"
#include "worker-sidecar/runtime/src/failure.h"
#include "worker-sidecar/runtime/src/registered_memory.h"
#include "worker-sidecar/runtime/src/small_state.h"

namespace rekindle::runtime {

struct RegisteredTensor {
  TensorDescription description;
  void* data = nullptr;
  std::uint64_t bytes = 0;
  // of a strided view or of device memory; otherwise `data` is all there is to know
  std::unique_ptr<RegisteredMemory> array;
  // of an RK_ANYWHERE tensor: which value of the slot it is
  std::optional<std::size_t> captured_index;
};

// rk_register_state_callback's `load`.
struct LoadState {
  int (*function)(void* context, const void* from, std::size_t bytes) = nullptr;
  void* context = nullptr;
};

struct RegisteredState {
  StateDescription description;
  // null for a state of variable size, which has functions instead
  void* data = nullptr;
  SaveState save = {};
  LoadState load = {};
  std::size_t captured_index = 0;
};

class Registry {
 public:
  explicit Registry(std::uint32_t state_bytes_max) : state_bytes_max_(state_bytes_max) {}

  std::unique_lock<std::mutex> lock() const { return std::unique_lock(mutex_); }

  // The caller holds lock(). `slot_room` is what a slot can hold. Errors leave everything as it
  // was.
  Done add_tensor(const rk_tensor& tensor, std::uint64_t slot_room);
  Done add_state(const char* name, void* data, std::uint64_t bytes, std::uint64_t slot_room);
  Done add_state(const char* name, std::uint64_t bytes_max, SaveState save, LoadState load, std::uint64_t slot_room);
  Done add_cursor(rk_cursor* cursor, std::uint64_t slot_room);
  Done move_tensor(const char* name, void* data);
  Done remove_tensor(const char* name);

  // Without derived ones, of which nothing is kept but that their names are taken.
  const std::vector<RegisteredTensor>& tensors() const { return tensors_; }
  const std::vector<RegisteredState>& states() const { return states_; }
  // in constant time: there may be 100,000
  const RegisteredTensor* find_tensor(std::string_view name) const;

  Layout layout() const;
  std::vector<StateDescription> state_descriptions() const;
  // In order of registration, states and RK_ANYWHERE tensors together, but those that are not plain
  // memory after those that are.
  std::vector<CapturedValue> captured_values() const;

  // What has to be waited for before gradients are complete, each once.
  const std::vector<rk_memory>& devices_to_wait_for() const { return devices_; }

 private:
  // Finds by the part of a name that is at hand.
  struct NameHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view name) const { return std::hash<std::string_view>()(name); }
  };

  // One registration of either kind, to keep the order.
  struct Captured {
    bool is_state = false;
    std::string name;
    bool plain = true;
  };

  Done check_name(std::string_view name) const;
  Done check_name_is_free(std::string_view name) const;
  Done add_checked_state(RegisteredState state, std::uint64_t slot_room);
  void add_captured(Captured captured);
  void list_device(const RegisteredTensor& tensor);
  void number_tensors();
  Done check_room(std::string_view name, std::uint64_t bytes, std::uint64_t slot_room) const;
  void number_captured();

  const std::uint32_t state_bytes_max_;

  mutable std::mutex mutex_;
  // Guarded by mutex_, see above.
  std::vector<RegisteredTensor> tensors_;
  std::vector<RegisteredState> states_;
  // of tensors, by name
  std::unordered_map<std::string, std::size_t, NameHash, std::equal_to<>> places_;
  std::unordered_set<std::string, NameHash, std::equal_to<>> derived_;
  std::vector<Captured> captured_;  // plain ones first
  std::vector<rk_memory> devices_;
};

}  // namespace rekindle::runtime
