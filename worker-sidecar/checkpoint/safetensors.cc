#include "worker-sidecar/checkpoint/safetensors.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "common/base/format.h"
#include "common/base/json_fields.h"
#include "worker-sidecar/checkpoint/names.h"

namespace rekindle {
namespace {

std::unexpected<Error> corrupt(std::string what) {
  return fail(ErrorCode::corrupt, "the header of the data file " + std::move(what));
}

std::uint64_t load_little_endian(std::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 8; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

}  // namespace

Result<DataFileLayout> lay_out_data_file(const std::vector<DataEntry>& entries) {
  DataFileLayout layout;
  layout.source.resize(entries.size());
  std::iota(layout.source.begin(), layout.source.end(), std::size_t{0});
  std::ranges::stable_sort(layout.source, std::greater<>(),
                           [&](std::size_t i) { return element_bits(entries[i].dtype); });

  Json header = Json::object();
  std::uint64_t position = 0;
  for (const std::size_t i : layout.source) {
    DataEntry entry = entries[i];
    const Result<std::uint64_t> bytes = array_bytes(entry.dtype, entry.shape);
    if (!bytes) return std::unexpected(with_context(bytes.error(), entry.key));
    if (*bytes > kTensorBytesMax - position) {
      return fail(ErrorCode::invalid_input,
                  format("a data file would become larger than {} TiB", kTensorBytesMax >> 40));
    }
    entry.begin_byte = position;
    entry.end_byte = position += *bytes;
    const auto [place, added] = header.emplace(entry.key, Json{{"dtype", to_string(entry.dtype)},
                                                               {"shape", entry.shape},
                                                               {"data_offsets", {entry.begin_byte, entry.end_byte}}});
    if (!added)
      return fail(ErrorCode::invalid_input, format("two arrays of one data file are called \"{}\"", entry.key));
    layout.entries.push_back(std::move(entry));
  }

  std::string text = dump_json(header);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  if (text.size() > kDataHeaderBytesMax) {
    return fail(ErrorCode::invalid_input,
                "the header of a data file would be larger than other readers accept; register fewer tensors");
  }
  for (int shift = 0; shift < 64; shift += 8) layout.header += static_cast<char>(text.size() >> shift & 0xff);
  layout.header += text;
  for (DataEntry& entry : layout.entries) {
    entry.begin_byte += layout.header.size();
    entry.end_byte += layout.header.size();
  }
  layout.file_bytes = layout.header.size() + position;
  return layout;
}

Result<std::uint64_t> data_header_bytes(std::string_view first_bytes, std::uint64_t file_bytes) {
  if (file_bytes < kDataLengthBytes || first_bytes.size() < kDataLengthBytes) {
    return fail(ErrorCode::corrupt, "the data file is shorter than the 8 bytes that begin it");
  }
  const std::uint64_t length = load_little_endian(first_bytes);
  if (length > kDataHeaderBytesMax) return corrupt(format("claims to be larger than {} bytes", kDataHeaderBytesMax));
  if (length > file_bytes - kDataLengthBytes) return corrupt("is longer than the file");
  return kDataLengthBytes + length;
}

Result<std::vector<DataEntry>> decode_data_header(std::string_view header, std::uint64_t file_bytes) {
  const Result<std::uint64_t> header_bytes = data_header_bytes(header, file_bytes);
  if (!header_bytes) return std::unexpected(header_bytes.error());
  if (header.size() != *header_bytes) return corrupt("is not complete");

  const std::string_view text = header.substr(kDataLengthBytes);
  if (!text.starts_with('{')) return corrupt("does not begin with {");
  const Result<Json> json = parse_json(text, "the header of the data file", kDataHeaderBytesMax);
  if (!json) return std::unexpected(Error{ErrorCode::corrupt, json.error().message, Retry::no});

  std::vector<DataEntry> entries;
  for (const auto& [key, value] : json->items()) {
    if (key == "__metadata__") continue;
    JsonFields in(value, format("\"{}\"", key));
    DataEntry entry{.key = key};
    const std::optional<Dtype> dtype = parse_enum<Dtype>(in.text("dtype"));
    if (!dtype) in.refuse("dtype", "is none that this version knows");
    entry.dtype = dtype.value_or(Dtype::u8);
    entry.shape = in.numbers("shape");
    const std::vector<std::uint64_t> offsets = in.numbers("data_offsets");
    if (offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] > file_bytes - *header_bytes) {
      in.refuse("data_offsets", "do not lie inside the file");
    }
    if (Status status = in.finish(); !status) return corrupt("is wrong: " + status.error().message);
    const Result<std::uint64_t> bytes = array_bytes(entry.dtype, entry.shape);
    if (!bytes || *bytes != offsets[1] - offsets[0])
      return corrupt(format("gives \"{}\" a range that does not fit its type and shape", key));
    entry.begin_byte = *header_bytes + offsets[0];
    entry.end_byte = *header_bytes + offsets[1];
    entries.push_back(std::move(entry));
  }

  std::ranges::stable_sort(entries, {},
                           [](const DataEntry& entry) { return std::pair(entry.begin_byte, entry.end_byte); });
  std::uint64_t position = *header_bytes;
  for (const DataEntry& entry : entries) {
    if (entry.begin_byte != position) {
      return corrupt(format("{}{}\"",
                            entry.begin_byte < position ? "has overlapping arrays at \"" : "leaves a gap before \"",
                            entry.key));
    }
    position = entry.end_byte;
  }
  if (position != file_bytes)
    return corrupt(format("does not account for the last {} bytes of the file", file_bytes - position));
  return entries;
}

DataEntry entry_of_piece(const TensorDescription& tensor, std::uint64_t begin_row, std::uint64_t end_row) {
  DataEntry entry{.key = piece_key(tensor.name, begin_row, end_row, row_count(tensor)),
                  .dtype = tensor.dtype,
                  .shape = tensor.shape};
  if (!entry.shape.empty()) entry.shape.front() = end_row - begin_row;
  return entry;
}

DataEntry entry_of_state(std::uint32_t rank, const StateDescription& state) {
  return {.key = state_key(rank, state.name), .dtype = Dtype::u8, .shape = {state.bytes}};
}

}  // namespace rekindle
