// Growing pauses between tries that fail. A small clock: now and luck are arguments.
#pragma once

#include <chrono>
#include <cstdint>

#include "common/base/instant.h"
#include "common/base/prng.h"

namespace rekindle::op {

struct BackoffSettings {
  Duration first = std::chrono::milliseconds(800);
  Duration max = std::chrono::seconds(30);
  // that long without a failure: start again with `first`
  Duration reset_after = std::chrono::seconds(120);
  // a pause of d becomes d * (1 + jitter * luck) with luck in [0, 1), still at most `most`
  double jitter = 1.0;

  bool operator==(const BackoffSettings&) const = default;
};

class Backoff {
 public:
  explicit constexpr Backoff(BackoffSettings settings = {}) : settings_(settings) {}

  // Counts a failure and says how long to wait before the next try: first, twice that, ... up to
  // most. A now that lies before the last failure counts as the time of the last failure.
  Duration failed(Instant now, Prng& luck);

  // Forgets the failures.
  void succeeded() { failures_ = 0; }

  // No failure within the last reset_after.
  bool rested(Instant now) const;

  std::uint32_t failures() const { return failures_; }

 private:
  BackoffSettings settings_;
  std::uint32_t failures_ = 0;
  Instant last_failure_{};
};

}  // namespace rekindle::op
