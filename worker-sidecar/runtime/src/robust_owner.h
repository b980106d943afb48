// The robust futex of PROTOCOL P14: while this is held, the kernel notifies the sidecar that the
// process has ended, before it frees the process's memory. Why it is a raw robust list of the
// library's own thread: docs/decisions/0003-robust-futex-in-the-library-thread.md.
//
// Threads: hold() and release() on the thread that owns the futex; this object outlives that thread
// or is released by it.
#pragma once

#include <linux/futex.h>

#include <atomic>
#include <cstdint>

#include "common/base/error.h"

namespace rekindle::runtime {

class RobustOwner {
 public:
  RobustOwner() = default;
  RobustOwner(const RobustOwner&) = delete;
  RobustOwner& operator=(const RobustOwner&) = delete;

  // `owner` becomes the id of this thread, `ready` 1. Both lie in the control block and stay mapped
  // while held.
  Status hold(std::atomic<std::uint32_t>& owner, std::atomic<std::uint32_t>& ready);

  // An orderly end: `ready` 0, `owner` 0, and the kernel reports no death.
  void release();

 private:
  robust_list_head head_{};
  robust_list node_{};
  std::atomic<std::uint32_t>* owner_ = nullptr;
  std::atomic<std::uint32_t>* ready_ = nullptr;
};

}  // namespace rekindle::runtime
