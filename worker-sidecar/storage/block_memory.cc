#include "worker-sidecar/storage/block_memory.h"

#include <sys/mman.h>

#include <utility>

namespace rekindle {

BlockMemory::BlockMemory(std::size_t bytes) : bytes_(round_up_to_alignment(bytes)) {
  void* const mapped = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return;
  data_ = static_cast<char*>(mapped);
  // A transfer of 4 MiB is then one of a few pages, not of a thousand. Only a hint.
  ::madvise(mapped, bytes_, MADV_HUGEPAGE);
}

BlockMemory::~BlockMemory() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
}

BlockMemory::BlockMemory(BlockMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

BlockMemory& BlockMemory::operator=(BlockMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

}  // namespace rekindle
