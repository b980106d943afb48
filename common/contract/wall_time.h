// Wall-clock time as Kubernetes objects carry it, as a value that is passed in. Not for measuring:
// an Instant is. The pure parts compare it with times that the API server wrote, so a few seconds
// of skew must never change what is right to do, only when.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace rekindle {

// Tag of the wall-clock time line. It has no now(): only the shell knows what time it is.
struct WallTimeline {
  using duration = std::chrono::microseconds;
  using rep = duration::rep;
  using period = duration::period;
  static constexpr bool is_steady = false;
};

// Microseconds since 1970-01-01T00:00:00Z.
using WallTime = std::chrono::time_point<WallTimeline, std::chrono::microseconds>;

// RFC 3339: "2026-01-31T12:00:00Z" with any number of digits behind a point, "Z" or "+01:00". None
// when it is anything else.
std::optional<WallTime> parse_wall_time(std::string_view text);

// "2026-01-31T12:00:00Z", the form of metav1.Time. The rest of a second is cut off.
std::string to_text(WallTime time);

// "2026-01-31T12:00:00.123456Z", the form of metav1.MicroTime.
std::string to_micro_text(WallTime time);

}  // namespace rekindle
