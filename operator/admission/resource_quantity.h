// Amounts as Kubernetes writes them in resources: "50m", "0.5", "256Mi", "1e3". Pure.
#pragma once

#include <optional>
#include <string_view>

namespace rekindle::op {

// The number that the text stands for (cores, bytes), near enough to compare two. None: it is none,
// or below zero.
std::optional<double> resource_quantity(std::string_view text);

}  // namespace rekindle::op
