// Monotonic time as a value that is passed in. Pure folders never read a clock; the shell does, in
// one place (common/system/clock.h), and hands the Instant down.
#pragma once

#include <chrono>

namespace rekindle {

using Duration = std::chrono::nanoseconds;

// Tag of the monotonic time line. It has no now(): only the shell knows what time it is.
struct MonotonicTimeline {
  using duration = Duration;
  using rep = Duration::rep;
  using period = Duration::period;
  static constexpr bool is_steady = true;
};

using Instant = std::chrono::time_point<MonotonicTimeline, Duration>;

constexpr double to_seconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }
constexpr double to_milliseconds(Duration duration) { return to_seconds(duration) * 1e3; }

}  // namespace rekindle
