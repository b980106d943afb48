// An array whose calls are counted and cost as much as a device's; its memory is a vector that the
// test looks at.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "worker-sidecar/storage/array_memory.h"

namespace rekindle {

class CountedArray final : public ArrayMemory {
 public:
  explicit CountedArray(std::size_t size, std::size_t bytes_worth_a_call = 64u << 10)
      : bytes(size, '\xee'), bytes_worth_a_call_(bytes_worth_a_call) {}

  Status copy_out(void* to, std::uint64_t begin_byte, std::size_t count) const override {
    check(begin_byte, count);
    std::memcpy(to, bytes.data() + begin_byte, count);
    return {};
  }
  Status copy_in(std::uint64_t begin_byte, const void* from, std::size_t count) const override {
    check(begin_byte, count);
    std::memcpy(bytes.data() + begin_byte, from, count);
    return {};
  }
  std::size_t bytes_worth_a_call() const override { return bytes_worth_a_call_; }

  mutable std::string bytes;
  mutable std::size_t calls = 0;
  mutable std::uint64_t bytes_copied = 0;

 private:
  void check(std::uint64_t begin_byte, std::size_t count) const {
    ASSERT_GT(count, 0u);
    ASSERT_LE(begin_byte + count, bytes.size());
    ++calls;
    bytes_copied += count;
  }

  const std::size_t bytes_worth_a_call_;
};

}  // namespace rekindle
