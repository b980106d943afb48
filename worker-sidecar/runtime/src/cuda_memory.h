// rk_memory for CUDA devices. The driver is loaded at the first use (the library itself needs
// libc only), and stays loaded.
//
// Threads: any. The functions leave the calling thread's current context as it was.
#pragma once

#include <cstdint>

#include "worker-sidecar/runtime/src/failure.h"

namespace rekindle::runtime {

// UNAVAILABLE without a driver or when the device cannot be used, ARGUMENT when there is no such
// device. struct_size is left to the caller.
Outcome<rk_memory> cuda_memory(std::int32_t device);

}  // namespace rekindle::runtime
