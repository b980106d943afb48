#include "worker-sidecar/checkpoint/interval.h"

#include <algorithm>
#include <cmath>

namespace rekindle {
namespace {

constexpr double kLeastCostSeconds = 1e-6;

Duration of_seconds(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

Duration best_interval(Duration checkpoint_cost, Duration mean_time_between_failures) {
  const double cost = std::max(to_seconds(checkpoint_cost), kLeastCostSeconds);
  const double failure = to_seconds(mean_time_between_failures);
  if (cost >= 2 * failure) return mean_time_between_failures;
  const double ratio = cost / (2 * failure);
  return of_seconds(std::sqrt(2 * cost * failure) * (1 + std::sqrt(ratio) / 3 + ratio / 9) - cost);
}

Duration mean_time_between_failures(const FailureHistory& history, Duration prior) {
  return (prior + history.observed) / static_cast<Duration::rep>(history.failures + 1);
}

FailureHistory history_of(std::uint64_t attempt, std::optional<WallTime> first, WallTime now) {
  FailureHistory history{.failures = attempt > 0 ? attempt - 1 : 0};
  // A clock that was set back says nothing.
  if (first && *first < now) history.observed = now - *first;
  return history;
}

}  // namespace rekindle
