// The one place where time is read.
#pragma once

#include <string>

#include "common/base/instant.h"

namespace rekindle {

// CLOCK_MONOTONIC.
Instant monotonic_now();

// Wall-clock time in the form that Kubernetes uses: 2026-01-31T12:00:00.123456Z. For people and for
// the API only.
std::string wall_time_rfc3339();

}  // namespace rekindle
