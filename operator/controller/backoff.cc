#include "operator/controller/backoff.h"

#include <algorithm>
#include <limits>

namespace rekindle::op {

bool Backoff::rested(Instant now) const { return failures_ == 0 || now - last_failure_ >= settings_.reset_after; }

Duration Backoff::failed(Instant now, Prng& luck) {
  if (rested(now)) failures_ = 0;
  last_failure_ = failures_ == 0 ? now : std::max(now, last_failure_);

  Duration pause = settings_.first;
  for (std::uint32_t doubled = 0; doubled < failures_ && pause < settings_.max; ++doubled) {
    pause = pause > settings_.max / 2 ? settings_.max : pause * 2;
  }
  if (failures_ < std::numeric_limits<std::uint32_t>::max()) ++failures_;
  const double stretched = static_cast<double>(pause.count()) * (1.0 + settings_.jitter * luck.unit());
  if (stretched >= static_cast<double>(settings_.max.count())) return settings_.max;
  return Duration(static_cast<Duration::rep>(stretched));
}

}  // namespace rekindle::op
