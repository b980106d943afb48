// The one place where time is read. Any thread.
#pragma once

#include <chrono>
#include <ctime>

#include "common/base/instant.h"
#include "common/contract/wall_time.h"

namespace rekindle {

// CLOCK_MONOTONIC. Async-signal-safe.
Instant monotonic_now();

// CLOCK_REALTIME, for people and for what is compared with times that others wrote.
WallTime wall_now();

// The same in the type that certificates are made with.
std::chrono::sys_seconds wall_seconds();

// What ppoll, nanosleep and futex take: the time from `now` until `when`, zero when that is past.
timespec timespec_until(Instant when, Instant now);

}  // namespace rekindle
