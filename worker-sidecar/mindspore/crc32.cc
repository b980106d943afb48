#include "worker-sidecar/mindspore/crc32.h"

#include <array>

namespace rekindle {
namespace {

constexpr std::array<std::uint32_t, 256> make_crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value & 1) != 0 ? 0xedb88320u ^ (value >> 1) : value >> 1;
    table[i] = value;
  }
  return table;
}

constexpr std::array<std::uint32_t, 256> kCrcTable = make_crc_table();

}  // namespace

void Crc32::update(const char* data, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i)
    state_ = kCrcTable[(state_ ^ static_cast<unsigned char>(data[i])) & 0xff] ^ (state_ >> 8);
}

}  // namespace rekindle
