// What MindSpore calls element types in a checkpoint file, "Float32". Pure.
#pragma once

#include <optional>
#include <string_view>

#include "worker-sidecar/checkpoint/dtype.h"

namespace rekindle {

// Empty: MindSpore's checkpoint files have no name for it (the f8 kinds).
std::optional<std::string_view> mindspore_name(Dtype dtype);

// Empty: none of ours ("Int4", "str").
std::optional<Dtype> parse_mindspore_name(std::string_view name);

}  // namespace rekindle
