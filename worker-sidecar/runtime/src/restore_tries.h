// The tries of one thing that storage does not give, and the pauses between them
// (checkpoint/restore_policy.h).
//
// Threads: one.
#pragma once

#include <cstdint>
#include <optional>

#include "common/base/error.h"
#include "common/base/instant.h"
#include "worker-sidecar/checkpoint/restore_policy.h"
#include "worker-sidecar/storage/waiter.h"

namespace rekindle::runtime {

class RestoreTries {
 public:
  explicit RestoreTries(Waiter& waiter, const RestoreLimits& limits = {}) : waiter_(waiter), limits_(limits) {}

  // When it says to try again it has waited.
  AfterFailure after(ErrorCode code) {
    const Duration now = waiter_.now();
    if (!first_) first_ = now;
    const AfterFailure then = after_failure(code, ++tries_, now - *first_, limits_);
    if (then == AfterFailure::try_again) waiter_.pause(limits_.pause);
    return then;
  }

 private:
  Waiter& waiter_;
  const RestoreLimits limits_;
  std::uint32_t tries_ = 0;
  std::optional<Duration> first_;
};

}  // namespace rekindle::runtime
