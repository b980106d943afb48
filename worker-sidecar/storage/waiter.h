// The clock and the pauses of a capped write, so that tests need neither.
#pragma once

#include "common/base/instant.h"

namespace rekindle {

class Waiter {
 public:
  virtual ~Waiter() = default;
  virtual Duration now() = 0;  // monotonic, from any beginning
  // a signal may end it early
  virtual void pause(Duration duration) = 0;
};

// The kernel's. Safe for any number of threads.
Waiter& real_waiter();

}  // namespace rekindle
