#include "worker-sidecar/mindspore/appended_value.h"

#include "worker-sidecar/checkpoint/coverage.h"

namespace rekindle {
namespace {

constexpr std::string_view kWideType = "Int64";

std::string little_endian(std::uint64_t value) {
  std::string bytes;
  for (int shift = 0; shift < 64; shift += 8) bytes += static_cast<char>(value >> shift & 0xff);
  return bytes;
}

}  // namespace

AppendedValue appended_number(std::string_view name, std::uint64_t value) {
  return {std::string(name), kWideType, little_endian(value)};
}

AppendedValue appended_flag(std::string_view name) { return {std::string(name), "Bool", std::string(1, '\1')}; }

std::string encode(const AppendedValue& value) {
  return slice_header(value.name, value.type, {}, value.content.size()) + value.content;
}

bool is_model_tensor(const MindSporeEntry& entry) {
  return entry.type != kMindSporeText && entry.name != kEpochNumber && entry.name != kStepNumber;
}

bool is_whole_number(const MindSporeEntry& entry) {
  return (entry.type == kWideType || entry.type == "Int32") && volume_of(entry.shape) == 1;
}

std::optional<std::uint64_t> decode_number(const MindSporeEntry& entry, std::string_view content) {
  std::uint64_t value = 0;
  for (std::size_t i = content.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(content[i]);
  const int sign_bit = entry.type == kWideType ? 63 : 31;
  if (value >> sign_bit != 0) return std::nullopt;
  return value;
}

}  // namespace rekindle
