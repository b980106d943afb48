#include "worker-sidecar/checkpoint/tensor_box.h"

#include "worker-sidecar/checkpoint/coverage.h"

namespace rekindle {

TensorBox whole_box(const ManifestTensor& tensor) {
  return {Extents(tensor.global_shape.size(), 0), tensor.global_shape};
}

std::uint64_t box_bytes(const ManifestTensor& tensor, const TensorBox& box) {
  return bytes_of_elements(tensor.dtype, volume_of(box.shape));
}

}  // namespace rekindle
