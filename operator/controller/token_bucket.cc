#include "operator/controller/token_bucket.h"

#include <algorithm>

namespace rekindle::op {
namespace {

Duration seconds_as_duration(double seconds) {
  // thirty years: far beyond any wait, and far from the end of the integer
  constexpr double kMost = 1e9;
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(std::clamp(seconds, 0.0, kMost)));
}

}  // namespace

TokenBucket::TokenBucket(double per_second, double burst)
    : per_second_(per_second), burst_(std::max(burst, 1.0)), tokens_(burst_) {}

void TokenBucket::refill(Instant now) {
  if (!started_) {
    started_ = true;
    refilled_at_ = now;
    return;
  }
  if (now <= refilled_at_) return;
  tokens_ = std::min(burst_, tokens_ + to_seconds(now - refilled_at_) * per_second_);
  refilled_at_ = now;
}

Duration TokenBucket::reserve(Instant now) {
  if (per_second_ <= 0) return Duration::zero();
  refill(now);
  tokens_ -= 1;
  return tokens_ >= 0 ? Duration::zero() : seconds_as_duration(-tokens_ / per_second_);
}

}  // namespace rekindle::op
