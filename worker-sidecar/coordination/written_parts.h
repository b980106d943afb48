// A pod's report of what it has written, in as many messages as frames need. Pure.
#pragma once

#include <cstdint>

#include "worker-sidecar/coordination/output.h"

namespace rekindle {

// All but the last one have `more` and some of the ranks only; the last has the rest.
void send_in_parts(std::uint32_t to, const PodWrittenMessage& written, CoordinationOutputs& out);

}  // namespace rekindle
