// The memory that a rank shares with its sidecar. Layout and rules: docs/formats/control-block.md.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "common/base/enum_names.h"

namespace rekindle {

inline constexpr std::uint64_t kControlMagic = 0x31304C5254434B52;  // "RKCTRL01" in memory
inline constexpr std::uint32_t kControlVersion = 1;
inline constexpr std::size_t kControlSlotsOffset = 4096;
inline constexpr std::size_t kRebuildWords = 40;  // of text in an order to rebuild
inline constexpr std::uint32_t kFutexOwnerDied = 0x40000000;
inline constexpr std::uint32_t kFutexWaiters = 0x80000000;

enum class RankPhase : std::uint8_t {
  starting = 0,
  restoring = 1,
  between = 2,
  computing = 3,
  updating = 4,
  waiting_at_update = 5,
  waiting_at_step = 6,
  collective_failed = 7,
  finished = 8,
  evaluating = 9,
  compiling = 10,
  waiting_for_data = 11,
  // registered memory holds something else; behind the clean ones, so that it is dirty like what we
  // do not know
  swapped = 12,
};

constexpr auto enum_names(RankPhase) {
  return std::to_array<EnumName<RankPhase>>({
      {RankPhase::starting, "starting"},
      {RankPhase::restoring, "restoring"},
      {RankPhase::between, "between"},
      {RankPhase::computing, "computing"},
      {RankPhase::updating, "updating"},
      {RankPhase::waiting_at_update, "waiting_at_update"},
      {RankPhase::waiting_at_step, "waiting_at_step"},
      {RankPhase::collective_failed, "collective_failed"},
      {RankPhase::finished, "finished"},
      {RankPhase::evaluating, "evaluating"},
      {RankPhase::compiling, "compiling"},
      {RankPhase::waiting_for_data, "waiting_for_data"},
      {RankPhase::swapped, "swapped"},
  });
}

// A phase comes from memory that a rank writes: a number that is none of them is starting, which is
// dirty.
constexpr std::string_view to_string(RankPhase phase) {
  return to_string<RankPhase>(phase <= RankPhase::swapped ? phase : RankPhase::starting);
}

enum class GateOrder : std::uint32_t { go_on = 0, stop = 1, rebuild = 2 };

// The rank's word, taken apart.
struct RankStatus {
  std::uint64_t step = 0;
  RankPhase phase = RankPhase::starting;
  std::uint8_t slot = 0;

  bool operator==(const RankStatus&) const = default;
};

constexpr std::uint64_t encode_word(RankStatus word) {
  return word.step << 16 | static_cast<std::uint64_t>(word.phase) << 8 | word.slot;
}
constexpr RankStatus decode_word(std::uint64_t value) {
  return {value >> 16, static_cast<RankPhase>(value >> 8 & 0xff), static_cast<std::uint8_t>(value & 0xff)};
}

// Whether the registered memory is the result of exactly word.step updates. A phase that we do not
// know is dirty.
constexpr bool is_clean(RankStatus word) {
  return word.phase >= RankPhase::between && word.phase <= RankPhase::waiting_for_data &&
         word.phase != RankPhase::updating;
}

struct ControlBlock {
  // Written once by the sidecar.
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t total_bytes;
  std::uint32_t rank;
  std::uint32_t world_size;
  std::uint64_t incarnation;
  std::uint32_t slot_bytes;
  std::uint32_t slot_offset;

  // Written by the rank's training thread.
  alignas(64) std::atomic<std::uint64_t> word;
  std::atomic<std::uint64_t> attempt;
  std::atomic<std::uint64_t> rebuilt;

  // Written by the sidecar.
  alignas(64) std::atomic<std::uint32_t> hold;
  std::atomic<std::uint32_t> order;
  std::atomic<std::uint64_t> permit;
  std::atomic<std::uint32_t> wake_word;
  std::atomic<std::uint64_t> snapshot_step;
  std::atomic<std::uint64_t> rebuild_term;
  std::atomic<std::uint64_t> rebuild_step;

  // Written by the library's thread in the rank, and by the kernel when that thread ends.
  alignas(64) std::atomic<std::uint32_t> owner;
  std::atomic<std::uint32_t> owner_ready;

  // Written by the sidecar; read and written through rebuild_order.h.
  alignas(64) std::array<std::atomic<std::uint64_t>, kRebuildWords> rebuild_text;
};

struct SlotHeader {
  std::uint64_t step;
  std::uint64_t attempt;
  std::uint32_t bytes;
  std::uint32_t entries;
  std::uint64_t checksum;
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<std::uint32_t>::is_always_lock_free);
static_assert(offsetof(ControlBlock, incarnation) == 24 && offsetof(ControlBlock, slot_offset) == 36);
static_assert(offsetof(ControlBlock, word) == 64 && offsetof(ControlBlock, attempt) == 72 &&
              offsetof(ControlBlock, rebuilt) == 80);
static_assert(offsetof(ControlBlock, hold) == 128 && offsetof(ControlBlock, order) == 132);
static_assert(offsetof(ControlBlock, permit) == 136 && offsetof(ControlBlock, wake_word) == 144);
static_assert(offsetof(ControlBlock, snapshot_step) == 152 && offsetof(ControlBlock, rebuild_term) == 160 &&
              offsetof(ControlBlock, rebuild_step) == 168);
static_assert(offsetof(ControlBlock, owner) == 192 && offsetof(ControlBlock, owner_ready) == 196);
static_assert(offsetof(ControlBlock, rebuild_text) == 256);
static_assert(sizeof(ControlBlock) == 576 && sizeof(SlotHeader) == 32);

}  // namespace rekindle
