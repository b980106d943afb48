#include "worker-sidecar/runtime/src/gates.h"

#include "worker-sidecar/runtime/src/futex.h"

namespace rekindle::runtime {
namespace {

// How long a closed gate sleeps before it checks by itself.
constexpr Duration kPollInterval = std::chrono::milliseconds(200);

}  // namespace

// Open gates with an order. One to rebuild stays until the sidecar is notified that it was carried
// out, and then lets through.
Gates::GateState Gates::evaluate_order(HonoredOrders honored) const noexcept {
  if (block_->order.load(std::memory_order_relaxed) != static_cast<std::uint32_t>(GateOrder::rebuild))
    return GateState::stop;
  return honored == HonoredOrders::rebuild_and_stop && rebuild_is_pending(*block_) ? GateState::rebuild
                                                                                   : GateState::open;
}

Gates::GateState Gates::evaluate_hold(std::uint32_t hold, std::uint64_t permitted_step,
                                      HonoredOrders honored) const noexcept {
  if (ended_.load(std::memory_order_acquire)) return GateState::stop;
  // The others have the order as well, and wait for this rank.
  if (given_up(hold))
    return honored == HonoredOrders::rebuild_and_stop && rebuild_is_ordered() ? GateState::rebuild : GateState::open;
  // Step 0 is never an update's step, so 0 serves as "none" on both sides.
  if (permitted_step != 0 && block_->permit.load(std::memory_order_acquire) == permitted_step) return GateState::open;
  return GateState::closed;
}

GateAnswer Gates::wait(RankPhase waiting, std::uint64_t permitted_step, HonoredOrders honored) noexcept {
  publish_phase(waiting);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (;;) {
    const std::uint32_t wake_word = block_->wake_word.load(std::memory_order_acquire);
    switch (evaluate(permitted_step, honored)) {
      case GateState::stop: return GateAnswer::stop;
      case GateState::rebuild:
        // Clean, and no other rank waits for it at the gate that it leaves.
        publish_phase(RankPhase::collective_failed);
        return GateAnswer::rebuild;
      case GateState::closed: wait_on_shared_word(block_->wake_word, wake_word, kPollInterval); break;
      case GateState::open: return GateAnswer::passed;
    }
  }
}

GateAnswer Gates::wait_for_answer(std::uint32_t earlier_hold, bool can_rebuild) noexcept {
  std::uint32_t answering_hold = 0;
  for (;;) {
    const std::uint32_t wake_word = block_->wake_word.load(std::memory_order_acquire);
    const std::uint32_t hold = block_->hold.load(std::memory_order_acquire);
    if (ended_.load(std::memory_order_acquire)) return GateAnswer::stop;
    const bool without_sidecar = without_sidecar_.load(std::memory_order_acquire);
    if ((hold == 0 || without_sidecar) && rebuild_is_ordered()) return GateAnswer::rebuild;
    if (without_sidecar) return GateAnswer::stop;
    if (hold == 0) {
      if (block_->order.load(std::memory_order_relaxed) == static_cast<std::uint32_t>(GateOrder::stop))
        return GateAnswer::stop;
      if (answering_hold != 0 && !can_rebuild) return GateAnswer::stop;
      earlier_hold = 0;
    } else if (hold != earlier_hold) {
      answering_hold = hold;
    }
    wait_on_shared_word(block_->wake_word, wake_word, kPollInterval);
  }
}

void Gates::give_up_hold() noexcept {
  given_up_hold_.store(block_->hold.load(std::memory_order_acquire), std::memory_order_release);
  without_sidecar_.store(true, std::memory_order_release);
  wake_shared_word(block_->wake_word);
}

void Gates::end() noexcept {
  ended_.store(true, std::memory_order_release);
  wake_shared_word(block_->wake_word);
}

}  // namespace rekindle::runtime
