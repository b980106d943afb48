// How large a job may be.
#pragma once

#include <cstdint>

namespace rekindle {

inline constexpr std::uint32_t kPodsMax = 65'536;
inline constexpr std::int64_t kRanksPerPodMax = 1024;  // of the annotation

}  // namespace rekindle
