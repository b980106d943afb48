// How long a breakpoint may take: where neither the job, its policy nor the chart says, and at
// most.
#pragma once

#include <chrono>

namespace rekindle {

inline constexpr std::chrono::seconds kBreakpointDeadlineDefault{60};
inline constexpr std::chrono::seconds kBreakpointDeadlineMax{3600};

}  // namespace rekindle
