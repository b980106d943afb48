#include "worker-sidecar/runtime/src/small_state.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <xxhash.h>

namespace rekindle {
namespace {

constexpr std::uint64_t kNameLengthBytes = sizeof(std::uint16_t);
constexpr std::uint64_t kValueLengthBytes = sizeof(std::uint64_t);

}  // namespace

void SmallState::attach(ControlBlock& block) noexcept {
  std::byte* const start = reinterpret_cast<std::byte*>(&block);
  slot_bytes_ = block.slot_bytes;
  names_are_there_ = {};
  slots_ = {start + block.slot_offset, start + block.slot_offset + block.slot_bytes};
}

std::uint64_t SmallState::payload_bytes(const std::vector<CapturedValue>& values) noexcept {
  std::uint64_t bytes = 0;
  for (const CapturedValue& value : values) bytes += kNameLengthBytes + value.name.size() + kValueLengthBytes + value.bytes;
  return bytes;
}

void SmallState::set_values(std::vector<CapturedValue> values) {
  std::vector<std::uint64_t> offsets;
  std::uint64_t at = 0;
  for (const CapturedValue& value : values) {
    at += kNameLengthBytes + value.name.size() + kValueLengthBytes;
    offsets.push_back(at);
    at += value.bytes;
  }
  values_ = std::move(values);
  offsets_ = std::move(offsets);
  payload_bytes_ = static_cast<std::uint32_t>(at);
  // The slot that the word names keeps what it holds; names go into a slot when it is next written.
  names_are_there_ = {};
}

void SmallState::write_names(std::uint8_t slot) noexcept {
  std::byte* const payload = slots_[slot] + sizeof(SlotHeader);
  for (std::size_t index = 0; index < values_.size(); ++index) {
    const CapturedValue& value = values_[index];
    std::byte* at = payload + offsets_[index] - kValueLengthBytes - value.name.size() - kNameLengthBytes;
    const auto name_bytes = static_cast<std::uint16_t>(value.name.size());
    std::memcpy(at, &name_bytes, sizeof name_bytes);
    std::memcpy(at + kNameLengthBytes, value.name.data(), value.name.size());
    std::memcpy(at + kNameLengthBytes + value.name.size(), &value.bytes, sizeof value.bytes);
  }
  names_are_there_[slot] = true;
}

void SmallState::capture(std::uint8_t slot, std::uint64_t step, std::uint64_t attempt) noexcept {
  if (!names_are_there_[slot]) [[unlikely]] write_names(slot);
  std::byte* const payload = slots_[slot] + sizeof(SlotHeader);
  for (std::size_t index = 0; index < values_.size(); ++index) {
    // An empty value may have no address, which memcpy does not take.
    if (values_[index].bytes != 0) std::memcpy(payload + offsets_[index], values_[index].data, values_[index].bytes);
  }
  const SlotHeader header{.step = step,
                          .attempt = attempt,
                          .bytes = payload_bytes_,
                          .entries = static_cast<std::uint32_t>(values_.size()),
                          .checksum = XXH3_64bits(payload, payload_bytes_)};
  std::memcpy(slots_[slot], &header, sizeof header);
}

void SmallState::copy_slot(std::uint8_t slot, std::byte* to, std::uint64_t room) const noexcept {
  SlotHeader header{};
  std::memcpy(&header, slots_[slot], sizeof header);
  std::memcpy(to, slots_[slot], std::min<std::uint64_t>(sizeof header + header.bytes, room));
}

}  // namespace rekindle
