// Captures small state and RK_ANYWHERE tensors at a commit into the slot that the word does not name (docs/formats/control-block.md,
// "Slot"). Everything that does not change from step to step (names, sizes, places) is worked out when something is registered, so that a
// capture is a few copies and one checksum.
//
// Threads: the training thread, except value(), which others may use for the slot that the word names while the rank is pinned.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "worker-sidecar/protocol/control_block.h"

namespace rekindle {

struct CapturedValue {
  std::string name;
  const void* data = nullptr;
  std::uint64_t bytes = 0;
};

class SmallState {
 public:
  // `block` is mapped with both slots and outlives this; its sizes have been checked.
  void attach(ControlBlock& block) noexcept;

  // Bytes of payload that these values take in a slot.
  static std::uint64_t payload_bytes(const std::vector<CapturedValue>& values) noexcept;
  std::uint64_t room() const noexcept { return slot_bytes_ - sizeof(SlotHeader); }

  // What is captured from now on. The caller has checked that payload_bytes() is at most room().
  void set_values(std::vector<CapturedValue> values);
  // The value lives elsewhere from now on.
  void set_address(std::size_t index, const void* data) noexcept { values_[index].data = data; }

  // Publishing is the caller's.
  void capture(std::uint8_t slot, std::uint64_t step, std::uint64_t attempt) noexcept;

  // The slot as it is, header and payload, to where `room` bytes are; room() and the header together always fit.
  void copy_slot(std::uint8_t slot, std::byte* to, std::uint64_t room) const noexcept;

  const std::byte* value(std::uint8_t slot, std::size_t index) const noexcept {
    return slots_[slot] + sizeof(SlotHeader) + offsets_[index];
  }

 private:
  void write_names(std::uint8_t slot) noexcept;

  std::array<std::byte*, 2> slots_{};
  std::uint64_t slot_bytes_ = 0;
  std::vector<CapturedValue> values_;
  std::vector<std::uint64_t> offsets_;  // of the values in the payload
  std::uint32_t payload_bytes_ = 0;
  std::array<bool, 2> names_are_there_{};
};

}  // namespace rekindle
