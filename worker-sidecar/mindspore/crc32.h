// The checksum behind a MindSpore checkpoint file that was saved with crc_check (that of zlib and
// Ethernet). Pure.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rekindle {

class Crc32 {
 public:
  void update(const char* data, std::size_t bytes);
  std::uint32_t value() const { return ~state_; }

 private:
  std::uint32_t state_ = ~std::uint32_t{0};
};

}  // namespace rekindle
