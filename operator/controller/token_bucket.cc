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

bool TokenBucket::try_take(Instant now) {
  if (per_second_ <= 0) return true;
  refill(now);
  if (tokens_ < 1) return false;
  tokens_ -= 1;
  return true;
}

Duration TokenBucket::reserve(Instant now) {
  if (per_second_ <= 0) return Duration::zero();
  refill(now);
  tokens_ -= 1;
  return tokens_ >= 0 ? Duration::zero() : seconds_as_duration(-tokens_ / per_second_);
}

Instant TokenBucket::next_at(Instant now) const {
  if (per_second_ <= 0) return now;
  TokenBucket copy = *this;
  copy.refill(now);
  if (copy.tokens_ >= 1) return now;
  // One nanosecond more, so that rounding down never names a moment that is too early.
  return std::max(now, copy.refilled_at_) + seconds_as_duration((1 - copy.tokens_) / per_second_) + Duration(1);
}

}  // namespace rekindle::op
