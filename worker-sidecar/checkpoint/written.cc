#include "worker-sidecar/checkpoint/written.h"

#include <algorithm>
#include <map>
#include <utility>

#include "common/base/assert.h"
#include "common/base/format.h"
#include "worker-sidecar/checkpoint/coverage.h"
#include "worker-sidecar/checkpoint/names.h"

namespace rekindle {
namespace {

std::unexpected<Error> wrong(const WrittenFile& file, std::string what) {
  return fail(ErrorCode::invalid_input, format("the report of {} is wrong: {}", file.file, std::move(what)));
}

// Place of each tensor in manifest.tensors, which keeps the order in which layouts first name them.
using Places = std::map<std::string, std::size_t, std::less<>>;

Status add_layout(Manifest& manifest, Places& places, const WrittenStripe& stripe) {
  for (const TensorDescription& tensor : stripe.layout->tensors) {
    const auto [place, added] = places.emplace(tensor.name, manifest.tensors.size());
    if (added) {
      manifest.tensors.push_back({.name = tensor.name, .dtype = tensor.dtype, .global_shape = tensor.global_shape});
      continue;
    }
    const ManifestTensor& known = manifest.tensors[place->second];
    if (known.dtype != tensor.dtype || known.global_shape != tensor.global_shape) {
      return wrong(stripe.written, format("tensor \"{}\" is {} {} for this writer and {} {} for another", tensor.name,
                                          to_string(tensor.dtype), describe_shape(tensor.global_shape),
                                          to_string(known.dtype), describe_shape(known.global_shape)));
    }
  }
  return {};
}

Status add_pieces(Manifest& manifest, const Places& places, const WrittenStripe& stripe) {
  std::map<std::string_view, const TensorDescription*> tensors;
  for (const TensorDescription& tensor : stripe.layout->tensors) tensors.emplace(tensor.name, &tensor);
  for (const WrittenEntry& entry : stripe.written.entries) {
    const auto found = tensors.find(entry.tensor);
    if (found == tensors.end())
      return wrong(stripe.written, format("it names \"{}\", which is not registered", entry.tensor));
    const TensorDescription& tensor = *found->second;
    if (!has_rows(tensor, entry.begin_row, entry.end_row)) {
      return wrong(stripe.written, format("it names rows of \"{}\" that do not exist", entry.tensor));
    }
    if (entry.key != piece_key(tensor.name, entry.begin_row, entry.end_row, row_count(tensor))) {
      return wrong(stripe.written, format("the key \"{}\" does not fit its rows", entry.key));
    }
    ManifestPiece piece{.file = stripe.written.file,
                        .key = entry.key,
                        .offset = tensor.offset,
                        .shape = tensor.shape,
                        .begin_byte = entry.begin_byte,
                        .end_byte = entry.end_byte};
    if (!piece.shape.empty()) {
      piece.offset.front() += entry.begin_row;
      piece.shape.front() = entry.end_row - entry.begin_row;
    }
    manifest.tensors[places.find(entry.tensor)->second].pieces.push_back(std::move(piece));
  }
  return {};
}

}  // namespace

Status add_tensors(Manifest& manifest, const std::vector<WrittenStripe>& stripes) {
  Places places;
  for (std::size_t i = 0; i < manifest.tensors.size(); ++i) places.emplace(manifest.tensors[i].name, i);
  for (const WrittenStripe& stripe : stripes) {
    RK_ASSERT(stripe.layout != nullptr);
    if (Status status = add_layout(manifest, places, stripe); !status) return status;
    if (Status status = add_pieces(manifest, places, stripe); !status) return status;
    manifest.files.push_back({stripe.written.file, stripe.written.bytes, stripe.written.hash, stripe.written.chunks});
  }
  for (const ManifestTensor& tensor : manifest.tensors) {
    if (const std::string fault = find_coverage_fault(tensor.global_shape, tensor.pieces); !fault.empty()) {
      return fail(ErrorCode::invalid_input, format("tensor \"{}\" {}", tensor.name, fault));
    }
  }
  return {};
}

void add_states(Manifest& manifest, const ManifestFile& file, const std::vector<ManifestState>& states) {
  manifest.files.push_back(file);
  manifest.states.insert(manifest.states.end(), states.begin(), states.end());
}

}  // namespace rekindle
