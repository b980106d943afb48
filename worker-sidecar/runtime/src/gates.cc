#include "worker-sidecar/runtime/src/gates.h"

#include "worker-sidecar/runtime/src/futex.h"

namespace rekindle {
namespace {

// How long a closed gate sleeps before it looks by itself.
constexpr Duration kLookAgain = std::chrono::milliseconds(200);

}  // namespace

Gates::Look Gates::look_closely(std::uint32_t hold, std::uint64_t permitted_step) const noexcept {
  if (ended_.load(std::memory_order_acquire)) return Look::stop;
  if (given_up(hold)) return Look::open;
  // Step 0 is never an update's step, so 0 serves as "none" on both sides.
  if (permitted_step != 0 && block_->permit.load(std::memory_order_acquire) == permitted_step) return Look::open;
  return Look::closed;
}

GateAnswer Gates::wait(RankPhase through, RankPhase waiting, std::uint64_t permitted_step) noexcept {
  for (;;) {
    publish_phase(waiting);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    const std::uint32_t bell = block_->bell.load(std::memory_order_acquire);
    switch (look(permitted_step)) {
      case Look::stop: return GateAnswer::stop;
      case Look::closed: wait_on_shared_word(block_->bell, bell, kLookAgain); continue;
      case Look::open: break;
    }
    publish_phase(through);
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (look(permitted_step) == Look::open) return GateAnswer::passed;
  }
}

void Gates::wait_for_answer(std::uint32_t earlier_hold) noexcept {
  std::uint32_t answering_hold = 0;
  for (;;) {
    const std::uint32_t bell = block_->bell.load(std::memory_order_acquire);
    const std::uint32_t hold = block_->hold.load(std::memory_order_acquire);
    if (ended_.load(std::memory_order_acquire) || nobody_orders_.load(std::memory_order_acquire)) return;
    if (hold == 0) {
      if (block_->order.load(std::memory_order_relaxed) == static_cast<std::uint32_t>(GateOrder::stop) || answering_hold != 0) return;
      earlier_hold = 0;
    } else if (hold != earlier_hold) {
      answering_hold = hold;
    }
    wait_on_shared_word(block_->bell, bell, kLookAgain);
  }
}

void Gates::give_up_hold() noexcept {
  given_up_hold_.store(block_->hold.load(std::memory_order_acquire), std::memory_order_release);
  nobody_orders_.store(true, std::memory_order_release);
  wake_shared_word(block_->bell);
}

void Gates::end() noexcept {
  ended_.store(true, std::memory_order_release);
  wake_shared_word(block_->bell);
}

}  // namespace rekindle
