#include "worker-sidecar/checkpoint/cursor.h"

#include <algorithm>
#include <string>

#include "common/base/format.h"

namespace rekindle {
namespace {

std::uint64_t little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

std::string describe(std::uint32_t rank, const Cursor& cursor) {
  return format("rank {} was at sample {} of epoch {}", rank, cursor.samples, cursor.epoch);
}

}  // namespace

std::vector<const ManifestState*> find_cursor(const Manifest& manifest) {
  std::vector<const ManifestState*> copies;
  for (const ManifestState& state : manifest.states) {
    if (state.name == kCursorName) copies.push_back(&state);
  }
  std::ranges::sort(copies, {}, &ManifestState::rank);
  return copies;
}

Result<Cursor> decode_cursor(std::string_view bytes) {
  if (bytes.size() != kCursorBytes) {
    return fail(ErrorCode::corrupt, format("a cursor has {} bytes instead of {}", bytes.size(), kCursorBytes));
  }
  return Cursor{.epoch = little_endian(bytes.substr(0, 8)), .samples = little_endian(bytes.substr(8))};
}

Result<Cursor> agree_on_cursor(std::string_view copies, std::span<const std::uint32_t> ranks) {
  if (ranks.empty()) return fail(ErrorCode::not_found, "the checkpoint has no cursor");
  const Result<Cursor> first = decode_cursor(copies.substr(0, kCursorBytes));
  for (std::size_t i = 1; first && i < ranks.size(); ++i) {
    const Result<Cursor> other = decode_cursor(copies.substr(std::min(copies.size(), i * kCursorBytes), kCursorBytes));
    if (!other) return other;
    if (*other != *first) {
      return fail(ErrorCode::corrupt, format("the ranks do not agree on how far the data was read: {}, {}; rk_cursor "
                                             "counts over all ranks and has to be equal on each",
                                             describe(ranks[0], *first), describe(ranks[i], *other)));
    }
  }
  return first;
}

}  // namespace rekindle
