// How often a periodic checkpoint is worth its cost. Pure.
//
// Source: J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart
// dumps" (2006), equation 37, which refines J. W. Young's first order sqrt(2 C M) (1974). C: how
// long training stands for one checkpoint, M: mean time between failures.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "common/base/instant.h"
#include "common/contract/wall_time.h"

namespace rekindle {

// Training time between the end of one checkpoint and the begin of the next that loses the least.
// For C below 2 M Daly's series, otherwise M: a checkpoint that costs more than failures do is made
// once in the time of a failure. Both are positive; C of 0 counts as a microsecond.
Duration best_interval(Duration checkpoint_cost, Duration mean_time_between_failures);

// What is known of a job's failures so far. With nothing seen the expectation is `prior`; every
// failure and every quiet hour moves it. (prior + observed) / (1 + failures): the mean of the
// posterior's rate when one failure in `prior` had been seen beforehand.
struct FailureHistory {
  std::uint64_t failures = 0;
  Duration observed{0};
};
Duration mean_time_between_failures(const FailureHistory& history, Duration prior);

// A job that begins attempt `attempt` now, whose oldest record is of `first` (nothing: it cannot be
// read): every attempt before this one ended in a failure.
FailureHistory history_of(std::uint64_t attempt, std::optional<WallTime> first, WallTime now);

}  // namespace rekindle
