// Keeps the disk busy while what it gave is hashed and copied. Through the page cache, unlike writes: ranks of one node read the same files, and the disk
// should give them once.
#pragma once

#include <algorithm>
#include <cstdint>

#include "worker-sidecar/storage/file_system.h"

namespace rekindle {

class ReadAhead {
 public:
  ReadAhead(FileSystem& file_system, int descriptor, std::uint64_t file_bytes)
      : file_system_(file_system), descriptor_(descriptor), file_bytes_(file_bytes) {}

  // Everything before `position` has been read; what follows is fetched.
  void reached(std::uint64_t position) {
    const std::uint64_t end = std::min(file_bytes_, position + kAheadBytes);
    while (asked_ < end) {
      const std::uint64_t part = std::min(kPartBytes, file_bytes_ - asked_);
      file_system_.will_read(descriptor_, asked_, part);
      asked_ += part;
    }
  }

 private:
  static constexpr std::uint64_t kAheadBytes = 16u << 20;
  static constexpr std::uint64_t kPartBytes = 2u << 20;

  FileSystem& file_system_;
  const int descriptor_;
  const std::uint64_t file_bytes_;
  std::uint64_t asked_ = 0;
};

}  // namespace rekindle
