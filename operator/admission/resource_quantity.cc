#include "operator/admission/resource_quantity.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <utility>

namespace rekindle::op {
namespace {

constexpr std::array<std::pair<std::string_view, double>, 16> kSuffixes{{{"", 1},
                                                                         {"n", 1e-9},
                                                                         {"u", 1e-6},
                                                                         {"m", 1e-3},
                                                                         {"k", 1e3},
                                                                         {"M", 1e6},
                                                                         {"G", 1e9},
                                                                         {"T", 1e12},
                                                                         {"P", 1e15},
                                                                         {"E", 1e18},
                                                                         {"Ki", 0x1p10},
                                                                         {"Mi", 0x1p20},
                                                                         {"Gi", 0x1p30},
                                                                         {"Ti", 0x1p40},
                                                                         {"Pi", 0x1p50},
                                                                         {"Ei", 0x1p60}}};

// Of "e3", "E-3".
std::optional<double> exponent(std::string_view text) {
  if (text.size() < 2 || (text.front() != 'e' && text.front() != 'E')) return std::nullopt;
  text.remove_prefix(1);
  if (text.front() == '+') text.remove_prefix(1);
  std::int16_t power = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), power);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return std::pow(10.0, power);
}

}  // namespace

std::optional<double> resource_quantity(std::string_view text) {
  // from_chars reads more than Kubernetes does: a sign, "inf", an exponent, which has to be told
  // from the suffix E.
  std::size_t length = 0;
  while (length < text.size() && (text[length] == '.' || (text[length] >= '0' && text[length] <= '9'))) ++length;
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + length, number, std::chars_format::fixed);
  if (error != std::errc{} || end != text.data() + length) return std::nullopt;
  const std::string_view suffix = text.substr(length);
  for (const auto& [name, factor] : kSuffixes) {
    if (name == suffix) return number * factor;
  }
  const std::optional<double> factor = exponent(suffix);
  if (!factor || !std::isfinite(number * *factor)) return std::nullopt;
  return number * *factor;
}

}  // namespace rekindle::op
