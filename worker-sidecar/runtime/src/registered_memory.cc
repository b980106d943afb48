#include "worker-sidecar/runtime/src/registered_memory.h"

#include "common/base/format.h"

namespace rekindle::runtime {

Status DeviceMemory::copy_out(void* to, std::uint64_t begin_byte, std::size_t bytes) const {
  const int answer = functions_.copy_out(functions_.context, to, data_ + begin_byte, bytes);
  if (answer == 0) return {};
  return fail(ErrorCode::io,
              format("{} bytes of tensor '{}' cannot be copied from its device: rk_memory.copy_out returned {}", bytes,
                     tensor_, answer));
}

Status DeviceMemory::copy_in(std::uint64_t begin_byte, const void* from, std::size_t bytes) const {
  const int answer = functions_.copy_in(functions_.context, data_ + begin_byte, from, bytes);
  if (answer == 0) return {};
  return fail(ErrorCode::io,
              format("{} bytes of tensor '{}' cannot be copied to its device: rk_memory.copy_in returned {}", bytes,
                     tensor_, answer));
}

}  // namespace rekindle::runtime
