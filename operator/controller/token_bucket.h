// Limits how often something happens: `burst` at once, `per_second` in the long run. A small clock:
// now is an argument; a clock that goes backwards gives nothing and takes nothing.
#pragma once

#include "common/base/instant.h"

namespace rekindle::op {

class TokenBucket {
 public:
  // A rate of 0 or below means no limit.
  TokenBucket(double per_second, double burst);

  // Takes one token now or in the future and says how long the caller has to wait before it counts
  // as taken. Callers are served in the order of their calls.
  Duration reserve(Instant now);

 private:
  void refill(Instant now);

  double per_second_;
  double burst_;
  double tokens_;  // below 0: reserved ahead
  Instant refilled_at_{};
  bool started_ = false;
};

}  // namespace rekindle::op
