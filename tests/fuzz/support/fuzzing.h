// What the fuzz targets share. A target is a function from bytes to "nothing is wrong"; a property
// that does not hold ends the program (RK_ASSERT), as a fault found by a sanitizer does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "common/base/assert.h"
#include "common/base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes);

namespace rekindle {

inline std::string_view text_of(const std::uint8_t* data, std::size_t bytes) {
  return {reinterpret_cast<const char*>(data), bytes};
}

// The first bytes of the input as a number; what is missing is 0.
template <typename Number>
Number take_number(std::string_view& input) {
  Number value = 0;
  const std::size_t bytes = input.size() < sizeof value ? input.size() : sizeof value;
  std::memcpy(&value, input.data(), bytes);
  input.remove_prefix(bytes);
  return value;
}

// Written here once more, and not taken from names.h: what is safe is not for the code under test
// to say.
inline bool leads_out_of_its_folder(std::string_view name) {
  return name.empty() || name.front() == '.' || name.find('/') != std::string_view::npos ||
         name.find('\0') != std::string_view::npos || name.size() > 255;
}

// A refusal is for people: it has a sentence.
inline void expect_sentence(const Error& error) { RK_ASSERT(!error.message.empty()); }

}  // namespace rekindle
