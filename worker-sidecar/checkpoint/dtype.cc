#include "worker-sidecar/checkpoint/dtype.h"

#include "common/base/assert.h"

namespace rekindle {
namespace {

struct DtypeFacts {
  Dtype dtype;
  std::string_view name;
  std::size_t bytes;
};

constexpr DtypeFacts kDtypes[] = {
    {Dtype::boolean, "BOOL", 1}, {Dtype::u8, "U8", 1},           {Dtype::i8, "I8", 1},
    {Dtype::i16, "I16", 2},      {Dtype::u16, "U16", 2},         {Dtype::f16, "F16", 2},
    {Dtype::bf16, "BF16", 2},    {Dtype::i32, "I32", 4},         {Dtype::u32, "U32", 4},
    {Dtype::f32, "F32", 4},      {Dtype::f64, "F64", 8},         {Dtype::i64, "I64", 8},
    {Dtype::u64, "U64", 8},      {Dtype::f8_e4m3, "F8_E4M3", 1}, {Dtype::f8_e5m2, "F8_E5M2", 1},
};

const DtypeFacts& facts_of(Dtype dtype) {
  for (const DtypeFacts& facts : kDtypes) {
    if (facts.dtype == dtype) return facts;
  }
  RK_ASSERT(!"a Dtype that is in no table");
  return kDtypes[0];
}

}  // namespace

std::string_view to_string(Dtype dtype) { return facts_of(dtype).name; }

std::size_t element_bytes(Dtype dtype) { return facts_of(dtype).bytes; }

std::optional<Dtype> parse_dtype(std::string_view name) {
  for (const DtypeFacts& facts : kDtypes) {
    if (facts.name == name) return facts.dtype;
  }
  return std::nullopt;
}

std::optional<Dtype> dtype_from_number(int number) {
  for (const DtypeFacts& facts : kDtypes) {
    if (static_cast<int>(facts.dtype) == number) return facts.dtype;
  }
  return std::nullopt;
}

}  // namespace rekindle
