// Copies this rank's share into its shadow: at every k-th commit, and at a step gate when the
// sidecar has requested a snapshot of exactly that step (docs/formats/shadow.md). Both happen in
// the training thread while the registered memory is the result of that many updates, so nothing
// has to be held.
//
// Why a snapshot is taken behind a step gate: the rank's fence in the gate pairs with the
// sidecar's, so that a rank which the sidecar saw at or before the step has seen the order. Without
// an order and between the k-th steps this costs a load and a comparison.
//
// Threads: the training thread, except offer(), which the library's thread calls.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "worker-sidecar/protocol/local_message.h"
#include "worker-sidecar/runtime/src/gates.h"
#include "worker-sidecar/runtime/src/registry.h"
#include "worker-sidecar/runtime/src/shadow_mapping.h"
#include "worker-sidecar/runtime/src/small_state.h"

namespace rekindle::runtime {

class ShadowKeeper {
 public:
  // The copy of a snapshot that was taken lies in `mapping`, which stays as it is until the next
  // snapshot of the same mapping.
  using Report = std::function<void(const SnapshottedMessage&, const std::shared_ptr<const ShadowMapping>& mapping)>;

  // What is copied; both outlive this.
  ShadowKeeper(const Registry& registry, const SmallState& small_state)
      : registry_(registry), small_state_(small_state) {}

  // `report` is called in the training thread after each snapshot.
  void set_report(Report report) { report_ = std::move(report); }

  // Library thread: the next gate or commit goes on with this one. Null: with none.
  void offer(std::shared_ptr<ShadowMapping> mapping);

  // What is registered has changed: where things lie is looked up again, and a share that no longer
  // fits ends this shadow.
  void registry_changed() noexcept { resolved_ = false; }

  // The rank is at this step without having made the ones before: it has loaded a checkpoint.
  void went_to(std::uint64_t step) noexcept;

  bool due_at_gate(std::uint64_t snapshot_step, std::uint64_t step) const noexcept {
    return (snapshot_step == step && step != 0 && step != last_snapshot_) || offered_.load(std::memory_order_relaxed);
  }
  // Behind a step gate that was passed, with the word that was published there.
  void at_gate(std::uint64_t snapshot_step, RankStatus word, std::uint64_t attempt);

  bool due_at_commit(std::uint64_t step) const noexcept { return step == next_shadow_step_; }
  // The step has just been published.
  void at_commit(RankStatus word, std::uint64_t attempt);

 private:
  struct Copy {
    const std::byte* from = nullptr;            // plain memory
    const RegisteredMemory* array = nullptr;    // strided or of a device
    std::optional<std::size_t> captured_index;  // in the small state's slot
    // of the array or the captured value
    std::uint64_t begin_byte = 0;
    std::uint64_t to_offset = 0;
    std::uint64_t bytes = 0;
  };

  void adopt() noexcept;
  Status resolve();
  Status copy_one(const Copy& copy, std::byte* to, std::uint8_t state_slot) const;
  Status copy_into(std::uint32_t slot, RankStatus word, std::uint64_t attempt);

  const Registry& registry_;
  const SmallState& small_state_;
  Report report_;

  std::atomic<bool> offered_ = false;
  std::mutex mutex_;
  std::shared_ptr<ShadowMapping> offer_;  // guarded by mutex_

  std::shared_ptr<ShadowMapping> mapping_;
  bool resolved_ = false;
  std::vector<Copy> copies_;
  std::uint32_t next_slot_ = 0;
  std::uint64_t next_shadow_step_ = 0;  // 0: none
  std::uint64_t last_snapshot_ = 0;
  std::string reported_problem_;
};

}  // namespace rekindle::runtime
