// `rekindle run`: the lives of the ranks one after the other, outside a pod with the sidecar inside
// this process, in a pod with the pod's.
#pragma once

#include "worker-sidecar/launcher/options.h"
#include "worker-sidecar/launcher/run_loop.h"

namespace rekindle {

// Blocks until the run is over; the exit code of the program. Call on the main thread, before any
// other thread exists.
int run_ranks(const RunOptions& options, const SignalWatcher& signals);

}  // namespace rekindle
