// Structs that a caller in C fills in, of a newer or an older header than ours (convention 3 of
// rekindle.h).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "common/base/format.h"
#include "worker-sidecar/runtime/include/rekindle.h"
#include "worker-sidecar/runtime/src/failure.h"

namespace rekindle::runtime {

// Larger is not a struct of any release but a struct_size that the caller did not set.
inline constexpr std::size_t kStructBytesMax = 4096;

inline Done check_struct_size(std::size_t struct_size, std::size_t own_size, std::string_view name) {
  if (struct_size < 2 * sizeof(std::size_t) || struct_size > kStructBytesMax) {
    return refuse(RK_ERROR_ARGUMENT,
                  format("{}.struct_size is {}; set it to sizeof({}) ({} in this release) and zero the rest", name,
                         struct_size, name, own_size));
  }
  return {};
}

// A field as a caller in C may have left it: any number, which C++ may not read as one of an
// enumeration.
template <typename Enum>
int number_of(const Enum& field) {
  int number = 0;
  static_assert(sizeof field == sizeof number);
  std::memcpy(&number, &field, sizeof number);
  return number;
}

// A copy in which fields that the caller's header did not have are zero. Fields that ours does not
// have must be zero.
template <typename Struct>
Outcome<Struct> read_struct(const Struct* given, std::string_view name) {
  std::size_t struct_size = 0;
  std::memcpy(&struct_size, given, sizeof struct_size);
  if (Done done = check_struct_size(struct_size, sizeof(Struct), name); !done) return std::unexpected(done.error());
  const char* const bytes = reinterpret_cast<const char*>(given);
  if (struct_size > sizeof(Struct)) {
    const char* const unknown = bytes + sizeof(Struct);
    if (std::any_of(unknown, bytes + struct_size, [](char byte) { return byte != 0; })) {
      return refuse(RK_ERROR_VERSION,
                    format("{} uses fields that this library does not know yet; use a newer librekindle", name));
    }
  }
  Struct copy{};
  std::memcpy(&copy, given, std::min(struct_size, sizeof(Struct)));
  if (std::any_of(std::begin(copy.reserved), std::end(copy.reserved), [](auto value) { return value != 0; })) {
    return refuse(RK_ERROR_VERSION, format("{}.reserved is not zero; zero the struct before it is filled in", name));
  }
  return copy;
}

}  // namespace rekindle::runtime
