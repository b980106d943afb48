// What a rank has registered: its tensors in order of registration, each with its place in the
// whole, and the sizes of its small state. Pure values; check_layout says whether they make sense,
// everything else here assumes that they do.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "worker-sidecar/checkpoint/dtype.h"

namespace rekindle {

inline constexpr std::size_t kDimensionsMax = 8;
inline constexpr std::size_t kNameBytesMax = 255;
inline constexpr std::size_t kTensorsMax = 100'000;
inline constexpr std::uint64_t kTensorBytesMax = std::uint64_t{1} << 50;

// One number a dimension: a shape, or an offset.
using Extents = std::vector<std::uint64_t>;

enum class WrittenIn : std::uint8_t { update = 0, anywhere = 1 };

// A dense row-major array. `shape` is the part that this rank holds, at `offset` of a tensor of
// `global_shape`; all three have the same length. A whole tensor has global_shape == shape and
// offset 0 everywhere.
struct TensorDescription {
  std::string name;
  Dtype dtype = Dtype::f32;
  Extents shape;
  Extents global_shape;
  Extents offset;
  WrittenIn written_in = WrittenIn::update;

  bool operator==(const TensorDescription&) const = default;
};

struct Layout {
  std::vector<TensorDescription> tensors;

  bool operator==(const Layout&) const = default;
};

// Small state of one rank, registered beside the tensors.
struct StateDescription {
  std::string name;
  std::uint64_t bytes = 0;  // variable: at most
  // what is saved has a length of its own at each step
  bool variable = false;

  bool operator==(const StateDescription&) const = default;
};

TensorDescription whole_tensor(std::string name, Dtype dtype, Extents shape, WrittenIn written_in = WrittenIn::update);
bool is_whole(const TensorDescription& tensor);

// Bytes of a dense array; an error when the product overflows, is over kTensorBytesMax or ends
// inside a byte.
Result<std::uint64_t> array_bytes(Dtype dtype, const Extents& shape);

// Whether a part of a tensor that has these extents as its shape, or begins at them, has whole
// bytes everywhere: the last one is a multiple of packed_elements(dtype). A scalar of such a type
// is less than a byte.
bool is_whole_bytes(Dtype dtype, const Extents& extents);

// Of a checked tensor. A scalar has one row; a tensor is cut along its first dimension only.
std::uint64_t tensor_bytes(const TensorDescription& tensor);
std::uint64_t row_count(const TensorDescription& tensor);

// Rows that are not cut from each other because they are whole bytes only together: 1, but
// packed_elements in a tensor of one dimension.
std::uint64_t row_step(const TensorDescription& tensor);

// Of a number of rows that is a multiple of row_step.
std::uint64_t rows_bytes(const TensorDescription& tensor, std::uint64_t rows);

// Whether the tensor has these rows and can be cut there.
bool has_rows(const TensorDescription& tensor, std::uint64_t begin_row, std::uint64_t end_row);

// Why a name of a tensor or a state cannot be used ("is empty"), or an empty text.
std::string find_name_fault(std::string_view name);

// Names unique and usable, dimensions in limits, sizes without overflow, each part inside its
// global tensor and of whole bytes. The message names the tensor and what to change.
Status check_tensor(const TensorDescription& tensor);
Status check_layout(const Layout& layout);
Status check_states(const std::vector<StateDescription>& states);

// Equal for equal layouts: names, types, shapes, places, order. 32 hex digits.
std::string layout_hash(const Layout& layout);

// The array `tensors` as frames carry it (docs/formats/frames.md, kind 4). decode_layout checks the
// result.
nlohmann::json encode_layout(const Layout& layout);
// The same as text, without the brackets around it.
std::string layout_elements(const Layout& layout);
Result<TensorDescription> decode_layout_element(const nlohmann::json& item);
Result<Layout> decode_layout(const nlohmann::json& tensors);

}  // namespace rekindle
