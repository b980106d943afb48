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

// Whether it could be written: better learned before the training than after it.
Status check_writable(const std::string& path);

Status write_safetensors(const std::string& path, const std::vector<NamedArray>& arrays);

}  // namespace digits
