// A device for tests: its memory is at addresses that this process cannot read, so whoever uses
// them as pointers crashes. Work that is enqueued changes the memory when somebody waits for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "worker-sidecar/runtime/include/rekindle.h"

namespace rekindle::runtime::testing {

class FakeDevice {
 public:
  explicit FakeDevice(std::size_t bytes) : bytes_(bytes, '\0') {}

  void* at(std::size_t offset) const { return reinterpret_cast<void*>(kBase + offset); }
  std::string& bytes() { return bytes_; }
  void enqueue(std::function<void(std::string&)> work) { queue_.push_back(std::move(work)); }
  bool idle() const { return queue_.empty(); }

  rk_memory functions() {
    return {.struct_size = sizeof(rk_memory),
            .context = this,
            .copy_out = copy_out,
            .copy_in = copy_in,
            .wait = wait,
            .reserved = {}};
  }

  int copies_out = 0;
  int waits = 0;
  int copy_answer = 0;  // other than 0: copies fail
  int wait_answer = 0;

 private:
  static constexpr std::uintptr_t kBase = 0x100;  // in the first page, which is never mapped

  void finish() {
    for (const auto& work : queue_) work(bytes_);
    queue_.clear();
  }
  bool is_inside(const void* address, std::size_t bytes) const {
    const auto offset = reinterpret_cast<std::uintptr_t>(address) - kBase;
    return offset <= bytes_.size() && bytes <= bytes_.size() - offset;
  }
  char* place(const void* address) { return bytes_.data() + (reinterpret_cast<std::uintptr_t>(address) - kBase); }

  static int copy_out(void* context, void* to_host, const void* from, std::size_t bytes) {
    auto& device = *static_cast<FakeDevice*>(context);
    ++device.copies_out;
    if (device.copy_answer != 0 || !device.is_inside(from, bytes))
      return device.copy_answer != 0 ? device.copy_answer : 1;
    std::memcpy(to_host, device.place(from), bytes);
    return 0;
  }
  static int copy_in(void* context, void* to, const void* from_host, std::size_t bytes) {
    auto& device = *static_cast<FakeDevice*>(context);
    if (device.copy_answer != 0 || !device.is_inside(to, bytes))
      return device.copy_answer != 0 ? device.copy_answer : 1;
    device.finish();
    std::memcpy(device.place(to), from_host, bytes);
    return 0;
  }
  static int wait(void* context) {
    auto& device = *static_cast<FakeDevice*>(context);
    ++device.waits;
    device.finish();
    return device.wait_answer;
  }

  std::string bytes_;
  std::vector<std::function<void(std::string&)>> queue_;
};

// A state of variable size, as a program keeps one.
struct VariableState {
  std::string value;
  std::string loaded = "never loaded";
  std::int64_t save_answer = 0;  // negative: the answer of save; beyond the room: a lie
  int load_answer = 0;

  static std::int64_t save(void* context, void* to, std::size_t room) {
    const auto& state = *static_cast<VariableState*>(context);
    if (state.save_answer != 0) return state.save_answer;
    if (state.value.size() > room) return -1;
    std::memcpy(to, state.value.data(), state.value.size());
    return static_cast<std::int64_t>(state.value.size());
  }
  static int load(void* context, const void* from, std::size_t bytes) {
    auto& state = *static_cast<VariableState*>(context);
    state.loaded.assign(static_cast<const char*>(from), bytes);
    return state.load_answer;
  }
};

}  // namespace rekindle::runtime::testing
