// Registered memory that is reached otherwise than through its address, and may move.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "worker-sidecar/runtime/include/rekindle.h"
#include "worker-sidecar/storage/array_memory.h"

namespace rekindle::runtime {

class RegisteredMemory : public ArrayMemory {
 public:
  virtual void move_to(void* data) = 0;
};

// Memory of a device: dense, and reached through the functions that the program gave (rk_memory in
// rekindle.h).
class DeviceMemory final : public RegisteredMemory {
 public:
  DeviceMemory(std::string tensor, const rk_memory& functions, void* data)
      : tensor_(std::move(tensor)), functions_(functions), data_(static_cast<std::byte*>(data)) {}

  const rk_memory& functions() const { return functions_; }
  void move_to(void* data) override { data_ = static_cast<std::byte*>(data); }

  Status copy_out(void* to, std::uint64_t begin_byte, std::size_t bytes) const override;
  Status copy_in(std::uint64_t begin_byte, const void* from, std::size_t bytes) const override;
  // A driver's call with its waits takes some 10 microseconds; copies run at some 10 GB/s.
  std::size_t bytes_worth_a_call() const override { return 64u << 10; }

 private:
  const std::string tensor_;  // for messages
  const rk_memory functions_;
  std::byte* data_;
};

}  // namespace rekindle::runtime
