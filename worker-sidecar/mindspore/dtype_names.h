// What MindSpore calls element types in a checkpoint file, "Float32". Pure.
#pragma once

#include <optional>
#include <string_view>

#include "worker-sidecar/checkpoint/dtype.h"

namespace rekindle {

// Empty: MindSpore's load_checkpoint reads no such type from a checkpoint file (C64 and all
// narrower than a half: the F8, F6 and F4 kinds).
std::optional<std::string_view> mindspore_name(Dtype dtype);

// Also of what MindSpore writes and does not read itself ("Complex64"). Empty: none of ours
// ("Int4", "str").
std::optional<Dtype> parse_mindspore_name(std::string_view name);

}  // namespace rekindle
