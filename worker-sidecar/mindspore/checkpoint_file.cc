#include "worker-sidecar/mindspore/checkpoint_file.h"

#include <algorithm>
#include <set>
#include <utility>

#include "common/base/format.h"
#include "worker-sidecar/mindspore/checkpoint.pb.h"
#include "worker-sidecar/mindspore/dtype_names.h"

namespace rekindle {
namespace {

// How a protobuf field is laid out: the low three bits of its tag.
enum FieldType : std::uint32_t { kVarint = 0, kEightBytes = 1, kBytes = 2, kFourBytes = 5 };

constexpr std::size_t kWindowBytes = 4096;
constexpr std::string_view kChecksumMark = "crc_num";
constexpr std::size_t kChecksumBytes = kChecksumMark.size() + 10;

std::unexpected<Error> damaged(std::uint64_t at) {
  return fail(ErrorCode::corrupt, format("it is damaged at byte {}, encrypted, or no checkpoint of MindSpore", at));
}

struct Field {
  std::uint32_t number = 0;
  std::uint32_t type = kVarint;
  std::uint64_t value = 0;  // of a number
  ContentRange range;       // of bytes
};

// Steps through the fields of nested messages. What it returns lies inside the end that was given.
class FieldReader {
 public:
  explicit FieldReader(const ReadBytes& read) : read_(read) {}

  Result<Field> next(std::uint64_t& position, std::uint64_t end) {
    const std::uint64_t begin = position;
    const Result<std::uint64_t> tag = varint(position, end);
    if (!tag) return std::unexpected(tag.error());
    Field field{.number = static_cast<std::uint32_t>(*tag >> 3), .type = static_cast<std::uint32_t>(*tag & 7)};
    if (*tag >> 32 != 0 || field.number == 0) return damaged(begin);
    std::uint64_t bytes = 0;
    if (field.type == kVarint || field.type == kBytes) {
      const Result<std::uint64_t> value = varint(position, end);
      if (!value) return std::unexpected(value.error());
      field.value = *value;
      if (field.type == kBytes) bytes = *value;
    } else if (field.type == kEightBytes) {
      bytes = 8;
    } else if (field.type == kFourBytes) {
      bytes = 4;
    } else {
      return damaged(begin);
    }
    if (bytes > end - position) return damaged(begin);
    field.range = {position, bytes};
    position += bytes;
    return field;
  }

  Result<std::uint64_t> varint(std::uint64_t& position, std::uint64_t end) {
    const std::uint64_t begin = position;
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (position == end) return damaged(begin);
      if (Status status = fill(position, end); !status) return std::unexpected(status.error());
      const auto byte = static_cast<unsigned char>(window_[position - window_begin_]);
      ++position;
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if ((byte & 0x80) == 0) return value;
    }
    return damaged(begin);
  }

  Result<std::string> text(ContentRange range, std::size_t bytes_max, std::string_view what) {
    if (range.bytes <= bytes_max)
      return range.bytes == 0 ? Result<std::string>("") : read_(range.begin_byte, range.bytes);
    return fail(ErrorCode::invalid_input, format("{} at byte {} has {} bytes; at most {} are read", what,
                                                 range.begin_byte, range.bytes, bytes_max));
  }

 private:
  Status fill(std::uint64_t position, std::uint64_t end) {
    if (position >= window_begin_ && position - window_begin_ < window_.size()) return {};
    Result<std::string> read =
        read_(position, static_cast<std::size_t>(std::min<std::uint64_t>(kWindowBytes, end - position)));
    if (!read) return std::unexpected(read.error());
    if (read->empty()) return damaged(position);
    window_ = std::move(*read);
    window_begin_ = position;
    return {};
  }

  const ReadBytes& read_;
  std::string window_;
  std::uint64_t window_begin_ = 0;
};

Status read_dims(FieldReader& reader, const Field& field, Extents& shape) {
  std::uint64_t position = field.range.begin_byte;
  const std::uint64_t end = position + field.range.bytes;
  if (field.type == kVarint) shape.push_back(field.value);
  // a packed list
  while (field.type == kBytes && position < end && shape.size() <= kDimensionsMax) {
    const Result<std::uint64_t> extent = reader.varint(position, end);
    if (!extent) return std::unexpected(extent.error());
    shape.push_back(*extent);
  }
  if (shape.size() > kDimensionsMax)
    return fail(ErrorCode::invalid_input, format("a tensor has more than {} dimensions", kDimensionsMax));
  return {};
}

Status read_tensor_message(FieldReader& reader, ContentRange range, MindSporeEntry& entry) {
  std::uint64_t position = range.begin_byte;
  const std::uint64_t end = position + range.bytes;
  bool has_content = false;
  while (position < end) {
    const Result<Field> field = reader.next(position, end);
    if (!field) return std::unexpected(field.error());
    if (field->number == 1) {
      if (Status status = read_dims(reader, *field, entry.shape); !status) return status;
    } else if (field->number == 2 && field->type == kBytes) {
      Result<std::string> type = reader.text(field->range, 32, "the type of a tensor");
      if (!type) return std::unexpected(type.error());
      entry.type = std::move(*type);
    } else if (field->number == 3 && field->type == kBytes) {
      entry.content = {field->range};
      has_content = true;
    }
  }
  return has_content && !entry.type.empty() ? Status() : damaged(range.begin_byte);
}

Result<MindSporeEntry> read_value(FieldReader& reader, ContentRange range) {
  MindSporeEntry entry;
  std::uint64_t position = range.begin_byte;
  const std::uint64_t end = position + range.bytes;
  bool has_map = false;
  while (position < end) {
    const Result<Field> field = reader.next(position, end);
    if (!field) return std::unexpected(field.error());
    if (field->type != kBytes) continue;
    if (field->number == 1) {
      Result<std::string> name = reader.text(field->range, kNameBytesMax, "the name of a tensor");
      if (!name) return std::unexpected(name.error());
      entry.name = std::move(*name);
    } else if (field->number == 2) {
      if (Status status = read_tensor_message(reader, field->range, entry); !status)
        return std::unexpected(status.error());
    } else if (field->number == 3) {
      has_map = true;
    }
  }
  if (has_map)
    return fail(ErrorCode::invalid_input,
                format("\"{}\" is a map parameter, which has no counterpart here", entry.name));
  if (entry.name.empty() || entry.content.empty()) return damaged(range.begin_byte);
  return entry;
}

Status check_size(MindSporeEntry& entry) {
  const std::optional<Dtype> dtype = parse_mindspore_name(entry.type);
  if (!dtype) return {};
  // Older versions write a scalar as [0].
  if (entry.shape == Extents{0} && content_bytes(entry) == bytes_of_elements(*dtype, 1)) entry.shape.clear();
  const Result<std::uint64_t> bytes = array_bytes(*dtype, entry.shape);
  if (bytes && *bytes == content_bytes(entry)) return {};
  return fail(ErrorCode::corrupt, format("\"{}\" has {} bytes of content, which is not what its type and shape say",
                                         entry.name, content_bytes(entry)));
}

Result<std::optional<std::uint64_t>> read_checksum(std::uint64_t file_bytes, const ReadBytes& read) {
  if (file_bytes < kChecksumBytes) return std::nullopt;
  const Result<std::string> end = read(file_bytes - kChecksumBytes, kChecksumBytes);
  if (!end) return std::unexpected(end.error());
  if (!end->starts_with(kChecksumMark)) return std::nullopt;
  std::uint64_t checksum = 0;
  for (const char byte : end->substr(kChecksumMark.size())) checksum = checksum << 8 | static_cast<unsigned char>(byte);
  return checksum;
}

}  // namespace

std::uint64_t content_bytes(const MindSporeEntry& entry) {
  std::uint64_t bytes = 0;
  for (const ContentRange& range : entry.content) bytes += range.bytes;
  return bytes;
}

std::string describe_entry(const MindSporeEntry& entry) {
  // With the name's length in front, a name cannot pass for a type.
  std::string text = format("{} {} {}", entry.name.size(), entry.name, entry.type);
  for (const std::uint64_t extent : entry.shape) text += format(" {}", extent);
  return text + '\n';
}

Result<MindSporeFile> index_mindspore_file(std::uint64_t file_bytes, const ReadBytes& read) {
  const Result<std::optional<std::uint64_t>> checksum = read_checksum(file_bytes, read);
  if (!checksum) return std::unexpected(checksum.error());
  MindSporeFile file{.message_bytes = *checksum ? file_bytes - kChecksumBytes : file_bytes, .checksum = *checksum};
  FieldReader reader(read);
  std::set<std::string, std::less<>> names;
  std::size_t slices = 0;
  for (std::uint64_t position = 0; position < file.message_bytes;) {
    const Result<Field> field = reader.next(position, file.message_bytes);
    if (!field) return std::unexpected(field.error());
    if (field->number != 1 || field->type != kBytes) return damaged(field->range.begin_byte);
    Result<MindSporeEntry> entry = read_value(reader, field->range);
    if (!entry) return std::unexpected(entry.error());
    if (++slices > kMindSporeSlicesMax || names.size() > kTensorsMax)
      return fail(ErrorCode::invalid_input, "it has more tensors than any model");
    if (!file.entries.empty() && file.entries.back().name == entry->name) {
      MindSporeEntry& known = file.entries.back();
      if (known.type != entry->type || known.shape != entry->shape) {
        return fail(ErrorCode::corrupt, format("the slices of \"{}\" differ in type or shape", known.name));
      }
      known.content.push_back(entry->content.front());
    } else if (!names.insert(entry->name).second) {
      return fail(ErrorCode::invalid_input, format("it has \"{}\" twice", entry->name));
    } else {
      file.entries.push_back(std::move(*entry));
    }
  }
  if (file.entries.empty()) return fail(ErrorCode::corrupt, "it holds no tensors");
  for (MindSporeEntry& entry : file.entries) {
    if (Status status = check_size(entry); !status) return std::unexpected(status.error());
  }
  return file;
}

std::vector<std::uint64_t> slices_of(std::uint64_t tensor_bytes) {
  std::vector<std::uint64_t> slices;
  do {
    slices.push_back(std::min(tensor_bytes, kMindSporeSliceBytes));
    tensor_bytes -= slices.back();
  } while (tensor_bytes > 0);
  return slices;
}

std::string slice_header(std::string_view name, std::string_view type, const Extents& shape,
                         std::uint64_t slice_bytes) {
  // Content is the last field of each message around it, so whatever stands before it is protobuf's
  // own, and the lengths are ours.
  const auto with_length = [](std::string before, char tag, std::uint64_t bytes) {
    before += tag;
    for (; bytes >= 0x80; bytes >>= 7) before += static_cast<char>(bytes | 0x80);
    return before += static_cast<char>(bytes);
  };
  mindspore::checkpoint::TensorProto tensor;
  for (const std::uint64_t extent : shape) tensor.add_dims(static_cast<std::int64_t>(extent));
  tensor.set_tensor_type(std::string(type));
  mindspore::checkpoint::Checkpoint::Value value;
  value.set_tag(std::string(name));
  const std::string in_tensor = with_length(tensor.SerializeAsString(), 0x1a, slice_bytes);
  const std::string in_value = with_length(value.SerializeAsString(), 0x12, in_tensor.size() + slice_bytes) + in_tensor;
  return with_length("", 0x0a, in_value.size() + slice_bytes) + in_value;
}

}  // namespace rekindle
