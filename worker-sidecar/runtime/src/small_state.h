// Captures small state and RK_ANYWHERE tensors at a commit into the slot that the word does not
// name (docs/formats/control-block.md, "Slot"). Everything that does not change from step to step
// (names, sizes, places) is worked out when something is registered, so that a capture is a few
// copies and one checksum. What varies in size or has to be fetched by a function comes after that,
// and is left out of the slot when its function fails: the commit stands without it.
//
// Threads: the training thread, except value(), which others may use for the slot that the word
// names while the rank is pinned.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "worker-sidecar/protocol/control_block.h"
#include "worker-sidecar/storage/array_memory.h"

namespace rekindle::runtime {

// rk_register_state_callback's `save`.
struct SaveState {
  std::int64_t (*function)(void* context, void* to, std::size_t room) = nullptr;
  void* context = nullptr;
};

struct CapturedValue {
  std::string name;
  const void* data = nullptr;
  std::uint64_t bytes = 0;             // with `save`: at most
  const ArrayMemory* array = nullptr;  // instead of data
  SaveState save = {};                 // instead of data

  bool plain() const noexcept { return array == nullptr && save.function == nullptr; }
};

class SmallState {
 public:
  // `block` is mapped with both slots and outlives this; its sizes have been checked.
  void attach(ControlBlock& block) noexcept;

  // Bytes of payload that these values take in a slot.
  static std::uint64_t payload_bytes(const std::vector<CapturedValue>& values) noexcept;
  std::uint64_t room() const noexcept { return slot_bytes_ - sizeof(SlotHeader); }

  // What is captured from now on, plain values first. The caller has checked that payload_bytes()
  // is at most room().
  void set_values(std::vector<CapturedValue> values);

  // Publishing is the caller's. False: something was left out, and problem() says what and why.
  bool capture(std::uint8_t slot, std::uint64_t step, std::uint64_t attempt);
  const std::string& problem() const noexcept { return problem_; }

  // The slot as it is, header and payload, to where `room` bytes are; room() and the header
  // together always fit.
  void copy_slot(std::uint8_t slot, std::byte* to, std::uint64_t room) const noexcept;

  // The index-th of the values as the slot has it, null when it was left out.
  const std::byte* value(std::uint8_t slot, std::size_t index) const noexcept {
    const std::uint64_t offset =
        index < offsets_.size() ? offsets_[index] : late_[slot][index - offsets_.size()].offset;
    return offset == kLeftOut ? nullptr : slots_[slot] + sizeof(SlotHeader) + offset;
  }
  std::uint64_t value_bytes(std::uint8_t slot, std::size_t index) const noexcept {
    return index < offsets_.size() ? values_[index].bytes : late_[slot][index - offsets_.size()].bytes;
  }

 private:
  static constexpr std::uint64_t kLeftOut = ~std::uint64_t{0};

  // Where a value that is not plain lies in the payload of one slot.
  struct Late {
    std::uint64_t offset = kLeftOut;
    std::uint64_t bytes = 0;
  };

  void write_names(std::uint8_t slot) noexcept;
  bool capture_late(std::uint8_t slot, SlotHeader& header);
  bool fetch(const CapturedValue& value, std::byte* to, std::uint64_t& bytes);

  std::array<std::byte*, 2> slots_{};
  std::uint64_t slot_bytes_ = 0;
  std::vector<CapturedValue> values_;
  // of the plain values in the payload
  std::vector<std::uint64_t> offsets_;
  // of payload that the plain values take
  std::uint32_t plain_bytes_ = 0;
  std::array<bool, 2> names_are_there_{};
  // of the other values, in order
  std::array<std::vector<Late>, 2> late_;
  std::string problem_;
};

}  // namespace rekindle::runtime
