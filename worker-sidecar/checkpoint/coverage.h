// Do pieces cover a tensor exactly once? Pure.
#pragma once

#include <string>
#include <vector>

#include "worker-sidecar/checkpoint/manifest.h"

namespace rekindle {

// More pieces of one tensor than this are refused: they are compared with each other.
inline constexpr std::size_t kPiecesMax = 16'384;

// Elements of a box.
std::uint64_t volume_of(const Extents& shape);

// The first thing wrong, as the rest of a message that begins with the tensor ("has no piece that
// covers ..."); empty when every element of the global shape lies in exactly one piece. An empty
// tensor has at least one piece, too.
std::string find_coverage_fault(const Extents& global_shape, const std::vector<ManifestPiece>& pieces);

// "[0, 3) x [2, 4)" for people.
std::string describe_box(const Extents& offset, const Extents& shape);
std::string describe_shape(const Extents& shape);  // "[64, 32]"

}  // namespace rekindle
