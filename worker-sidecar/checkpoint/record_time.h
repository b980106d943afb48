// The wall clock in records and manifests, "2026-11-21T10:49:39Z", back to a number. Pure.
#pragma once

#include <chrono>
#include <optional>
#include <string_view>

namespace rekindle {

// Fractions of a second are cut off; nothing for any other text.
std::optional<std::chrono::sys_seconds> parse_record_time(std::string_view text);

}  // namespace rekindle
