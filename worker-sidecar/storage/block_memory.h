// Memory that a disk can fill or empty without a copy by the kernel. It is mapped, not allocated:
// what is given back is the system's again at once, and the allocator of the training process
// learns nothing from our sizes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rekindle {

// Of memory, offset and length; good for every disk of today.
inline constexpr std::size_t kBlockAlignmentBytes = 4096;
// Files that are smaller gain nothing from going past the page cache.
inline constexpr std::uint64_t kDirectFileBytesMin = 1u << 20;

constexpr std::size_t round_up_to_alignment(std::size_t bytes) {
  return (bytes + kBlockAlignmentBytes - 1) / kBlockAlignmentBytes * kBlockAlignmentBytes;
}

class BlockMemory {
 public:
  BlockMemory() = default;
  // At least `bytes`, which is not 0; empty when there is no memory.
  explicit BlockMemory(std::size_t bytes);
  ~BlockMemory();
  BlockMemory(BlockMemory&& other) noexcept;
  BlockMemory& operator=(BlockMemory&& other) noexcept;

  char* get() const { return data_; }
  std::size_t bytes() const { return data_ != nullptr ? bytes_ : 0; }
  explicit operator bool() const { return data_ != nullptr; }

 private:
  char* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace rekindle
