#include "worker-sidecar/mindspore/dtype_names.h"

namespace rekindle {
namespace {

struct MindSporeName {
  Dtype dtype;
  std::string_view name;
  bool is_loaded = true;  // by MindSpore 2.10.0; it saves any type that it has under str(dtype)
};

constexpr MindSporeName kMindSporeNames[] = {
    {Dtype::boolean, "Bool"},  {Dtype::u8, "UInt8"},
    {Dtype::i8, "Int8"},       {Dtype::i16, "Int16"},
    {Dtype::u16, "UInt16"},    {Dtype::f16, "Float16"},
    {Dtype::bf16, "BFloat16"}, {Dtype::i32, "Int32"},
    {Dtype::u32, "UInt32"},    {Dtype::f32, "Float32"},
    {Dtype::f64, "Float64"},   {Dtype::i64, "Int64"},
    {Dtype::u64, "UInt64"},    {Dtype::c64, "Complex64", false},
};

}  // namespace

std::optional<std::string_view> mindspore_name(Dtype dtype) {
  for (const MindSporeName& each : kMindSporeNames) {
    if (each.dtype == dtype && each.is_loaded) return each.name;
  }
  return std::nullopt;
}

std::optional<Dtype> parse_mindspore_name(std::string_view name) {
  for (const MindSporeName& each : kMindSporeNames) {
    if (each.name == name) return each.dtype;
  }
  return std::nullopt;
}

}  // namespace rekindle
