// MindSpore's checkpoint file, read and written without ever holding a tensor
// (docs/formats/mindspore.md). Pure: bytes come and go through functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "worker-sidecar/checkpoint/layout.h"

namespace rekindle {

// MindSpore cuts larger tensors, so no message of its nears protobuf's 2 GiB
inline constexpr std::uint64_t kMindSporeSliceBytes = 512u << 20;
inline constexpr std::size_t kMindSporeSlicesMax = 1u << 20;  // in one file that is read
// the type of a text beside the tensors
inline constexpr std::string_view kMindSporeText = "str";

// A part of a tensor's content in the file.
struct ContentRange {
  std::uint64_t begin_byte = 0;
  std::uint64_t bytes = 0;

  bool operator==(const ContentRange&) const = default;
};

struct MindSporeEntry {
  std::string name;
  std::string type;  // as MindSpore names it
  Extents shape;
  std::vector<ContentRange> content;  // end to end
};

std::uint64_t content_bytes(const MindSporeEntry& entry);

// Name, type and shape in one line, for a hash: no two entries give the same bytes.
std::string describe_entry(const MindSporeEntry& entry);

struct MindSporeFile {
  // in the order of the file
  std::vector<MindSporeEntry> entries;
  std::uint64_t message_bytes = 0;  // without the checksum behind them
  // Crc32 of the message, where it was saved with crc_check
  std::optional<std::uint64_t> checksum;
};

// `bytes` bytes from `offset`, all of them, or an error.
using ReadBytes = std::function<Result<std::string>(std::uint64_t offset, std::size_t bytes)>;

// Where each tensor lies. Content is stepped over and not read. Errors: corrupt (no such file,
// encrypted, cut short), invalid_input (a limit; map tensors; a name twice), or what `read`
// reports. Sizes of known types have been checked against their shapes.
Result<MindSporeFile> index_mindspore_file(std::uint64_t file_bytes, const ReadBytes& read);

// Writing: for each tensor in turn its slices, each the header and then as many bytes of content.
// An empty tensor has one slice of 0 bytes.
std::vector<std::uint64_t> slices_of(std::uint64_t tensor_bytes);
std::string slice_header(std::string_view name, std::string_view type, const Extents& shape, std::uint64_t slice_bytes);

}  // namespace rekindle
