// Text with values in it: format("rank {} of {}", 3, 8), checked by the compiler. It is fmt's,
// which spdlog brings along, behind one function that is compiled once: no other file pays for more
// than fmt's declarations, and librekindle carries one copy of its own, hidden like the rest.
#pragma once

#include <fmt/core.h>

#include <string>

namespace rekindle {

namespace detail {

std::string format_values(fmt::string_view pattern, fmt::format_args values);

// An object and not a function: a call with a std::string among its values would otherwise find
// std::format as well, where the standard library has it.
struct Format {
  template <typename... Values>
  std::string operator()(fmt::format_string<Values...> pattern, Values&&... values) const {
    return format_values(pattern, fmt::make_format_args(values...));
  }
};

}  // namespace detail

inline constexpr detail::Format format;

}  // namespace rekindle
