// What a call of rekindle.h answers when it cannot do what was asked: the status for programs, the
// message for people.
#pragma once

#include <expected>
#include <string>
#include <utility>

#include "common/base/error.h"
#include "worker-sidecar/runtime/include/rekindle.h"

namespace rekindle::runtime {

struct Failure {
  rk_status status = RK_ERROR_INTERNAL;
  std::string message;
};

template <typename T>
using Outcome = std::expected<T, Failure>;
using Done = std::expected<void, Failure>;

inline std::unexpected<Failure> refuse(rk_status status, std::string message) {
  return std::unexpected(Failure{status, std::move(message)});
}

// The status under which a caller in C meets an error of the parts below.
rk_status status_of(ErrorCode code);

inline std::unexpected<Failure> refuse(const Error& error) { return refuse(status_of(error.code), error.message); }

const char* name_of(rk_status status);

}  // namespace rekindle::runtime
