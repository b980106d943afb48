#include "common/system/waker.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

namespace rekindle {

Waker::Waker() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void Waker::wake() const {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(event_.get(), &one, sizeof one);
}

bool Waker::take() const {
  std::uint64_t count = 0;
  return ::read(event_.get(), &count, sizeof count) == sizeof count;
}

}  // namespace rekindle
