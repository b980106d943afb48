#include "worker-sidecar/runtime/src/saver_agenda.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace rekindle::runtime {
namespace {

constexpr Duration kTargetPollInterval = std::chrono::milliseconds(50);

}  // namespace

SaverAgenda::SaverAgenda(const SnapshotSettings& settings, std::uint64_t step, FailureHistory failures, Instant now)
    : schedule_(settings) {
  schedule_.begin(step, failures, now);
}

SaverAgenda::Next SaverAgenda::next(std::uint64_t step, Instant now) {
  if (copy_waits_) {
    writing_ = *std::exchange(copy_waits_, std::nullopt);
    return {.work = Next::Work::write};
  }
  if (closing_) return {.work = Next::Work::end};
  // A process that has made the step takes its copy before it makes another one.
  if (target_step_ && step > *target_step_) {
    schedule_.missed();
    target_step_.reset();
  }
  Next next;
  if (!target_step_ && has_room_) target_step_ = next.announce = schedule_.next_target(step, now);
  next.wake = target_step_ ? now + kTargetPollInterval
                           : std::max(schedule_.next_check().value_or(now + kTargetPollInterval),
                                      now + kTargetPollInterval / 10);
  return next;
}

void SaverAgenda::taken(Duration stopped) {
  target_step_.reset();
  copy_waits_ = stopped;
}

void SaverAgenda::failed(Instant now) {
  target_step_.reset();
  schedule_.abandoned(now);
}

void SaverAgenda::saved(Duration written, Instant now) {
  schedule_.done({.stopped = writing_, .written = written}, now);
}

}  // namespace rekindle::runtime
