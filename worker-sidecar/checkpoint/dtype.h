// Element types of tensors. Numbers are those of rk_dtype in rekindle.h, names and sizes those of
// safetensors. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "common/base/enum_names.h"

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

// As safetensors calls them.
constexpr auto enum_names(Dtype) {
  return std::to_array<EnumName<Dtype>>({{Dtype::boolean, "BOOL"},
                                         {Dtype::u8, "U8"},
                                         {Dtype::i8, "I8"},
                                         {Dtype::i16, "I16"},
                                         {Dtype::u16, "U16"},
                                         {Dtype::f16, "F16"},
                                         {Dtype::bf16, "BF16"},
                                         {Dtype::i32, "I32"},
                                         {Dtype::u32, "U32"},
                                         {Dtype::f32, "F32"},
                                         {Dtype::f64, "F64"},
                                         {Dtype::i64, "I64"},
                                         {Dtype::u64, "U64"},
                                         {Dtype::f8_e4m3, "F8_E4M3"},
                                         {Dtype::f8_e5m2, "F8_E5M2"},
                                         {Dtype::f8_e8m0, "F8_E8M0"},
                                         {Dtype::f8_e4m3fnuz, "F8_E4M3FNUZ"},
                                         {Dtype::f8_e5m2fnuz, "F8_E5M2FNUZ"},
                                         {Dtype::c64, "C64"},
                                         {Dtype::f4, "F4"},
                                         {Dtype::f6_e2m3, "F6_E2M3"},
                                         {Dtype::f6_e3m2, "F6_E3M2"}});
}

std::size_t element_bits(Dtype dtype);

// So many elements are whole bytes: 1, but 2 of F4 and 4 of the F6 kinds, which stand packed
// without gaps.
std::size_t packed_elements(Dtype dtype);

// Of a number of elements that is a multiple of packed_elements.
std::uint64_t bytes_of_elements(Dtype dtype, std::uint64_t elements);

// Empty for a number that no type has.
std::optional<Dtype> dtype_from_number(int number);

}  // namespace rekindle
