#include "worker-sidecar/mindspore/crc32.h"

#include <zlib.h>

namespace rekindle {

void Crc32::update(const char* data, std::size_t bytes) {
  value_ = static_cast<std::uint32_t>(::crc32_z(value_, reinterpret_cast<const unsigned char*>(data), bytes));
}

}  // namespace rekindle
