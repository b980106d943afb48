// From the number of a message to its type and back, by a fold over the variant of a wire's
// messages, so that no other list of them has to be kept. Private to this folder's codecs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <variant>

#include "common/base/error.h"

namespace rekindle {

// `Kind<Message>::value` is the number that a message has on this wire.
template <template <typename> class Kind, typename Variant>
struct MessageKinds;

template <template <typename> class Kind, typename... Messages>
struct MessageKinds<Kind, std::variant<Messages...>> {
  using Variant = std::variant<Messages...>;
  static constexpr std::array<std::uint16_t, sizeof...(Messages)> kKinds = {Kind<Messages>::value...};

  static consteval bool are_distinct() {
    for (std::size_t i = 0; i < kKinds.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (kKinds[i] == kKinds[j]) return false;
      }
    }
    return true;
  }
  static_assert(are_distinct(), "two messages of one wire have the same number");

  static std::uint16_t kind_of(const Variant& message) { return kKinds[message.index()]; }

  // Calls `decode` with the type of the message of this kind; empty when no message has it.
  template <typename Decode>
  static std::optional<Result<Variant>> decode(std::uint16_t kind, Decode decode) {
    std::optional<Result<Variant>> decoded;
    (void)((kind == Kind<Messages>::value && (decoded = decode.template operator()<Messages>(), true)) || ...);
    return decoded;
  }
};

}  // namespace rekindle
