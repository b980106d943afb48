#include "worker-sidecar/checkpoint/coverage.h"

#include <algorithm>

#include "common/base/format.h"

namespace rekindle {
namespace {

bool overlap(const ManifestPiece& left, const ManifestPiece& right) {
  for (std::size_t i = 0; i < left.shape.size(); ++i) {
    if (left.offset[i] + left.shape[i] <= right.offset[i] || right.offset[i] + right.shape[i] <= left.offset[i])
      return false;
  }
  return true;
}

// Where a gap is, for the usual case of whole rows; otherwise empty.
std::string find_row_gap(const Extents& global_shape, const std::vector<const ManifestPiece*>& sorted) {
  if (global_shape.empty()) return {};
  std::uint64_t covered = 0;
  for (const ManifestPiece* piece : sorted) {
    if (!std::equal(piece->shape.begin() + 1, piece->shape.end(), global_shape.begin() + 1)) return {};
    if (piece->offset[0] > covered) return format("rows {} to {} are in no file", covered, piece->offset[0]);
    covered = piece->offset[0] + piece->shape[0];
  }
  return format("rows {} to {} are in no file", covered, global_shape[0]);
}

}  // namespace

std::uint64_t volume_of(const Extents& shape) {
  std::uint64_t volume = 1;
  for (const std::uint64_t extent : shape) volume *= extent;
  return volume;
}

std::string describe_box(const Extents& offset, const Extents& shape) {
  if (shape.empty()) return "the scalar";
  std::string text;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    text += format("{}{}, {})", i == 0 ? "[" : " x [", offset[i], offset[i] + shape[i]);
  }
  return text;
}

std::string describe_shape(const Extents& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += format("{}{}", i == 0 ? "" : ", ", shape[i]);
  return text + "]";
}

std::string find_coverage_fault(const Extents& global_shape, const std::vector<ManifestPiece>& pieces) {
  if (pieces.empty()) return "has no pieces";
  if (pieces.size() > kPiecesMax) return format("has more than {} pieces", kPiecesMax);
  std::uint64_t covered = 0;
  std::vector<const ManifestPiece*> filled;
  for (const ManifestPiece& piece : pieces) {
    if (piece.offset.size() != global_shape.size() || piece.shape.size() != global_shape.size()) {
      return format("has a piece with another number of dimensions: \"{}\"", piece.key);
    }
    for (std::size_t i = 0; i < global_shape.size(); ++i) {
      if (piece.offset[i] > global_shape[i] || piece.shape[i] > global_shape[i] - piece.offset[i]) {
        return format("has a piece outside its shape: \"{}\"", piece.key);
      }
    }
    // Inside the global shape, whose volume fits: neither this product nor the sum of kPiecesMax of
    // them overflows.
    const std::uint64_t volume = volume_of(piece.shape);
    covered += volume;
    if (volume > 0) filled.push_back(&piece);
  }

  std::ranges::stable_sort(filled, {},
                           [](const ManifestPiece* piece) { return piece->offset.empty() ? 0 : piece->offset[0]; });
  // those that reach beyond the row where the current one begins
  std::vector<const ManifestPiece*> open;
  for (const ManifestPiece* piece : filled) {
    if (!global_shape.empty()) {
      std::erase_if(open,
                    [&](const ManifestPiece* other) { return other->offset[0] + other->shape[0] <= piece->offset[0]; });
    }
    for (const ManifestPiece* other : open) {
      if (overlap(*piece, *other)) {
        return format("has pieces that overlap: \"{}\" of {} at {} and \"{}\" of {} at {}", other->key, other->file,
                      describe_box(other->offset, other->shape), piece->key, piece->file,
                      describe_box(piece->offset, piece->shape));
      }
    }
    open.push_back(piece);
  }

  const std::uint64_t expected_elements = volume_of(global_shape);
  if (covered == expected_elements) return {};
  const std::string rows = find_row_gap(global_shape, filled);
  return "is not complete: " +
         (rows.empty() ? format("{} of {} elements are in no file", expected_elements - covered, expected_elements)
                       : rows);
}

}  // namespace rekindle
