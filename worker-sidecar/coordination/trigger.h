// Several reasons for one breakpoint, merged: storms become one (PROTOCOL P18). Pure.
#pragma once

#include <algorithm>
#include <optional>

#include "common/base/instant.h"
#include "common/contract/job_limits.h"
#include "worker-sidecar/protocol/peer_message.h"

namespace rekindle::sidecar {

constexpr Duration duration_of_seconds(double seconds) {
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(std::clamp(seconds, 0.0, kMessageSecondsMax)));
}

// A trigger whose end of time is an instant of the own clock; empty: the policy's deadline.
struct TimedTrigger {
  TriggerMessage trigger;
  std::optional<Instant> until;
};

inline TimedTrigger arrive(const TriggerMessage& trigger, Instant now) {
  return {trigger,
          trigger.seconds_left > 0 ? std::optional(now + duration_of_seconds(trigger.seconds_left)) : std::nullopt};
}

// How much a cause explains: a failed collective is what a death looks like from the next rank.
constexpr int weight_of(TriggerCause cause) {
  switch (cause) {
    case TriggerCause::sidecar: return 0;
    case TriggerCause::user: return 1;
    case TriggerCause::collective_failed: return 2;
    default: return 3;
  }
}

// The cause that explains most is kept, the first among equals; the strongest `after` and the
// earliest end win.
inline void merge_trigger(TimedTrigger& into, const TimedTrigger& other) {
  if (weight_of(other.trigger.cause) > weight_of(into.trigger.cause)) {
    into.trigger.cause = other.trigger.cause;
    into.trigger.pod = other.trigger.pod;
    into.trigger.detail = other.trigger.detail;
  }
  into.trigger.after = std::max(into.trigger.after, other.trigger.after);
  into.trigger.rebuilt = std::max(into.trigger.rebuilt, other.trigger.rebuilt);
  if (into.trigger.breakpoint.empty()) into.trigger.breakpoint = other.trigger.breakpoint;
  if (other.until) into.until = into.until ? std::min(*into.until, *other.until) : other.until;
}

// For the wire, with what is left of the time; a time that is over is one millisecond, since 0
// means the policy's.
inline TriggerMessage message_of(const TimedTrigger& timed, Instant now) {
  TriggerMessage message = timed.trigger;
  message.seconds_left = timed.until ? std::max(0.001, to_seconds(*timed.until - now)) : 0;
  return message;
}

}  // namespace rekindle::sidecar
