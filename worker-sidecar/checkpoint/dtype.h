// Element types of tensors. Numbers are those of rk_dtype in rekindle.h, names and sizes those of safetensors. Pure.
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
};

// The name that safetensors uses, "BF16".
std::string_view to_string(Dtype dtype);

std::size_t element_bytes(Dtype dtype);

// Empty when nobody knows the name or the number.
std::optional<Dtype> parse_dtype(std::string_view name);
std::optional<Dtype> dtype_from_number(int number);

}  // namespace rekindle
