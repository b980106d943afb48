// Element types of tensors. Numbers are those of rk_dtype in rekindle.h, names and sizes those of
// safetensors. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace rekindle {

enum class Dtype : std::uint8_t {
  boolean = 1,
  u8 = 2,
  i8 = 3,
  i16 = 4,
  u16 = 5,
  f16 = 6,
  bf16 = 7,
  i32 = 8,
  u32 = 9,
  f32 = 10,
  f64 = 11,
  i64 = 12,
  u64 = 13,
  f8_e4m3 = 14,
  f8_e5m2 = 15,
  f8_e8m0 = 16,
  f8_e4m3fnuz = 17,
  f8_e5m2fnuz = 18,
  c64 = 19,
  f4 = 20,
  f6_e2m3 = 21,
  f6_e3m2 = 22,
};

// The name that safetensors uses, "BF16".
std::string_view to_string(Dtype dtype);

std::size_t element_bits(Dtype dtype);

// So many elements are whole bytes: 1, but 2 of F4 and 4 of the F6 kinds, which stand packed
// without gaps.
std::size_t packed_elements(Dtype dtype);

// Of a number of elements that is a multiple of packed_elements.
std::uint64_t bytes_of_elements(Dtype dtype, std::uint64_t elements);

// Empty when nobody knows the name or the number.
std::optional<Dtype> parse_dtype(std::string_view name);
std::optional<Dtype> dtype_from_number(int number);

}  // namespace rekindle
