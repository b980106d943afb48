// How long a breakpoint may take, where neither the job, its policy nor the chart says.
#pragma once

#include <chrono>

namespace rekindle {

inline constexpr std::chrono::seconds kBreakpointDeadlineDefault{60};

}  // namespace rekindle
