#include "common/system/clock.h"

#include <algorithm>

namespace rekindle {
namespace {

template <typename Time>
Time read(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return Time(std::chrono::duration_cast<typename Time::duration>(std::chrono::seconds(now.tv_sec) +
                                                                  std::chrono::nanoseconds(now.tv_nsec)));
}

}  // namespace

Instant monotonic_now() { return read<Instant>(CLOCK_MONOTONIC); }

WallTime wall_now() { return read<WallTime>(CLOCK_REALTIME); }

std::chrono::sys_seconds wall_seconds() { return read<std::chrono::sys_seconds>(CLOCK_REALTIME); }

timespec timespec_until(Instant when, Instant now) {
  const Duration left = std::max(when - now, Duration::zero());
  return {.tv_sec = static_cast<time_t>(left / std::chrono::seconds(1)),
          .tv_nsec = static_cast<long>((left % std::chrono::seconds(1)).count())};
}

}  // namespace rekindle
