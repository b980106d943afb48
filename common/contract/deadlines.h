// How long a breakpoint may take: where neither the job, its policy nor the chart says, and at
// most. What a pod has besides, until its grace is over.
#pragma once

#include <chrono>

namespace rekindle {

inline constexpr std::chrono::seconds kBreakpointDeadlineDefault{60};
inline constexpr std::chrono::seconds kBreakpointDeadlineMax{3600};
// SIGTERM, the end of the main, the sidecar's tail
inline constexpr std::chrono::seconds kGraceMargin{15};

}  // namespace rekindle
