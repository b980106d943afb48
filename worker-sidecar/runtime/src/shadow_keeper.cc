#include "worker-sidecar/runtime/src/shadow_keeper.h"

#include <chrono>
#include <cstring>
#include <utility>

namespace rekindle {

void ShadowKeeper::offer(std::shared_ptr<ShadowMapping> mapping) {
  const std::lock_guard held(mutex_);
  offer_ = std::move(mapping);
  offered_.store(true, std::memory_order_release);
}

void ShadowKeeper::adopt() noexcept {
  const std::lock_guard held(mutex_);
  offered_.store(false, std::memory_order_relaxed);
  mapping_ = std::exchange(offer_, nullptr);
  resolved_ = false;
  next_slot_ = 0;
  last_snapshot_ = 0;
  next_shadow_step_ = 0;
}

// Where the pieces of the plan lie now. False: the program has unregistered or changed one, and the sidecar will send another plan.
bool ShadowKeeper::resolve() noexcept {
  copies_.clear();
  for (const ShadowPiece& piece : mapping_->plan().pieces) {
    const RegisteredTensor* const tensor = registry_.find_tensor(piece.piece.tensor);
    if (tensor == nullptr || piece.piece.end_row > row_count(tensor->description)) return false;
    const std::uint64_t begin = piece.piece.begin_row * row_bytes(tensor->description);
    if ((piece.piece.end_row - piece.piece.begin_row) * row_bytes(tensor->description) != piece.bytes) return false;
    if (piece.bytes == 0) continue;
    Copy copy{.to_offset = piece.offset, .bytes = piece.bytes};
    if (tensor->captured_index) {
      copy.captured_index = *tensor->captured_index;
      copy.captured_offset = begin;
    } else {
      copy.from = static_cast<const std::byte*>(tensor->data) + begin;
    }
    copies_.push_back(copy);
  }
  resolved_ = true;
  return true;
}

void ShadowKeeper::copy_into(std::uint32_t slot, RankWord word, std::uint64_t attempt) noexcept {
  if (!resolved_ && !resolve()) {
    mapping_.reset();
    next_shadow_step_ = 0;
    return;
  }
  ShadowSlotHeader& header = mapping_->header_of(slot);
  std::byte* const begin = mapping_->slot_begin(slot);
  header.step.store(0, std::memory_order_relaxed);
  // Nobody may see new bytes under the old step.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (const Copy& copy : copies_) {
    const std::byte* const from = copy.from != nullptr ? copy.from : small_state_.value(word.slot & 1u, copy.captured_index) + copy.captured_offset;
    std::memcpy(begin + copy.to_offset, from, copy.bytes);
  }
  small_state_.copy_slot(word.slot & 1u, begin + mapping_->plan().state_offset, mapping_->plan().state_bytes);
  header.attempt.store(attempt, std::memory_order_relaxed);
  header.step.store(word.step, std::memory_order_release);
}

void ShadowKeeper::at_gate(std::uint64_t snapshot_step, RankWord word, std::uint64_t attempt) noexcept {
  if (offered_.load(std::memory_order_acquire)) {
    adopt();
    if (mapping_ && mapping_->plan().shadow_slots() > 0) {
      const std::uint64_t every = mapping_->plan().shadow_every_steps;
      next_shadow_step_ = (word.step / every + 1) * every;
    }
  }
  if (snapshot_step != word.step || word.step == 0 || word.step == last_snapshot_ || !mapping_ || !mapping_->plan().has_snapshot_slot()) return;
  last_snapshot_ = word.step;
  const auto begin = std::chrono::steady_clock::now();
  copy_into(mapping_->plan().snapshot_slot, word, attempt);
  if (!mapping_) return;
  const auto spent = std::chrono::ceil<std::chrono::microseconds>(std::chrono::steady_clock::now() - begin);
  report_({.step = word.step, .microseconds = static_cast<std::uint64_t>(spent.count())});
}

void ShadowKeeper::at_commit(RankWord word, std::uint64_t attempt) noexcept {
  const std::uint32_t slot = next_slot_;
  next_slot_ = (slot + 1) % mapping_->plan().shadow_slots();
  next_shadow_step_ += mapping_->plan().shadow_every_steps;
  copy_into(slot, word, attempt);
}

}  // namespace rekindle
