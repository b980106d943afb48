// The cursor: how far a job has read its data, counted over all ranks, so that any number of ranks
// can go on from it. It is kept as a small state of every rank, which all hold alike
// (docs/formats/checkpoint.md). Pure.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "worker-sidecar/checkpoint/manifest.h"

namespace rekindle {

// Names of states and tensors with this beginning are the library's own.
inline constexpr std::string_view kReservedNames = "rekindle.";
inline constexpr std::string_view kCursorName = "rekindle.cursor";
inline constexpr std::uint64_t kCursorBytes = 16;

struct Cursor {
  std::uint64_t epoch = 0;
  // of this epoch, over all ranks
  std::uint64_t samples = 0;

  bool operator==(const Cursor&) const = default;
};

// The copies of the cursor in a checkpoint, by rank; empty when none was kept. Their bytes lie in
// the files that they name.
std::vector<const ManifestState*> find_cursor(const Manifest& manifest);

// From the bytes of one copy; an error when there are not kCursorBytes of them.
Result<Cursor> decode_cursor(std::string_view bytes);

// The one cursor that the copies of these ranks, one behind the other, all say. Corrupt, with two
// ranks that differ, otherwise.
Result<Cursor> agree_on_cursor(std::string_view copies, std::span<const std::uint32_t> ranks);

}  // namespace rekindle
