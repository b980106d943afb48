#include "worker-sidecar/checkpoint/snapshot_schedule.h"

#include <algorithm>

#include "common/base/format.h"

namespace rekindle {
namespace {

// How long an announcement may take until the last rank has seen it.
constexpr Duration kTravel = std::chrono::milliseconds(20);
constexpr Duration kLookEach = std::chrono::milliseconds(50);
constexpr std::uint64_t kMarginMax = 1u << 20;
// The storage has other work besides checkpoints.
constexpr int kWriteShare = 2;

std::string decimal(double number) {
  const auto hundredths = static_cast<std::int64_t>(number * 100 + 0.5);
  const std::int64_t rest = hundredths % 100;
  return format("{}.{}{}", hundredths / 100, rest / 10, rest % 10);
}

std::string readable(Duration time) {
  if (time < std::chrono::milliseconds(1)) return decimal(to_milliseconds(time) * 1000) + " us";
  if (time < std::chrono::seconds(1)) return decimal(to_milliseconds(time)) + " ms";
  if (time < std::chrono::hours(1)) return decimal(to_seconds(time)) + " s";
  return decimal(to_seconds(time) / 3600) + " h";
}

}  // namespace

void SnapshotSchedule::begin(std::optional<std::uint64_t> step, FailureHistory failures, Instant now) {
  failures_ = failures;
  begun_ = true;
  began_ = looked_ = seen_at_ = now;
  seen_step_ = step;
  announced_ = std::max(announced_, step.value_or(0));
  due_ = now + interval();
}

Duration SnapshotSchedule::interval() const {
  if (settings_.rhythm == SnapshotRhythm::time) return settings_.every;
  if (settings_.rhythm != SnapshotRhythm::automatic) return Duration{0};
  FailureHistory history = failures_;
  history.observed += begun_ ? looked_ - began_ : Duration{0};
  const Duration best = best_interval(cost_.stopped, mean_time_between_failures(history, settings_.failure_prior));
  return std::max({best, kWriteShare * cost_.written, Duration(std::chrono::seconds(1))});
}

void SnapshotSchedule::observe(std::uint64_t step, Instant now) {
  looked_ = now;
  if (!seen_step_) {
    seen_step_ = step;
    seen_at_ = now;
  }
  if (step <= *seen_step_ || now <= seen_at_) return;
  const double steps_per_second = static_cast<double>(step - *seen_step_) / to_seconds(now - seen_at_);
  const double travelled = std::min(steps_per_second * to_seconds(kTravel), static_cast<double>(kMarginMax));
  const auto whole = static_cast<std::uint64_t>(travelled);
  const std::uint64_t travel_steps = static_cast<double>(whole) < travelled ? whole + 1 : whole;
  margin_steps_ = std::max(margin_steps_, travel_steps);
  seen_step_ = step;
  seen_at_ = now;
}

std::optional<std::uint64_t> SnapshotSchedule::next_target(std::uint64_t step, Instant now) {
  if (!begun_ || settings_.rhythm == SnapshotRhythm::off) return std::nullopt;
  const bool pace_unknown = !seen_step_;
  observe(step, now);
  if (pace_unknown) return std::nullopt;
  if (settings_.rhythm == SnapshotRhythm::steps) {
    // The next multiple that no rank can have passed by the time the order arrives.
    const std::uint64_t ahead = std::max(step + margin_steps_, announced_ + 1);
    const std::uint64_t rest = ahead % settings_.every_steps;
    announced_ = rest == 0 ? ahead : ahead + settings_.every_steps - rest;
    return announced_;
  }
  // A shorter interval than when it was set, after a measurement, counts at once.
  if (now < due_) return std::nullopt;
  announced_ = std::max(step + margin_steps_, announced_ + 1);
  return announced_;
}

void SnapshotSchedule::missed() { margin_steps_ = std::min(2 * margin_steps_, kMarginMax); }

void SnapshotSchedule::abandoned(Instant now) { due_ = now + interval(); }

void SnapshotSchedule::done(const SnapshotCost& cost, Instant now) {
  cost_ = cost;
  looked_ = now;
  due_ = now + interval();
}

std::optional<Instant> SnapshotSchedule::next_check() const {
  if (!begun_ || settings_.rhythm == SnapshotRhythm::off) return std::nullopt;
  if (settings_.rhythm == SnapshotRhythm::steps) return looked_ + kLookEach;
  // Shortly before it is due the pace of the steps is checked.
  return std::max(looked_ + kLookEach, due_ - 2 * kLookEach);
}

std::string SnapshotSchedule::explain() const {
  const std::string cost =
      format("the last copy took {}, writing it {}", readable(cost_.stopped), readable(cost_.written));
  if (settings_.rhythm != SnapshotRhythm::automatic) return format("{}: {}", describe(settings_), cost);
  FailureHistory history = failures_;
  history.observed += begun_ ? looked_ - began_ : Duration{0};
  return format("every {}: {}, a failure is expected every {} ({} seen)", readable(interval()), cost,
                readable(mean_time_between_failures(history, settings_.failure_prior)), failures_.failures);
}

}  // namespace rekindle
