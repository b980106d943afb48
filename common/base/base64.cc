#include "common/base/base64.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace rekindle {
namespace {

constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<std::int8_t, 256> kValues = [] {
  std::array<std::int8_t, 256> values{};
  values.fill(-1);
  for (std::size_t i = 0; i < kAlphabet.size(); ++i) {
    values[static_cast<unsigned char>(kAlphabet[i])] = static_cast<std::int8_t>(i);
  }
  return values;
}();

}  // namespace

std::string base64_encode(std::string_view bytes) {
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      group = group << 8 | (j < count ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    }
    for (std::size_t j = 0; j < 4; ++j) {
      text.push_back(j <= count ? kAlphabet[group >> (18 - 6 * j) & 63] : '=');
    }
  }
  return text;
}

Result<std::string> base64_decode(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size() / 4 * 3);
  std::uint32_t group = 0;
  int digits = 0;
  int padding = 0;
  for (const char c : text) {
    if (c == ' ' || c == '\n' || c == '\r' || c == '\t') continue;
    if (c == '=') {
      ++padding;
      continue;
    }
    const int value = kValues[static_cast<unsigned char>(c)];
    if (value < 0 || padding > 0)
      return fail(ErrorCode::invalid_input, "base64 text has a character outside its alphabet");
    group = group << 6 | static_cast<std::uint32_t>(value);
    if (++digits == 4) {
      bytes.push_back(static_cast<char>(group >> 16 & 0xff));
      bytes.push_back(static_cast<char>(group >> 8 & 0xff));
      bytes.push_back(static_cast<char>(group & 0xff));
      group = 0;
      digits = 0;
    }
  }
  if (digits == 1 || padding > 2 || (digits + padding) % 4 != 0) {
    return fail(ErrorCode::invalid_input, "base64 text has a wrong length");
  }
  if (digits == 2) bytes.push_back(static_cast<char>(group >> 4 & 0xff));
  if (digits == 3) {
    bytes.push_back(static_cast<char>(group >> 10 & 0xff));
    bytes.push_back(static_cast<char>(group >> 2 & 0xff));
  }
  return bytes;
}

}  // namespace rekindle
