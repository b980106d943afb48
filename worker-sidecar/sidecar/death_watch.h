// Notices the end of a process that has a robust futex in its control block, 0.1 to 0.2 ms after
// SIGKILL whatever the size of its memory (PROTOCOL P14). One thread, which sleeps in FUTEX_WAIT.
//
// `died` is called at most once, on the watching thread; it must only hand the news over. The
// control block's memory must stay mapped until the watch is destroyed.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>

namespace rekindle::sidecar {

class DeathWatch {
 public:
  DeathWatch(std::atomic<std::uint32_t>& owner, std::atomic<std::uint32_t>& owner_ready, std::function<void()> died);
  ~DeathWatch();
  DeathWatch(const DeathWatch&) = delete;
  DeathWatch& operator=(const DeathWatch&) = delete;

 private:
  void watch();

  std::atomic<std::uint32_t>& owner_;
  std::atomic<std::uint32_t>& owner_ready_;
  std::function<void()> died_;
  std::atomic<bool> stopping_ = false;
  std::atomic<bool> ended_ = false;
  std::thread thread_;
};

}  // namespace rekindle::sidecar
