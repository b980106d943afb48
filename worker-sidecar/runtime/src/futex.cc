#include "worker-sidecar/runtime/src/futex.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace rekindle::runtime {

void wait_on_shared_word(std::atomic<std::uint32_t>& word, std::uint32_t value, Duration time_max) noexcept {
  const timespec timeout{.tv_sec = static_cast<time_t>(time_max.count() / 1'000'000'000),
                         .tv_nsec = static_cast<long>(time_max.count() % 1'000'000'000)};
  ::syscall(SYS_futex, &word, FUTEX_WAIT, value, &timeout, nullptr, 0);
}

void wake_shared_word(std::atomic<std::uint32_t>& word) noexcept {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace rekindle::runtime
