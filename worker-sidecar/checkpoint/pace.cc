#include "worker-sidecar/checkpoint/pace.h"

#include <algorithm>
#include <limits>

namespace rekindle {

Pace::Pace(std::uint64_t bytes_per_second_max, std::uint64_t burst_bytes, Duration start)
    : bytes_per_second_max_(bytes_per_second_max), burst_(time_of(burst_bytes)), earned_until_(start) {}

Duration Pace::time_of(std::uint64_t bytes) const {
  if (bytes_per_second_max_ == 0) return {};
  constexpr unsigned __int128 kNanosecondsPerSecond = 1'000'000'000;
  constexpr auto kLongest = static_cast<unsigned __int128>(std::numeric_limits<std::int64_t>::max() / 4);
  return Duration(static_cast<std::int64_t>(std::min(bytes * kNanosecondsPerSecond / bytes_per_second_max_, kLongest)));
}

Duration Pace::wait_for(std::uint64_t bytes, Duration now) {
  if (bytes_per_second_max_ == 0) return {};
  earned_until_ = std::max(earned_until_, now - burst_) + time_of(bytes);
  return std::max(earned_until_ - now, Duration());
}

}  // namespace rekindle
