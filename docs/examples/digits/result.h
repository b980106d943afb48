// Errors as values in this program: a message for people is all that its callers do with one.
#pragma once

#include <expected>
#include <string>

namespace digits {

template <typename T>
using Result = std::expected<T, std::string>;
using Status = Result<void>;

inline std::unexpected<std::string> failure(std::string message) { return std::unexpected(std::move(message)); }

}  // namespace digits
