// What a manifest says of one data file, against what the file's own header says. Equal hashes
// alone do not make them agree: a manifest that was edited and sealed again would lead a reader to
// the wrong bytes. Pure.
#pragma once

#include <map>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "worker-sidecar/checkpoint/manifest.h"
#include "worker-sidecar/checkpoint/safetensors.h"

namespace rekindle {

// names live as long as the manifest
using EntriesByFile = std::map<std::string_view, std::vector<DataEntry>>;

// The pieces and states that the manifest places in each file.
EntriesByFile entries_by_file(const Manifest& manifest);

// Those of `expected` that the header does not have under their key with this type, shape and
// place. `header` as in decode_data_header; error: it cannot be decoded.
Result<std::vector<DataEntry>> entries_misplaced(const std::vector<DataEntry>& expected, std::string_view header,
                                                 std::uint64_t file_bytes);

}  // namespace rekindle
