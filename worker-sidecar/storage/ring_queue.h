// A WriteQueue of the kernel's (io_uring).
#pragma once

#include <memory>

#include "worker-sidecar/storage/write_queue.h"

namespace rekindle {

// Null where the kernel has none or a container may not use it.
std::unique_ptr<WriteQueue> make_ring_queue(unsigned depth);

}  // namespace rekindle
