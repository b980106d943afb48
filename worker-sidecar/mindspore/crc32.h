// The checksum behind a MindSpore checkpoint file that was saved with crc_check: zlib's CRC-32.
// Pure.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rekindle {

class Crc32 {
 public:
  void update(const char* data, std::size_t bytes);
  std::uint32_t value() const { return value_; }

 private:
  std::uint32_t value_ = 0;
};

}  // namespace rekindle
