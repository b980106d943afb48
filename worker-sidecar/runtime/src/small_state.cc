#include "worker-sidecar/runtime/src/small_state.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/assert.h"
#include "common/base/format.h"

namespace rekindle::runtime {
namespace {

constexpr std::uint64_t kNameLengthBytes = sizeof(std::uint16_t);
constexpr std::uint64_t kValueLengthBytes = sizeof(std::uint64_t);

std::uint64_t entry_overhead(const CapturedValue& value) {
  return kNameLengthBytes + value.name.size() + kValueLengthBytes;
}

void write_entry_head(std::byte* at, const std::string& name, std::uint64_t value_bytes) {
  const auto name_bytes = static_cast<std::uint16_t>(name.size());
  std::memcpy(at, &name_bytes, sizeof name_bytes);
  std::memcpy(at + kNameLengthBytes, name.data(), name.size());
  std::memcpy(at + kNameLengthBytes + name.size(), &value_bytes, sizeof value_bytes);
}

}  // namespace

void SmallState::attach(ControlBlock& block) noexcept {
  std::byte* const start = reinterpret_cast<std::byte*>(&block);
  slot_bytes_ = block.slot_bytes;
  names_are_there_ = {};
  slots_ = {start + block.slot_offset, start + block.slot_offset + block.slot_bytes};
}

std::uint64_t SmallState::payload_bytes(const std::vector<CapturedValue>& values) noexcept {
  std::uint64_t bytes = 0;
  for (const CapturedValue& value : values) bytes += entry_overhead(value) + value.bytes;
  return bytes;
}

void SmallState::set_values(std::vector<CapturedValue> values) {
  std::vector<std::uint64_t> offsets;
  std::uint64_t at = 0;
  for (const CapturedValue& value : values) {
    if (!value.plain()) break;
    at += entry_overhead(value);
    offsets.push_back(at);
    at += value.bytes;
  }
  RK_ASSERT(std::all_of(values.begin() + static_cast<std::ptrdiff_t>(offsets.size()), values.end(),
                        [](const CapturedValue& value) { return !value.plain(); }));
  values_ = std::move(values);
  offsets_ = std::move(offsets);
  plain_bytes_ = static_cast<std::uint32_t>(at);
  for (std::vector<Late>& late : late_) late.assign(values_.size() - offsets_.size(), {});
  // The slot that the word names keeps what it holds; names go into a slot when it is next written.
  names_are_there_ = {};
}

void SmallState::write_names(std::uint8_t slot) noexcept {
  std::byte* const payload = slots_[slot] + sizeof(SlotHeader);
  for (std::size_t index = 0; index < offsets_.size(); ++index) {
    write_entry_head(payload + offsets_[index] - entry_overhead(values_[index]), values_[index].name,
                     values_[index].bytes);
  }
  names_are_there_[slot] = true;
}

bool SmallState::capture(std::uint8_t slot, std::uint64_t step, std::uint64_t attempt) {
  if (!names_are_there_[slot]) [[unlikely]]
    write_names(slot);
  std::byte* const payload = slots_[slot] + sizeof(SlotHeader);
  const std::size_t plain = offsets_.size();
  for (std::size_t index = 0; index < plain; ++index) {
    // An empty value may have no address, which memcpy does not take.
    if (values_[index].bytes != 0) std::memcpy(payload + offsets_[index], values_[index].data, values_[index].bytes);
  }
  SlotHeader header{.step = step,
                    .attempt = attempt,
                    .bytes = plain_bytes_,
                    .entries = static_cast<std::uint32_t>(plain),
                    .checksum = 0};
  bool complete = true;
  if (plain != values_.size()) [[unlikely]]
    complete = capture_late(slot, header);
  header.checksum = XXH3_64bits(payload, header.bytes);
  std::memcpy(slots_[slot], &header, sizeof header);
  return complete;
}

bool SmallState::capture_late(std::uint8_t slot, SlotHeader& header) {
  std::byte* const payload = slots_[slot] + sizeof(SlotHeader);
  bool complete = true;
  for (std::size_t index = offsets_.size(); index < values_.size(); ++index) {
    const CapturedValue& value = values_[index];
    Late& late = late_[slot][index - offsets_.size()];
    late = {};
    std::byte* const entry = payload + header.bytes;
    std::byte* const to = entry + entry_overhead(value);
    std::uint64_t bytes = value.bytes;
    if (!fetch(value, to, bytes)) {
      complete = false;
      continue;
    }
    write_entry_head(entry, value.name, bytes);
    late = {.offset = static_cast<std::uint64_t>(to - payload), .bytes = bytes};
    header.bytes = static_cast<std::uint32_t>(late.offset + bytes);
    ++header.entries;
  }
  return complete;
}

// Into `to`, which has room for value.bytes; `bytes` becomes what it took.
bool SmallState::fetch(const CapturedValue& value, std::byte* to, std::uint64_t& bytes) {
  if (value.array != nullptr) {
    const Status copied = value.bytes == 0 ? Status() : value.array->copy_out(to, 0, value.bytes);
    if (!copied)
      problem_ =
          format("{}; the step is committed, and this rank cannot give it to a checkpoint", copied.error().message);
    return copied.has_value();
  }
  const std::int64_t saved = value.save.function(value.save.context, to, value.bytes);
  if (saved < 0 || static_cast<std::uint64_t>(saved) > value.bytes) {
    problem_ = format(
        "the save function of state '{}' returned {} with room for {} bytes; the step is committed, and this rank's "
        "small state of it counts as missing",
        value.name, saved, value.bytes);
    return false;
  }
  bytes = static_cast<std::uint64_t>(saved);
  return true;
}

void SmallState::copy_slot(std::uint8_t slot, std::byte* to, std::uint64_t room) const noexcept {
  SlotHeader header{};
  std::memcpy(&header, slots_[slot], sizeof header);
  std::memcpy(to, slots_[slot], std::min<std::uint64_t>(sizeof header + header.bytes, room));
}

}  // namespace rekindle::runtime
