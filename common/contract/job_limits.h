// How large a job may be, and a time in a message.
#pragma once

#include <cstdint>

namespace rekindle {

inline constexpr std::uint32_t kPodsMax = 65'536;
inline constexpr std::uint32_t kRanksPerPodMax = 1024;
// Of any time that a message tells: four months, far from where a duration overflows.
inline constexpr double kMessageSecondsMax = 1e7;

}  // namespace rekindle
