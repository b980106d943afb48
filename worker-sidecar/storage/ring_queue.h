// Queues of the kernel's (io_uring).
#pragma once

#include <memory>

#include "worker-sidecar/storage/transfer_queue.h"

namespace rekindle {

// Null where the kernel has none or a container may not use it.
std::unique_ptr<WriteQueue> make_ring_write_queue(unsigned depth);
std::unique_ptr<ReadQueue> make_ring_read_queue(unsigned depth);

}  // namespace rekindle
