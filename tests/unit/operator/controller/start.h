// When the stories of these tests begin.
#pragma once

#include "common/base/instant.h"

namespace rekindle::op {

inline constexpr Instant kStart{std::chrono::hours(1)};

}  // namespace rekindle::op
