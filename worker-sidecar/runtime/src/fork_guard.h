// Tells a forked child from the process that opened the session, without a system call: one page
// that the kernel empties in every child, however it was made (fork, vfork-like clones, workers of
// data loaders).
#pragma once

#include <cstdint>

#include "worker-sidecar/runtime/src/failure.h"

namespace rekindle::runtime {

class ForkGuard {
 public:
  static Outcome<ForkGuard> make();

  ForkGuard() = default;
  ForkGuard(ForkGuard&& other) noexcept;
  ForkGuard& operator=(ForkGuard&& other) noexcept;
  ~ForkGuard();

  bool in_child() const noexcept { return *mark_ == 0; }

 private:
  explicit ForkGuard(volatile std::uint32_t* mark) : mark_(mark) {}

  volatile std::uint32_t* mark_ = nullptr;
};

}  // namespace rekindle::runtime
