#include "worker-sidecar/runtime/src/shadow_keeper.h"

#include <chrono>
#include <cstring>
#include <utility>

#include "common/base/format.h"
#include "common/system/clock.h"
#include "worker-sidecar/runtime/src/say.h"

namespace rekindle::runtime {

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

// Where the pieces of the plan lie now. An error when the program has unregistered or changed one;
// the sidecar will send another plan.
Status ShadowKeeper::resolve() {
  copies_.clear();
  for (const ShadowPiece& piece : mapping_->plan().pieces) {
    const RegisteredTensor* const tensor = registry_.find_tensor(piece.piece.tensor);
    const bool fits = tensor != nullptr && has_rows(tensor->description, piece.piece.begin_row, piece.piece.end_row) &&
                      rows_bytes(tensor->description, piece.piece.end_row - piece.piece.begin_row) == piece.bytes;
    if (!fits) {
      const std::string name = piece.piece.tensor;
      mapping_.reset();
      next_shadow_step_ = 0;
      return fail(ErrorCode::conflict,
                  format("tensor \"{}\" is no longer registered as it was when the copies were planned", name));
    }
    if (piece.bytes == 0) continue;
    const std::uint64_t begin = rows_bytes(tensor->description, piece.piece.begin_row);
    Copy copy{
        .captured_index = tensor->captured_index, .begin_byte = begin, .to_offset = piece.offset, .bytes = piece.bytes};
    if (tensor->array) copy.array = tensor->array.get();
    else if (!copy.captured_index) copy.from = static_cast<const std::byte*>(tensor->data) + begin;
    copies_.push_back(copy);
  }
  resolved_ = true;
  return {};
}

Status ShadowKeeper::copy_one(const Copy& copy, std::byte* to, std::uint8_t state_slot) const {
  if (copy.captured_index) {
    const std::byte* const captured = small_state_.value(state_slot, *copy.captured_index);
    if (captured == nullptr)
      return fail(ErrorCode::not_found, "a tensor that changes anywhere could not be captured with this step");
    std::memcpy(to, captured + copy.begin_byte, copy.bytes);
    return {};
  }
  if (copy.array != nullptr) return copy.array->copy_out(to, copy.begin_byte, copy.bytes);
  std::memcpy(to, copy.from, copy.bytes);
  return {};
}

Status ShadowKeeper::copy_into(std::uint32_t slot, RankStatus word, std::uint64_t attempt) {
  if (!resolved_) {
    if (Status status = resolve(); !status) return status;
  }
  ShadowSlotHeader& header = mapping_->header_of(slot);
  std::byte* const begin = mapping_->slot_begin(slot);
  header.step.store(0, std::memory_order_relaxed);
  // No reader may see new bytes under the previous step.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (const Copy& copy : copies_) {
    if (Status status = copy_one(copy, begin + copy.to_offset, word.slot & 1u); !status) return status;
  }
  small_state_.copy_slot(word.slot & 1u, begin + mapping_->plan().state_offset, mapping_->plan().state_bytes);
  header.attempt.store(attempt, std::memory_order_relaxed);
  header.step.store(word.step, std::memory_order_release);
  return {};
}

void ShadowKeeper::went_to(std::uint64_t step) noexcept {
  if (next_shadow_step_ == 0) return;
  const std::uint64_t every = mapping_->plan().shadow_every_steps;
  next_shadow_step_ = (step / every + 1) * every;
}

void ShadowKeeper::at_gate(std::uint64_t snapshot_step, RankStatus word, std::uint64_t attempt) {
  if (offered_.load(std::memory_order_acquire)) {
    adopt();
    if (mapping_ && mapping_->plan().shadow_slots() > 0) {
      next_shadow_step_ = 1;
      went_to(word.step);
    }
  }
  if (snapshot_step != word.step || word.step == 0 || word.step == last_snapshot_ || !mapping_ ||
      !mapping_->plan().has_snapshot_slot())
    return;
  last_snapshot_ = word.step;
  // A copy that does not fit any more gives the mapping up.
  const std::shared_ptr<const ShadowMapping> mapping = mapping_;
  const auto begin = monotonic_now();
  const Status copied = copy_into(mapping->plan().snapshot_slot, word, attempt);
  const auto spent = std::chrono::ceil<std::chrono::microseconds>(monotonic_now() - begin);
  SnapshottedMessage taken{.step = word.step,
                           .microseconds = static_cast<std::uint64_t>(spent.count()),
                           .ok = copied.has_value(),
                           .error = {}};
  if (!copied) taken.error = copied.error();
  report_(taken, mapping);
}

void ShadowKeeper::at_commit(RankStatus word, std::uint64_t attempt) {
  const std::uint32_t slot = next_slot_;
  next_slot_ = (slot + 1) % mapping_->plan().shadow_slots();
  next_shadow_step_ += mapping_->plan().shadow_every_steps;
  // Training goes on without this copy; the one before stands in the other slot.
  if (Status copied = copy_into(slot, word, attempt); !copied && reported_problem_ != copied.error().message) {
    reported_problem_ = copied.error().message;
    say(format("step {} is not in the shadow: {}", word.step, reported_problem_));
  }
}

}  // namespace rekindle::runtime
