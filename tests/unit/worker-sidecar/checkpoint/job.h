// The job whose checkpoints the tests of this folder tell of.
#pragma once

#include "worker-sidecar/checkpoint/manifest.h"

namespace rekindle {

inline const JobIdentity kJob{"team-a", "digits", "5f1c"};

}  // namespace rekindle
