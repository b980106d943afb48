// The message of the calling thread's last error (rk_last_error).
#pragma once

#include <string_view>

#include "worker-sidecar/runtime/src/failure.h"

namespace rekindle::runtime {

// Long lists of differences are cut.
inline constexpr std::size_t kLastErrorBytesMax = 4096;

const char* last_error() noexcept;

// Returns `status`, so that a call can end with it.
rk_status remember_error(rk_status status, std::string_view message) noexcept;
inline rk_status remember_error(const Failure& failure) noexcept {
  return remember_error(failure.status, failure.message);
}

}  // namespace rekindle::runtime
