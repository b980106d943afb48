// The rank's side of the two gates (docs/formats/control-block.md, PROTOCOL P3): one word that only
// the training thread writes, and a check of the hold that only the sidecar writes.
//
// Why a fence stands between them: rank and sidecar each store their own word and then load the
// other's. With plain stores both loads may come first, so that the rank updates while the sidecar
// reads: a torn stripe with a valid hash. A rank that waits and tries again goes through the
// same store, fence and load.
//
// Open gates cost no system call and no clock. A gate that is closed sleeps on the wake_word; the
// sleep ends by itself now and then, because a sidecar may die between its store and its wake.
//
// Threads: everything belongs to the training thread, except give_up_hold() and end(), which the
// library's thread calls.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "worker-sidecar/protocol/control_block.h"
#include "worker-sidecar/protocol/rebuild_order.h"

namespace rekindle::runtime {

enum class GateAnswer : std::uint8_t { passed, stop, rebuild };

// A rank that is carrying out an order to rebuild, or leaves for good, passes gates although there
// is one.
enum class HonoredOrders : std::uint8_t { rebuild_and_stop, stop };

class Gates {
 public:
  // `block` outlives this.
  void attach(ControlBlock& block) noexcept { block_ = &block; }
  bool attached() const noexcept { return block_ != nullptr; }

  RankStatus word() const noexcept { return word_; }

  // Says what the thread does, or that a step is committed with its state in `slot`. What was
  // stored before is visible to the process that reads the word.
  void publish(RankStatus word) noexcept {
    word_ = word;
    block_->word.store(encode_word(word), std::memory_order_release);
  }
  void publish_phase(RankPhase phase) noexcept { publish({word_.step, phase, word_.slot}); }

  // The step at which the sidecar requests a snapshot; behind a gate that was passed it is not
  // older than the gate.
  std::uint64_t snapshot_step() const noexcept { return block_->snapshot_step.load(std::memory_order_acquire); }

  // Passes into `through`, or waits. After `stop` the word says where the rank stopped; after
  // `rebuild` that it will not make this update any more.
  GateAnswer pass_step_gate(RankPhase through, HonoredOrders honored = HonoredOrders::rebuild_and_stop) noexcept {
    return pass(through, RankPhase::waiting_at_step, 0, honored, [] {});
  }
  GateAnswer pass_update_gate() noexcept {
    return pass(RankPhase::updating, RankPhase::waiting_at_update, word_.step + 1, HonoredOrders::rebuild_and_stop,
                [] {});
  }

  // After a failed collective: reports it and waits for the order to stop or to rebuild, which is
  // the only way out. An order to rebuild that is there already answers at once. A hold that was
  // there before the report may end with another order; the first one after it decides. A rank that
  // can rebuild waits for one of the two orders, however many holds there are until then.
  template <typename Report>
  GateAnswer wait_for_order(bool can_rebuild, Report&& report) {
    const std::uint32_t earlier_hold = block_->hold.load(std::memory_order_acquire);
    if (earlier_hold == 0 && rebuild_is_ordered()) return GateAnswer::rebuild;
    report();
    return wait_for_answer(earlier_hold, can_rebuild);
  }

  // Rebuilding: the newest order, and that it was carried out with the memory that `word` names.
  std::optional<RebuildOrder> rebuild_order() const { return read_rebuild_order(*block_); }
  bool rebuild_is_ordered() const noexcept {
    return block_->order.load(std::memory_order_acquire) == static_cast<std::uint32_t>(GateOrder::rebuild) &&
           rebuild_is_pending(*block_);
  }
  bool stop_is_ordered() const noexcept {
    return ended_.load(std::memory_order_acquire) ||
           (block_->hold.load(std::memory_order_acquire) == 0 &&
            block_->order.load(std::memory_order_relaxed) == static_cast<std::uint32_t>(GateOrder::stop));
  }
  void publish_rebuilt(RankStatus word, std::uint64_t term) noexcept {
    publish(word);
    block_->rebuilt.store(term, std::memory_order_release);
  }
  std::uint64_t rebuilt() const noexcept { return block_->rebuilt.load(std::memory_order_relaxed); }

  // Library thread: the sidecar is gone for good. The gates open for the hold that it left (a later
  // one has another number and counts again), and the rank does not wait for its orders.
  void give_up_hold() noexcept;
  // Library thread: a sidecar is there again.
  void expect_orders() noexcept { without_sidecar_.store(false, std::memory_order_release); }
  // Library thread: no gate is passed any more, whatever the sidecar's words say.
  void end() noexcept;

  bool given_up(std::uint32_t hold) const noexcept { return given_up_hold_.load(std::memory_order_acquire) == hold; }

 protected:
  // Passes only when the gate is open after the word has said so: a rank that leaves a closed gate
  // looks again, since the next hold may have come in between. `said` is called between the word
  // and the look, for a test that is the sidecar at that very moment.
  template <typename Said>
  GateAnswer pass(RankPhase through, RankPhase waiting, std::uint64_t permitted_step, HonoredOrders honored,
                  Said&& said) noexcept {
    for (;;) {
      publish_phase(through);
      std::atomic_thread_fence(std::memory_order_seq_cst);
      said();
      if (evaluate(permitted_step, honored) == GateState::open) [[likely]]
        return GateAnswer::passed;
      const GateAnswer answer = wait(waiting, permitted_step, honored);
      if (answer != GateAnswer::passed) return answer;
    }
  }

 private:
  enum class GateState : std::uint8_t { open, closed, stop, rebuild };

  GateState evaluate(std::uint64_t permitted_step, HonoredOrders honored) const noexcept {
    const std::uint32_t hold = block_->hold.load(std::memory_order_acquire);
    if ((hold | static_cast<std::uint32_t>(ended_.load(std::memory_order_relaxed))) == 0) [[likely]] {
      if (block_->order.load(std::memory_order_relaxed) == static_cast<std::uint32_t>(GateOrder::go_on)) [[likely]]
        return GateState::open;
      return evaluate_order(honored);
    }
    return evaluate_hold(hold, permitted_step, honored);
  }

  GateState evaluate_order(HonoredOrders honored) const noexcept;
  GateState evaluate_hold(std::uint32_t hold, std::uint64_t permitted_step, HonoredOrders honored) const noexcept;
  GateAnswer wait_for_answer(std::uint32_t earlier_hold, bool can_rebuild) noexcept;
  // `passed`: the gate was open while the word said that the rank waits, which permits nothing.
  GateAnswer wait(RankPhase waiting, std::uint64_t permitted_step, HonoredOrders honored) noexcept;

  ControlBlock* block_ = nullptr;
  RankStatus word_;

  std::atomic<std::uint32_t> given_up_hold_ = 0;
  std::atomic<bool> without_sidecar_ = false;
  std::atomic<bool> ended_ = false;
};

}  // namespace rekindle::runtime
