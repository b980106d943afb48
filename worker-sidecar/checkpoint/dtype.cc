#include "worker-sidecar/checkpoint/dtype.h"

#include <iterator>

#include "common/base/assert.h"

namespace rekindle {
namespace {

struct DtypeFacts {
  Dtype dtype;
  std::string_view name;
  std::size_t bits;
  std::size_t packed = 1;  // elements that are whole bytes together
};

// By number, from 1.
constexpr DtypeFacts kDtypes[] = {
    {Dtype::boolean, "BOOL", 8},
    {Dtype::u8, "U8", 8},
    {Dtype::i8, "I8", 8},
    {Dtype::i16, "I16", 16},
    {Dtype::u16, "U16", 16},
    {Dtype::f16, "F16", 16},
    {Dtype::bf16, "BF16", 16},
    {Dtype::i32, "I32", 32},
    {Dtype::u32, "U32", 32},
    {Dtype::f32, "F32", 32},
    {Dtype::f64, "F64", 64},
    {Dtype::i64, "I64", 64},
    {Dtype::u64, "U64", 64},
    {Dtype::f8_e4m3, "F8_E4M3", 8},
    {Dtype::f8_e5m2, "F8_E5M2", 8},
    {Dtype::f8_e8m0, "F8_E8M0", 8},
    {Dtype::f8_e4m3fnuz, "F8_E4M3FNUZ", 8},
    {Dtype::f8_e5m2fnuz, "F8_E5M2FNUZ", 8},
    {Dtype::c64, "C64", 64},
    {Dtype::f4, "F4", 4, 2},
    {Dtype::f6_e2m3, "F6_E2M3", 6, 4},
    {Dtype::f6_e3m2, "F6_E3M2", 6, 4},
};

const DtypeFacts& facts_of(Dtype dtype) {
  const std::size_t index = static_cast<std::size_t>(dtype) - 1;
  RK_ASSERT(index < std::size(kDtypes) && kDtypes[index].dtype == dtype);
  return kDtypes[index];
}

}  // namespace

std::string_view to_string(Dtype dtype) { return facts_of(dtype).name; }

std::size_t element_bits(Dtype dtype) { return facts_of(dtype).bits; }

std::size_t packed_elements(Dtype dtype) { return facts_of(dtype).packed; }

std::uint64_t bytes_of_elements(Dtype dtype, std::uint64_t elements) {
  const DtypeFacts& facts = facts_of(dtype);
  RK_ASSERT(elements % facts.packed == 0);
  return elements / facts.packed * (facts.packed * facts.bits / 8);
}

std::optional<Dtype> parse_dtype(std::string_view name) {
  for (const DtypeFacts& facts : kDtypes) {
    if (facts.name == name) return facts.dtype;
  }
  return std::nullopt;
}

std::optional<Dtype> dtype_from_number(int number) {
  if (number < 1 || static_cast<std::size_t>(number) > std::size(kDtypes)) return std::nullopt;
  return kDtypes[number - 1].dtype;
}

}  // namespace rekindle
