// Writes named float arrays as one safetensors file, complete or not at all.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "result.h"

namespace digits {

struct NamedArray {
  std::string name;
  std::vector<std::int64_t> shape;
  std::span<const float> values;
};

Status write_safetensors(const std::string& path, const std::vector<NamedArray>& arrays);

}  // namespace digits
