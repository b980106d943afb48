// Puts values into a sentence: sentence("rank {} of {}", 3, 8). The standard library of g++ 12 has
// no std::format; this is the part of it that messages need: `{}` only, in order. A number of
// values that does not fit the pattern is a compile error.
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>

namespace rekindle {

namespace detail {

inline void append_value(std::string& to, std::string_view value) { to += value; }
inline void append_value(std::string& to, char value) { to += value; }
inline void append_value(std::string& to, const char* value) { to += value; }
inline void append_value(std::string& to, std::same_as<bool> auto value) { to += value ? "true" : "false"; }
template <std::integral Number>
  requires(!std::same_as<Number, char> && !std::same_as<Number, bool>)
void append_value(std::string& to, Number value) {
  to += std::to_string(value);
}

consteval std::size_t places(std::string_view pattern) {
  std::size_t count = 0;
  for (std::size_t at = pattern.find("{}"); at != std::string_view::npos; at = pattern.find("{}", at + 2)) ++count;
  return count;
}

template <typename... Values>
struct Pattern {
  consteval Pattern(const char* pattern) : text(pattern) {  // NOLINT: implicit, so that a literal is enough
    if (places(text) != sizeof...(Values)) throw "the number of {} and of values differ";
  }
  std::string_view text;
};

}  // namespace detail

template <typename... Values>
std::string sentence(detail::Pattern<std::type_identity_t<Values>...> pattern, const Values&... values) {
  std::string result;
  std::string_view rest = pattern.text;
  [[maybe_unused]] const auto next = [&](const auto& value) {
    const std::size_t place = rest.find("{}");
    result += rest.substr(0, place);
    rest.remove_prefix(place + 2);
    detail::append_value(result, value);
  };
  (next(values), ...);
  result += rest;
  return result;
}

}  // namespace rekindle
