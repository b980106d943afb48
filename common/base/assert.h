// Assertions for our own bugs. They stay on in release builds; nothing that came from a user, a
// file or the network is ever asserted (that is an Error, see error.h).
#pragma once

namespace rekindle {

[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);

}  // namespace rekindle

#define RK_ASSERT(condition)                                        \
  do {                                                              \
    if (!(condition)) [[unlikely]] {                                \
      ::rekindle::assertion_failed(#condition, __FILE__, __LINE__); \
    }                                                               \
  } while (false)
