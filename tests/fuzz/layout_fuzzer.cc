// What a rank registers, as frames carry it: an accepted layout comes back from its own text, every
// tensor lies inside its whole, and the key of a piece is no tensor's name.
#include <set>

#include "common/base/json_fields.h"
#include "tests/fuzz/support/fuzzing.h"
#include "worker-sidecar/checkpoint/layout.h"
#include "worker-sidecar/checkpoint/names.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace rekindle;
  const Result<Json> json = parse_json(text_of(data, bytes), "the layout");
  if (!json) return 0;
  const Result<Layout> layout = decode_layout(*json);
  if (!layout) {
    expect_sentence(layout.error());
    return 0;
  }
  std::set<std::string> keys;
  RK_ASSERT(layout->tensors.size() <= bytes);
  for (const TensorDescription& tensor : layout->tensors) {
    RK_ASSERT(keys.insert(tensor.name).second);
    RK_ASSERT(tensor.shape.size() <= kDimensionsMax && tensor.shape.size() == tensor.global_shape.size() &&
              tensor.shape.size() == tensor.offset.size());
    for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
      RK_ASSERT(tensor.offset[i] <= tensor.global_shape[i] &&
                tensor.shape[i] <= tensor.global_shape[i] - tensor.offset[i]);
    }
    const std::uint64_t rows = row_count(tensor);
    RK_ASSERT(tensor_bytes(tensor) <= kTensorBytesMax && rows_bytes(tensor, rows) == tensor_bytes(tensor));
    RK_ASSERT(has_rows(tensor, 0, rows) && is_whole_bytes(tensor.dtype, tensor.shape) &&
              is_whole_bytes(tensor.dtype, tensor.offset));
    if (rows > 1) RK_ASSERT(!find_name_fault(piece_key(tensor.name, 0, 1, rows)).empty());
  }
  const Result<Layout> again = decode_layout(encode_layout(*layout));
  RK_ASSERT(again && *again == *layout && layout_hash(*again) == layout_hash(*layout));
  return 0;
}
