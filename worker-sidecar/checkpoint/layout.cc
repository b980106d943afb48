#include "worker-sidecar/checkpoint/layout.h"

#include <algorithm>
#include <cctype>
#include <set>
#include <utility>

#include "common/base/assert.h"
#include "common/base/format.h"
#include "common/base/json_fields.h"
#include "common/base/json_text.h"
#include "worker-sidecar/checkpoint/hash.h"

namespace rekindle {
namespace {

// Length of the UTF-8 sequence at the front of `text`, 0 when it is not a valid one.
std::size_t utf8_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xc2 && first <= 0xdf   ? 2
                             : (first & 0xf0) == 0xe0         ? 3
                             : first >= 0xf0 && first <= 0xf4 ? 4
                                                              : 0;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Overlong forms, surrogates, and beyond U+10FFFF.
  if ((first == 0xe0 && byte(1) < 0xa0) || (first == 0xed && byte(1) > 0x9f)) return 0;
  if ((first == 0xf0 && byte(1) < 0x90) || (first == 0xf4 && byte(1) > 0x8f)) return 0;
  return length;
}

// "w[3:7]" is the key of a piece of "w" and cannot be a tensor of its own.
bool looks_like_piece_key(std::string_view name) {
  if (!name.ends_with(']')) return false;
  const std::size_t open = name.rfind('[');
  if (open == std::string_view::npos) return false;
  const std::string_view inside = name.substr(open + 1, name.size() - open - 2);
  const std::size_t colon = inside.find(':');
  const auto all_digits = [](std::string_view text) {
    return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  };
  return colon != std::string_view::npos && all_digits(inside.substr(0, colon)) && all_digits(inside.substr(colon + 1));
}

Status tensor_fault(const TensorDescription& tensor, const std::string& what) {
  return fail(ErrorCode::invalid_input, format("tensor \"{}\" {}", tensor.name, what));
}

Status check_whole_bytes(const TensorDescription& tensor) {
  const std::string packed = std::to_string(packed_elements(tensor.dtype));
  const std::string kind =
      format("is {}, of which only {} elements together are whole bytes: ", to_string(tensor.dtype), packed);
  if (tensor.shape.empty() && packed_elements(tensor.dtype) > 1)
    return tensor_fault(tensor, kind + "it cannot be a scalar; keep its byte as U8");
  struct Field {
    const char* name;
    const Extents& extents;
  };
  for (const Field& field :
       {Field{"shape", tensor.shape}, Field{"global shape", tensor.global_shape}, Field{"offset", tensor.offset}}) {
    if (is_whole_bytes(tensor.dtype, field.extents)) continue;
    return tensor_fault(tensor, format("{}in its {} the last dimension is {} and has to be a multiple of {}; pad it, "
                                       "cut it elsewhere, or keep its bytes as U8",
                                       kind, field.name, field.extents.back(), packed));
  }
  return {};
}

}  // namespace

TensorDescription whole_tensor(std::string name, Dtype dtype, Extents shape, WrittenIn written_in) {
  Extents offset(shape.size(), 0);
  Extents global_shape = shape;
  return {std::move(name), dtype, std::move(shape), std::move(global_shape), std::move(offset), written_in};
}

bool is_whole(const TensorDescription& tensor) { return tensor.shape == tensor.global_shape; }

Result<std::uint64_t> array_bytes(Dtype dtype, const Extents& shape) {
  // A zero anywhere makes the array empty, but the other dimensions still have to be sane: they are
  // kept in files.
  constexpr std::uint64_t kBitsMax = kTensorBytesMax * 8;
  std::uint64_t bits = element_bits(dtype);
  bool empty = false;
  for (const std::uint64_t extent : shape) {
    if (extent == 0) {
      empty = true;
    } else if (__builtin_mul_overflow(bits, extent, &bits) || bits > kBitsMax) {
      return fail(ErrorCode::invalid_input, format("its shape makes more than {} TiB", kTensorBytesMax >> 40));
    }
  }
  if (empty) return 0;
  if (bits % 8 != 0)
    return fail(ErrorCode::invalid_input, format("its shape makes {} bits, which are not whole bytes", bits));
  return bits / 8;
}

bool is_whole_bytes(Dtype dtype, const Extents& extents) {
  const std::size_t packed = packed_elements(dtype);
  return packed == 1 || (!extents.empty() && extents.back() % packed == 0);
}

std::uint64_t tensor_bytes(const TensorDescription& tensor) {
  const Result<std::uint64_t> bytes = array_bytes(tensor.dtype, tensor.shape);
  RK_ASSERT(bytes.has_value());
  return *bytes;
}

std::uint64_t row_count(const TensorDescription& tensor) { return tensor.shape.empty() ? 1 : tensor.shape.front(); }

std::uint64_t row_step(const TensorDescription& tensor) {
  return tensor.shape.size() == 1 ? packed_elements(tensor.dtype) : 1;
}

std::uint64_t rows_bytes(const TensorDescription& tensor, std::uint64_t rows) {
  std::uint64_t elements = rows;
  for (std::size_t i = 1; i < tensor.shape.size(); ++i) elements *= tensor.shape[i];
  return bytes_of_elements(tensor.dtype, elements);
}

bool has_rows(const TensorDescription& tensor, std::uint64_t begin_row, std::uint64_t end_row) {
  const std::uint64_t step = row_step(tensor);
  return begin_row <= end_row && end_row <= row_count(tensor) && begin_row % step == 0 && end_row % step == 0;
}

std::string find_name_fault(std::string_view name) {
  if (name.empty()) return "is empty";
  if (name.size() > kNameBytesMax) return format("is longer than {} bytes", kNameBytesMax);
  if (name == "__metadata__") return "is reserved by the safetensors format";
  if (looks_like_piece_key(name)) return "ends like the key of a piece ([begin:end]); use other brackets";
  for (std::size_t i = 0; i < name.size();) {
    const std::size_t length = utf8_length(name.substr(i));
    if (length == 0) return "is not valid UTF-8";
    if (length == 1 && (static_cast<unsigned char>(name[i]) < 0x20 || name[i] == 0x7f))
      return "has a control character in it";
    i += length;
  }
  return {};
}

Status check_tensor(const TensorDescription& tensor) {
  if (const std::string fault = find_name_fault(tensor.name); !fault.empty()) {
    return fail(ErrorCode::invalid_input, format("the name of a tensor {}: \"{}\"", fault, tensor.name.substr(0, 80)));
  }
  if (tensor.shape.size() > kDimensionsMax) {
    return tensor_fault(tensor,
                        format("has {} dimensions; at most {} are possible", tensor.shape.size(), kDimensionsMax));
  }
  if (tensor.global_shape.size() != tensor.shape.size() || tensor.offset.size() != tensor.shape.size()) {
    return tensor_fault(tensor, "has a shape, global shape and offset with different numbers of dimensions");
  }
  if (Status status = check_whole_bytes(tensor); !status) return status;
  if (const Result<std::uint64_t> bytes = array_bytes(tensor.dtype, tensor.shape); !bytes) {
    return tensor_fault(tensor, "is too large: " + bytes.error().message);
  }
  if (const Result<std::uint64_t> bytes = array_bytes(tensor.dtype, tensor.global_shape); !bytes) {
    return tensor_fault(tensor, "is too large as a whole: " + bytes.error().message);
  }
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
    if (tensor.offset[i] > tensor.global_shape[i] || tensor.shape[i] > tensor.global_shape[i] - tensor.offset[i]) {
      return tensor_fault(
          tensor, format("does not lie inside its global shape in dimension {}: offset {} and {} elements of {}", i,
                         tensor.offset[i], tensor.shape[i], tensor.global_shape[i]));
    }
  }
  return {};
}

Status check_layout(const Layout& layout) {
  if (layout.tensors.size() > kTensorsMax) {
    return fail(ErrorCode::invalid_input,
                format("{} tensors are registered; at most {} are possible", layout.tensors.size(), kTensorsMax));
  }
  std::set<std::string_view> names;
  std::uint64_t total = 0;
  for (const TensorDescription& tensor : layout.tensors) {
    if (Status status = check_tensor(tensor); !status) return status;
    if (!names.insert(tensor.name).second) return tensor_fault(tensor, "is registered twice; names are unique");
    total += tensor_bytes(tensor);
    if (total > kTensorBytesMax) {
      return fail(ErrorCode::invalid_input,
                  format("the tensors together are larger than {} TiB", kTensorBytesMax >> 40));
    }
  }
  return {};
}

Status check_states(const std::vector<StateDescription>& states) {
  std::set<std::string_view> names;
  for (const StateDescription& state : states) {
    if (const std::string fault = find_name_fault(state.name); !fault.empty()) {
      return fail(ErrorCode::invalid_input, format("the name of a state {}: \"{}\"", fault, state.name.substr(0, 80)));
    }
    if (state.bytes > kTensorBytesMax)
      return fail(ErrorCode::invalid_input, format("state \"{}\" is too large", state.name));
    if (!names.insert(state.name).second) {
      return fail(ErrorCode::invalid_input, format("state \"{}\" is registered twice; names are unique", state.name));
    }
  }
  return {};
}

std::string layout_hash(const Layout& layout) { return hash_of(format("[{}]", layout_elements(layout))); }

std::string layout_elements(const Layout& layout) {
  std::string text;
  for (const TensorDescription& tensor : layout.tensors) {
    text += text.empty() ? R"({"dtype":)" : R"(,{"dtype":)";
    append_json_string(text, to_string(tensor.dtype));
    text += R"(,"global_shape":)";
    append_json_numbers(text, tensor.global_shape);
    text += R"(,"name":)";
    append_json_string(text, tensor.name);
    text += R"(,"offset":)";
    append_json_numbers(text, tensor.offset);
    text += R"(,"shape":)";
    append_json_numbers(text, tensor.shape);
    text += tensor.written_in == WrittenIn::anywhere ? R"(,"written_in":"anywhere"})" : R"(,"written_in":"update"})";
  }
  return text;
}

Json encode_layout(const Layout& layout) {
  return *parse_json(format("[{}]", layout_elements(layout)), "a layout", SIZE_MAX);
}

Result<TensorDescription> decode_layout_element(const Json& item) {
  JsonFields in(item, "tensor");
  TensorDescription tensor;
  tensor.name = in.text("name");
  if (const std::optional<Dtype> dtype = parse_enum<Dtype>(in.text("dtype"))) {
    tensor.dtype = *dtype;
  } else {
    in.refuse("dtype", "is none that this version knows");
  }
  tensor.shape = in.numbers("shape");
  tensor.global_shape = in.numbers("global_shape");
  tensor.offset = in.numbers("offset");
  const std::string written_in = in.text("written_in");
  if (written_in == "anywhere") {
    tensor.written_in = WrittenIn::anywhere;
  } else if (written_in != "update") {
    in.refuse("written_in", "must be update or anywhere");
  }
  if (Status status = in.finish(); !status) return std::unexpected(status.error());
  return tensor;
}

Result<Layout> decode_layout(const Json& tensors) {
  if (!tensors.is_array()) return fail(ErrorCode::invalid_input, "tensors must be an array");
  if (tensors.size() > kTensorsMax) return fail(ErrorCode::invalid_input, "tensors has too many entries");
  Layout layout;
  layout.tensors.reserve(tensors.size());
  for (const Json& item : tensors) {
    Result<TensorDescription> tensor = decode_layout_element(item);
    if (!tensor) return std::unexpected(tensor.error());
    layout.tensors.push_back(std::move(*tensor));
  }
  if (Status status = check_layout(layout); !status) return std::unexpected(status.error());
  return layout;
}

}  // namespace rekindle
