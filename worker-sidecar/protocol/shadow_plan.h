// Where things lie in a rank's shadow (docs/formats/shadow.md): the header and the plan, to bytes
// and back, and the header of a slot. Decoding believes nothing. Pure.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "worker-sidecar/checkpoint/layout.h"
#include "worker-sidecar/checkpoint/plan.h"

namespace rekindle {

inline constexpr std::uint64_t kShadowMagic = 0x31304441'48534B52;  // "RKSHAD01" in memory
inline constexpr std::uint32_t kShadowVersion = 1;
inline constexpr std::uint32_t kShadowSlotsMax = 3;
inline constexpr std::size_t kShadowPlanBytesMax = 16u << 20;
inline constexpr std::uint64_t kShadowPageBytes = 4096;

struct ShadowSlotHeader {
  std::atomic<std::uint64_t> step;
  std::atomic<std::uint64_t> attempt;
};
static_assert(sizeof(ShadowSlotHeader) == 16 && std::atomic<std::uint64_t>::is_always_lock_free);

struct ShadowPiece {
  PiecePlan piece;
  std::uint64_t offset = 0;  // in a slot
  std::uint64_t bytes = 0;

  bool operator==(const ShadowPiece&) const = default;
};

struct ShadowPlan {
  std::uint32_t rank = 0;
  std::uint64_t incarnation = 0;
  std::uint64_t serial = 0;
  std::uint32_t slots = 0;
  std::uint32_t snapshot_slot = 0;
  std::uint64_t shadow_every_steps = 0;
  std::vector<ShadowPiece> pieces;
  std::uint64_t slots_offset = 0;
  std::uint64_t slot_bytes = 0;
  std::uint64_t state_offset = 0;
  std::uint64_t state_bytes = 0;

  bool operator==(const ShadowPlan&) const = default;

  std::uint64_t file_bytes() const { return slots_offset + slots * slot_bytes; }
  std::uint64_t offset_of_slot(std::uint32_t slot) const { return slots_offset + slot * slot_bytes; }
  bool has_snapshot_slot() const { return snapshot_slot < slots; }
  // Slots that alternate.
  std::uint32_t shadow_slots() const { return has_snapshot_slot() ? slots - 1 : slots; }
};

struct ShadowPurpose {
  std::uint32_t rank = 0;
  std::uint64_t incarnation = 0;
  std::uint64_t serial = 0;
  bool snapshots = false;
  std::uint64_t shadow_every_steps = 0;
  std::uint64_t state_bytes = 0;
};

// Error invalid_input when a piece names a tensor or rows that the layout does not have, or the
// plan is too long.
Result<ShadowPlan> plan_shadow(const ShadowPurpose& purpose, const Layout& layout,
                               const std::vector<PiecePlan>& pieces);

// The bytes from the file's begin to slots_offset.
std::string encode_shadow_plan(const ShadowPlan& plan);

// `front` begins at the file's begin and holds at least the plan (encode_shadow_plan's answer and
// anything behind it). Errors: corrupt, refused (a newer version).
Result<ShadowPlan> decode_shadow_plan(std::string_view front);

// How many bytes of the file decode_shadow_plan needs, from the first kShadowPageBytes of it.
Result<std::uint64_t> shadow_front_bytes(std::string_view first_page);

}  // namespace rekindle
