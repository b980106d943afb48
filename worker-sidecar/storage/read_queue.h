// Reads that are under way while their caller goes on: as many at once as the queue is deep. The memory of a read is the kernel's until its end has been told.
// One thread. The destructor waits for all of them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rekindle {

struct ReadEnd {
  std::uint64_t tag = 0;
  std::int64_t result = 0;  // bytes read, or minus an errno
};

class ReadQueue {
 public:
  virtual ~ReadQueue() = default;

  // Minus an errno when it could not even be begun. Never more at once than the depth.
  virtual int begin(int descriptor, void* data, std::size_t bytes, std::uint64_t offset, std::uint64_t tag) = 0;

  // The next one to end, in any order. Only while one is under way.
  virtual ReadEnd wait() = 0;
};

}  // namespace rekindle
