// The header of a data file: u64 length, JSON, then data. What we write any safetensors reader
// opens; what we read is checked before a byte of it is used. Pure: bytes in, values out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "worker-sidecar/checkpoint/layout.h"

namespace rekindle {

// the limit of the safetensors reader
inline constexpr std::uint64_t kDataHeaderBytesMax = 100'000'000;
inline constexpr std::uint64_t kDataLengthBytes = 8;

// One array of a data file. begin_byte and end_byte count from the beginning of the file, never
// from that of the data.
struct DataEntry {
  std::string key;
  Dtype dtype = Dtype::u8;
  Extents shape;
  std::uint64_t begin_byte = 0;
  std::uint64_t end_byte = 0;

  bool operator==(const DataEntry&) const = default;
};

struct DataFileLayout {
  // the first bytes of the file: length, JSON, padding
  std::string header;
  // in the order of their data in the file
  std::vector<DataEntry> entries;
  // entries[i] was the source[i]-th of what was given
  std::vector<std::size_t> source;
  std::uint64_t file_bytes = 0;
};

// Places the entries (their byte fields are not read) one after the other: large elements first, so
// that each is aligned for a reader that maps the file, in the given order within a size. Errors: a
// key twice, sizes beyond the limits.
Result<DataFileLayout> lay_out_data_file(const std::vector<DataEntry>& entries);

// Length of header and length field together, from the first 8 bytes of a file of `file_bytes`.
Result<std::uint64_t> data_header_bytes(std::string_view first_bytes, std::uint64_t file_bytes);

// `header` is exactly the first data_header_bytes() bytes. The entries come in the order of their
// data; they fill the file to its end without gap or overlap, and each has the size that its type
// and shape say.
Result<std::vector<DataEntry>> decode_data_header(std::string_view header, std::uint64_t file_bytes);

// The entry under which rows [begin_row, end_row) of a registered tensor are written; byte fields
// are 0.
DataEntry entry_of_piece(const TensorDescription& tensor, std::uint64_t begin_row, std::uint64_t end_row);
DataEntry entry_of_state(std::uint32_t rank, const StateDescription& state);

}  // namespace rekindle
