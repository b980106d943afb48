// What was captured with the committed step, back into the program's memory: RK_ANYWHERE tensors,
// small state, the cursor. A step that was begun and will not be made may have changed them.
//
// Threads: the training thread.
#pragma once

#include <cstdint>

#include "worker-sidecar/runtime/src/failure.h"
#include "worker-sidecar/runtime/src/registry.h"
#include "worker-sidecar/runtime/src/small_state.h"

namespace rekindle::runtime {

struct Rollback {
  // some state was not captured, and all of them are left as they are
  bool state_missing = false;
};

// From `slot`, which the rank's word names. STATE when a tensor was not captured or cannot be
// written, MISMATCH when a load function refuses its bytes.
Outcome<Rollback> roll_back(const Registry& registry, const SmallState& small_state, std::uint8_t slot);

}  // namespace rekindle::runtime
