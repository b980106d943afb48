// Reads, or writes, that are under way while their caller goes on: as many at once as the queue is
// deep. The memory of a read is the kernel's, that of a write stays untouched, until the end of the
// transfer has been reported. One thread. The destructor waits for all of them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rekindle {

struct TransferEnd {
  std::uint64_t tag = 0;
  // bytes moved, or minus an errno
  std::int64_t result = 0;
};

// `Memory` is what a transfer empties or fills: const void for writes, void for reads.
template <typename Memory>
class TransferQueue {
 public:
  virtual ~TransferQueue() = default;

  // Minus an errno when it could not even be begun. Never more at once than the depth.
  virtual int begin(int descriptor, Memory* data, std::size_t bytes, std::uint64_t offset, std::uint64_t tag) = 0;

  // The next one to end, in any order. Only while one is under way.
  virtual TransferEnd wait() = 0;
};

using WriteQueue = TransferQueue<const void>;
using ReadQueue = TransferQueue<void>;

}  // namespace rekindle
