#include "worker-sidecar/checkpoint/file_entries.h"

namespace rekindle {

EntriesByFile entries_by_file(const Manifest& manifest) {
  EntriesByFile files;
  for (const ManifestTensor& tensor : manifest.tensors) {
    for (const ManifestPiece& piece : tensor.pieces) {
      files[piece.file].push_back({piece.key, tensor.dtype, piece.shape, piece.begin_byte, piece.end_byte});
    }
  }
  for (const ManifestState& state : manifest.states) {
    files[state.file].push_back({state.key, Dtype::u8, {state.bytes}, state.begin_byte, state.end_byte});
  }
  return files;
}

Result<std::vector<DataEntry>> entries_misplaced(const std::vector<DataEntry>& expected, std::string_view header,
                                                 std::uint64_t file_bytes) {
  const Result<std::vector<DataEntry>> entries = decode_data_header(header, file_bytes);
  if (!entries) return std::unexpected(entries.error());
  std::map<std::string_view, const DataEntry*> by_key;
  for (const DataEntry& entry : *entries) by_key.emplace(entry.key, &entry);
  std::vector<DataEntry> misplaced;
  for (const DataEntry& entry : expected) {
    if (const auto found = by_key.find(entry.key); found == by_key.end() || *found->second != entry)
      misplaced.push_back(entry);
  }
  return misplaced;
}

}  // namespace rekindle
