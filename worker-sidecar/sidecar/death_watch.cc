#include "worker-sidecar/sidecar/death_watch.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <ctime>

#include "worker-sidecar/protocol/control_block.h"

namespace rekindle::sidecar {
namespace {

void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t value, const timespec* timeout) {
  ::syscall(SYS_futex, &word, FUTEX_WAIT, value, timeout, nullptr, 0);
}

void futex_wake(std::atomic<std::uint32_t>& word) {
  ::syscall(SYS_futex, &word, FUTEX_WAKE, 0x7fffffff, nullptr, nullptr, 0);
}

}  // namespace

DeathWatch::DeathWatch(std::atomic<std::uint32_t>& owner, std::atomic<std::uint32_t>& owner_ready,
                       std::function<void()> died)
    : owner_(owner), owner_ready_(owner_ready), died_(std::move(died)), thread_([this] { watch(); }) {}

DeathWatch::~DeathWatch() {
  stopping_ = true;
  // The thread may be between its check of the flag and its wait, so one wake can be lost: wake
  // until it has ended.
  while (!ended_) {
    futex_wake(owner_);
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  thread_.join();
}

void DeathWatch::watch() {
  // The rank announces the futex without waking any waiter, so its first appearance is polled.
  constexpr timespec kUntilReady{.tv_sec = 0, .tv_nsec = 2'000'000};
  while (!stopping_) {
    const std::uint32_t value = owner_.load(std::memory_order_acquire);
    if ((value & kFutexOwnerDied) != 0) {
      died_();
      break;
    }
    if (owner_ready_.load(std::memory_order_acquire) == 0) {
      futex_wait(owner_, value, &kUntilReady);
      continue;
    }
    // The kernel wakes a waiter only when this bit is there.
    if ((value & kFutexWaiters) == 0) {
      std::uint32_t expected = value;
      owner_.compare_exchange_strong(expected, value | kFutexWaiters);
      continue;
    }
    futex_wait(owner_, value, nullptr);
  }
  ended_ = true;
}

}  // namespace rekindle::sidecar
