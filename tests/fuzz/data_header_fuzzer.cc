// The header of a data file. The input is the length of the data and then the header's JSON; length
// field and file size are made to fit, so that mutations get past them. The raw input is tried as a
// whole small file as well.
#include <algorithm>

#include "tests/fuzz/support/fuzzing.h"
#include "worker-sidecar/checkpoint/file_entries.h"
#include "worker-sidecar/checkpoint/safetensors.h"

namespace rekindle {
namespace {

void check_entries(const std::vector<DataEntry>& entries, std::string_view header, std::uint64_t file_bytes) {
  RK_ASSERT(entries.size() <= header.size());
  std::uint64_t position = header.size();
  std::vector<DataEntry> unplaced;
  for (const DataEntry& entry : entries) {
    RK_ASSERT(entry.begin_byte == position && entry.end_byte >= entry.begin_byte);
    RK_ASSERT(entry.shape.size() <= header.size());
    const Result<std::uint64_t> bytes_wanted = array_bytes(entry.dtype, entry.shape);
    RK_ASSERT(bytes_wanted && *bytes_wanted == entry.end_byte - entry.begin_byte);
    position = entry.end_byte;
    unplaced.push_back(entry);
  }
  RK_ASSERT(position == file_bytes);

  // What a header says is what is found in it, and another place is told apart.
  const Result<std::vector<DataEntry>> misplaced = entries_misplaced(entries, header, file_bytes);
  RK_ASSERT(misplaced && misplaced->empty());
  if (!unplaced.empty()) {
    ++unplaced.front().begin_byte;
    const Result<std::vector<DataEntry>> moved = entries_misplaced(unplaced, header, file_bytes);
    RK_ASSERT(moved && moved->size() == 1);
  }

  // Written by us, the same arrays come back.
  const Result<DataFileLayout> layout = lay_out_data_file(entries);
  if (!layout) return;  // together beyond our own limit
  RK_ASSERT(layout->entries.size() == entries.size());
  const Result<std::vector<DataEntry>> again = decode_data_header(layout->header, layout->file_bytes);
  RK_ASSERT(again.has_value());
  const auto by_key = [](std::vector<DataEntry> list) {
    std::ranges::sort(list, {}, &DataEntry::key);
    return list;
  };
  RK_ASSERT(by_key(*again) == by_key(layout->entries));
}

void check_header(std::string_view header, std::uint64_t file_bytes) {
  const Result<std::vector<DataEntry>> entries = decode_data_header(header, file_bytes);
  if (entries) {
    check_entries(*entries, header, file_bytes);
  } else {
    expect_sentence(entries.error());
  }
}

}  // namespace
}  // namespace rekindle

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace rekindle;
  const std::string_view file = text_of(data, bytes);
  if (const Result<std::uint64_t> header_bytes = data_header_bytes(file, file.size())) {
    RK_ASSERT(*header_bytes <= file.size());
    check_header(file.substr(0, *header_bytes), file.size());
  }
  std::string_view input = file;
  const std::uint64_t data_bytes = take_number<std::uint64_t>(input) & ((std::uint64_t{1} << 52) - 1);
  std::string header;
  for (int shift = 0; shift < 64; shift += 8) header += static_cast<char>(input.size() >> shift & 0xff);
  header += input;
  check_header(header, header.size() + data_bytes);
  return 0;
}
