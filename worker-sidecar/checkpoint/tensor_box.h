// A box of elements inside a tensor of a checkpoint. Pure.
#pragma once

#include <cstdint>

#include "worker-sidecar/checkpoint/manifest.h"

namespace rekindle {

// `shape` elements at `offset`.
struct TensorBox {
  Extents offset;
  Extents shape;

  bool operator==(const TensorBox&) const = default;
};

TensorBox whole_box(const ManifestTensor& tensor);
std::uint64_t box_bytes(const ManifestTensor& tensor, const TensorBox& box);

}  // namespace rekindle
