// The names of an enum's values, declared once, beside the enum:
//
//   enum class Color { red, dark_blue };
//   constexpr auto enum_names(Color) {
//     return std::to_array<EnumName<Color>>({{Color::red, "red"}, {Color::dark_blue, "dark_blue"}});
//   }
//
// to_string(Color::red) and parse_enum<Color>("red") follow from that, and a value without a name
// does not compile. A namespace that has a to_string of its own needs `using rekindle::to_string;`,
// or its own hides this one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace rekindle {

template <typename Enum>
struct EnumName {
  Enum value;
  std::string_view name;
};

template <typename Enum>
concept NamedEnum = std::is_enum_v<Enum> && requires(Enum value) { enum_names(value); };

namespace enum_detail {

// Compilers write a value that has an enumerator by its name, and any other as a cast, "(Color)7".
template <auto kValue>
constexpr bool is_enumerator() {
  const std::string_view text = __PRETTY_FUNCTION__;
  const std::size_t behind = text.rfind(')') + 1;
  return behind >= text.size() || (text[behind] != '-' && (text[behind] < '0' || text[behind] > '9'));
}

template <NamedEnum Enum>
inline constexpr auto kNames = enum_names(Enum{});

template <NamedEnum Enum>
constexpr std::int64_t number_of(std::size_t place) {
  return static_cast<std::int64_t>(kNames<Enum>[place].value);
}

// The lowest and the highest number that has a name.
template <NamedEnum Enum>
constexpr std::pair<std::int64_t, std::int64_t> named_range() {
  std::pair range(number_of<Enum>(0), number_of<Enum>(0));
  for (std::size_t i = 1; i < kNames<Enum>.size(); ++i) {
    if (number_of<Enum>(i) < range.first) range.first = number_of<Enum>(i);
    if (number_of<Enum>(i) > range.second) range.second = number_of<Enum>(i);
  }
  return range;
}

// True when `kNumber` has one name and is an enumerator, or has none and is none.
template <NamedEnum Enum, std::int64_t kNumber>
constexpr bool number_is_named_once() {
  std::size_t names = 0;
  for (std::size_t i = 0; i < kNames<Enum>.size(); ++i) {
    if (number_of<Enum>(i) == kNumber) ++names;
  }
  constexpr auto kUnderlying = static_cast<std::underlying_type_t<Enum>>(kNumber);
  if constexpr (static_cast<std::int64_t>(kUnderlying) != kNumber) return names == 0;
  else return names == (is_enumerator<static_cast<Enum>(kUnderlying)>() ? 1u : 0u);
}

template <NamedEnum Enum>
constexpr bool names_are_distinct() {
  for (std::size_t i = 0; i < kNames<Enum>.size(); ++i) {
    if (kNames<Enum>[i].name.empty()) return false;
    for (std::size_t j = 0; j < i; ++j) {
      if (kNames<Enum>[i].name == kNames<Enum>[j].name) return false;
    }
  }
  return true;
}

}  // namespace enum_detail

// True when every value of the enum has one name and no two have the same. Values are looked for
// from one below the lowest that is named to one above the highest: one that stands further apart
// is not seen.
template <NamedEnum Enum>
constexpr bool every_value_has_one_name() {
  constexpr auto kRange = enum_detail::named_range<Enum>();
  constexpr auto kNumbers = static_cast<std::size_t>(kRange.second - kRange.first + 3);
  return enum_detail::names_are_distinct<Enum>() && []<std::size_t... kIndex>(std::index_sequence<kIndex...>) {
    return (enum_detail::number_is_named_once<Enum, kRange.first - 1 + static_cast<std::int64_t>(kIndex)>() && ...);
  }(std::make_index_sequence<kNumbers>());
}

// "unknown" for a number without an enumerator.
template <NamedEnum Enum>
constexpr std::string_view to_string(Enum value) {
  static_assert(every_value_has_one_name<Enum>(), "enum_names has to give every value one name of its own");
  for (const auto& named : enum_detail::kNames<Enum>) {
    if (named.value == value) return named.name;
  }
  return "unknown";
}

template <NamedEnum Enum>
constexpr std::optional<Enum> parse_enum(std::string_view name) {
  static_assert(every_value_has_one_name<Enum>(), "enum_names has to give every value one name of its own");
  for (const auto& named : enum_detail::kNames<Enum>) {
    if (named.name == name) return named.value;
  }
  return std::nullopt;
}

// "red, dark_blue", for a sentence that says what is allowed.
template <NamedEnum Enum>
std::string list_enum_names() {
  std::string list;
  for (const auto& named : enum_detail::kNames<Enum>) list.append(list.empty() ? "" : ", ").append(named.name);
  return list;
}

}  // namespace rekindle
