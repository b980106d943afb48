#include "worker-sidecar/checkpoint/dtype.h"

#include <iterator>

#include "common/base/assert.h"

namespace rekindle {
namespace {

struct DtypeFacts {
  Dtype dtype;
  std::size_t bits;
  std::size_t packed = 1;  // elements that are whole bytes together
};

// By number, from 1.
constexpr DtypeFacts kDtypes[] = {
    {Dtype::boolean, 8},    {Dtype::u8, 8},          {Dtype::i8, 8},          {Dtype::i16, 16},    {Dtype::u16, 16},
    {Dtype::f16, 16},       {Dtype::bf16, 16},       {Dtype::i32, 32},        {Dtype::u32, 32},    {Dtype::f32, 32},
    {Dtype::f64, 64},       {Dtype::i64, 64},        {Dtype::u64, 64},        {Dtype::f8_e4m3, 8}, {Dtype::f8_e5m2, 8},
    {Dtype::f8_e8m0, 8},    {Dtype::f8_e4m3fnuz, 8}, {Dtype::f8_e5m2fnuz, 8}, {Dtype::c64, 64},    {Dtype::f4, 4, 2},
    {Dtype::f6_e2m3, 6, 4}, {Dtype::f6_e3m2, 6, 4},
};

const DtypeFacts& facts_of(Dtype dtype) {
  const std::size_t index = static_cast<std::size_t>(dtype) - 1;
  RK_ASSERT(index < std::size(kDtypes) && kDtypes[index].dtype == dtype);
  return kDtypes[index];
}

}  // namespace

std::size_t element_bits(Dtype dtype) { return facts_of(dtype).bits; }

std::size_t packed_elements(Dtype dtype) { return facts_of(dtype).packed; }

std::uint64_t bytes_of_elements(Dtype dtype, std::uint64_t elements) {
  const DtypeFacts& facts = facts_of(dtype);
  RK_ASSERT(elements % facts.packed == 0);
  return elements / facts.packed * (facts.packed * facts.bits / 8);
}

std::optional<Dtype> dtype_from_number(int number) {
  if (number < 1 || static_cast<std::size_t>(number) > std::size(kDtypes)) return std::nullopt;
  return kDtypes[number - 1].dtype;
}

}  // namespace rekindle
