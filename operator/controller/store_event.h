// What a watch tells a store, in the order Init, InitApply..., InitDone, then Apply and Delete;
// again from Init after a re-list. A second Init before InitDone throws away what the first had
// collected.
#pragma once

#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

#include "operator/kube/object_key.h"

namespace rekindle::op {

// A list begins.
struct Init {
  bool operator==(const Init&) const = default;
};

// An object of the list.
template <typename T>
struct InitApply {
  ObjectKey key;
  T object;
  bool operator==(const InitApply&) const = default;
};

// An object of the list that could not be read: what is known of it stays, and it does not count as
// vanished.
struct InitKeep {
  ObjectKey key;
  bool operator==(const InitKeep&) const = default;
};

// The list is complete: the store becomes what it said.
struct InitDone {
  bool operator==(const InitDone&) const = default;
};

// An object appeared or changed.
template <typename T>
struct Apply {
  ObjectKey key;
  T object;
  bool operator==(const Apply&) const = default;
};

// An object is gone; `last` is its final state where the server sent a readable one.
template <typename T>
struct Delete {
  ObjectKey key;
  std::optional<T> last;
  bool operator==(const Delete&) const = default;
};

template <typename T>
using StoreEvent = std::variant<Init, InitApply<T>, InitKeep, InitDone, Apply<T>, Delete<T>>;

// Turns events about one type into events about another, with `decode: Result<To>(const From&)`.
// What cannot be decoded is handed to `unreadable(key, error)`; the event becomes InitKeep, nothing
// (an Apply: the last good state stays) or a Delete without a last state.
template <typename To, typename From, typename Decode, typename Unreadable>
std::optional<StoreEvent<To>> convert(StoreEvent<From> event, Decode&& decode, Unreadable&& unreadable) {
  return std::visit(
      [&](auto&& one) -> std::optional<StoreEvent<To>> {
        using One = std::decay_t<decltype(one)>;
        if constexpr (std::is_same_v<One, InitApply<From>>) {
          Result<To> object = decode(one.object);
          if (object) return InitApply<To>{std::move(one.key), std::move(*object)};
          unreadable(one.key, object.error());
          return InitKeep{std::move(one.key)};
        } else if constexpr (std::is_same_v<One, Apply<From>>) {
          Result<To> object = decode(one.object);
          if (object) return Apply<To>{std::move(one.key), std::move(*object)};
          unreadable(one.key, object.error());
          return std::nullopt;
        } else if constexpr (std::is_same_v<One, Delete<From>>) {
          std::optional<To> last;
          if (one.last) {
            if (Result<To> object = decode(*one.last)) last = std::move(*object);
          }
          return Delete<To>{std::move(one.key), std::move(last)};
        } else {
          return std::move(one);
        }
      },
      std::move(event));
}

}  // namespace rekindle::op
