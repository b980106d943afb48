// What writers report, put together into the tensors, states and files of a manifest. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "worker-sidecar/checkpoint/manifest.h"

namespace rekindle {

// A piece that a rank has written: rows of its own part of the tensor, and the place in the file.
struct WrittenEntry {
  std::string key;
  std::string tensor;
  std::uint64_t begin_row = 0;
  std::uint64_t end_row = 0;
  std::uint64_t begin_byte = 0;
  std::uint64_t end_byte = 0;

  bool operator==(const WrittenEntry&) const = default;
};

struct WrittenFile {
  std::string file;
  std::uint64_t bytes = 0;
  std::string hash;
  // as in ManifestFile; empty when the reporter did not say
  std::vector<std::string> chunks;
  std::vector<WrittenEntry> entries;
  // how the bytes went to the disk, for people: plain, direct, queued; empty when the reporter did
  // not say
  std::string way;

  bool operator==(const WrittenFile&) const = default;
};

// One writer's report with the layout of that writer, which outlives the call.
struct WrittenStripe {
  const Layout* layout = nullptr;
  WrittenFile written;
};

// Fills manifest.tensors and appends to manifest.files. Tensors come in the order of the layouts;
// pieces that a report names and no layout has, rows out of range, or a tensor that two layouts
// describe differently are errors, and so is a gap or an overlap in the whole.
Status add_tensors(Manifest& manifest, const std::vector<WrittenStripe>& stripes);

// Appends a file of small state and its entries.
void add_states(Manifest& manifest, const ManifestFile& file, const std::vector<ManifestState>& states);

}  // namespace rekindle
