#include "worker-sidecar/checkpoint/manifest.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "common/base/format.h"
#include "worker-sidecar/checkpoint/coverage.h"
#include "worker-sidecar/checkpoint/hash.h"
#include "worker-sidecar/checkpoint/names.h"
#include "worker-sidecar/checkpoint/safetensors.h"

namespace rekindle {
namespace {

std::unexpected<Error> wrong(std::string what) {
  return fail(ErrorCode::invalid_input, "the manifest is wrong: " + std::move(what));
}

using FilesByName = std::map<std::string_view, const ManifestFile*>;

struct UsedRange {
  std::string_view file;
  std::uint64_t begin_byte;
  std::uint64_t end_byte;
  std::string_view key;

  auto operator<=>(const UsedRange&) const = default;
};

Status check_header_fields(const Manifest& manifest) {
  if (manifest.attempt == 0) return wrong("attempt must not be 0");
  if (manifest.step == 0) return wrong("step must not be 0");
  if (manifest.world_size == 0) return wrong("world_size must not be 0");
  if (manifest.live_ranks > manifest.world_size) {
    return wrong(
        format("live_ranks is {}; it must be at most world_size, {}", manifest.live_ranks, manifest.world_size));
  }
  if (const Result<std::string> name = job_folder_name(manifest.job.namespace_name, manifest.job.name); !name) {
    return wrong(name.error().message);
  }
  std::set<std::uint32_t> inexact;
  for (const std::uint32_t rank : manifest.inexact_ranks) {
    if (rank >= manifest.world_size || !inexact.insert(rank).second)
      return wrong(format("inexact_ranks names rank {} wrongly", rank));
  }
  return {};
}

Status check_files(const Manifest& manifest, FilesByName& files) {
  for (const ManifestFile& file : manifest.files) {
    if (!is_safe_file_name(file.name) || file.name == kManifestName) {
      return wrong(
          format("\"{}\" cannot be the name of a data file; it must be a plain name inside the folder", file.name));
    }
    if (!is_hash_text(file.hash)) return wrong(format("the hash of {} is not one", file.name));
    const std::uint64_t chunks = file.bytes / kHashChunkBytes + (file.bytes % kHashChunkBytes != 0 ? 1 : 0);
    if (!file.chunks.empty() &&
        (file.chunks.size() != chunks ||
         !std::ranges::all_of(file.chunks, [](const std::string& hash) { return is_hash_text(hash, 16); }))) {
      return wrong(format("the chunk hashes of {} do not fit its size", file.name));
    }
    if (file.bytes < kDataLengthBytes || file.bytes > 2 * kTensorBytesMax)
      return wrong(format("the size of {} is not possible", file.name));
    if (!files.emplace(file.name, &file).second) return wrong(format("file {} is listed twice", file.name));
  }
  return {};
}

Status check_range(const FilesByName& files, const UsedRange& range, std::uint64_t bytes) {
  const auto file = files.find(range.file);
  if (file == files.end()) return wrong(format("\"{}\" lies in {}, which is not listed", range.key, range.file));
  if (range.begin_byte < kDataLengthBytes || range.begin_byte > range.end_byte ||
      range.end_byte > file->second->bytes) {
    return wrong(format("\"{}\" does not lie inside the data of {}", range.key, range.file));
  }
  if (range.end_byte - range.begin_byte != bytes) {
    return wrong(format("\"{}\" in {} has {} bytes where type and shape say {}", range.key, range.file,
                        range.end_byte - range.begin_byte, bytes));
  }
  return {};
}

Status check_tensor_entry(const ManifestTensor& tensor, const FilesByName& files, std::vector<UsedRange>& used) {
  const TensorDescription whole = whole_tensor(tensor.name, tensor.dtype, tensor.global_shape);
  if (Status status = check_tensor(whole); !status) return wrong(status.error().message);
  if (const std::string fault = find_coverage_fault(tensor.global_shape, tensor.pieces); !fault.empty()) {
    return wrong(format("tensor \"{}\" {}", tensor.name, fault));
  }
  for (const ManifestPiece& piece : tensor.pieces) {
    // The rows in a key are those of the rank that wrote it, which may hold a part of the tensor
    // only.
    if (piece.key != tensor.name && !piece.key.starts_with(tensor.name + "[")) {
      return wrong(format("\"{}\" cannot be a piece of tensor \"{}\"", piece.key, tensor.name));
    }
    const UsedRange range{piece.file, piece.begin_byte, piece.end_byte, piece.key};
    if (!is_whole_bytes(tensor.dtype, piece.shape) || !is_whole_bytes(tensor.dtype, piece.offset)) {
      return wrong(format("piece \"{}\" begins or ends inside a byte", piece.key));
    }
    const Result<std::uint64_t> bytes = array_bytes(tensor.dtype, piece.shape);
    if (!bytes) return wrong(format("piece \"{}\" is too large", piece.key));
    if (Status status = check_range(files, range, *bytes); !status) return status;
    used.push_back(range);
  }
  return {};
}

Status check_ranges_are_disjoint(std::vector<UsedRange>& used) {
  std::ranges::sort(used);
  const UsedRange* previous = nullptr;
  for (const UsedRange& range : used) {
    if (range.begin_byte == range.end_byte) continue;
    if (previous != nullptr && previous->file == range.file && previous->end_byte > range.begin_byte) {
      return wrong(format("\"{}\" and \"{}\" share bytes of {}", previous->key, range.key, range.file));
    }
    previous = &range;
  }
  return {};
}

}  // namespace

Status check_manifest(const Manifest& manifest) {
  if (Status status = check_header_fields(manifest); !status) return status;
  FilesByName files;
  if (Status status = check_files(manifest, files); !status) return status;
  if (manifest.tensors.size() > kTensorsMax) return wrong("it has too many tensors");

  std::vector<UsedRange> used;
  std::set<std::string_view> names;
  for (const ManifestTensor& tensor : manifest.tensors) {
    if (!names.insert(tensor.name).second) return wrong(format("tensor \"{}\" is listed twice", tensor.name));
    if (Status status = check_tensor_entry(tensor, files, used); !status) return status;
  }
  std::set<std::pair<std::uint32_t, std::string_view>> states;
  for (const ManifestState& state : manifest.states) {
    if (const std::string fault = find_name_fault(state.name); !fault.empty())
      return wrong("the name of a state " + fault);
    if (state.rank >= manifest.world_size)
      return wrong(format("state \"{}\" belongs to a rank that does not exist", state.name));
    if (!states.emplace(state.rank, state.name).second)
      return wrong(format("state \"{}\" of a rank is listed twice", state.name));
    if (state.key != state_key(state.rank, state.name))
      return wrong(format("state \"{}\" of rank {} has the key \"{}\"", state.name, state.rank, state.key));
    const UsedRange range{state.file, state.begin_byte, state.end_byte, state.key};
    if (Status status = check_range(files, range, state.bytes); !status) return status;
    used.push_back(range);
  }
  return check_ranges_are_disjoint(used);
}

Status check_job(const Manifest& manifest, const JobIdentity& expected) {
  if (manifest.job.namespace_name == expected.namespace_name && manifest.job.name == expected.name) return {};
  return fail(ErrorCode::refused,
              format("the checkpoint belongs to job {}/{}, not to {}/{}", manifest.job.namespace_name,
                     manifest.job.name, expected.namespace_name, expected.name));
}

const ManifestFile* find_file(const Manifest& manifest, std::string_view name) {
  const auto found = std::ranges::find(manifest.files, name, &ManifestFile::name);
  return found == manifest.files.end() ? nullptr : &*found;
}

std::uint64_t data_bytes(const Manifest& manifest) {
  std::uint64_t bytes = 0;
  for (const ManifestTensor& tensor : manifest.tensors) {
    for (const ManifestPiece& piece : tensor.pieces) bytes += piece.end_byte - piece.begin_byte;
  }
  for (const ManifestState& state : manifest.states) bytes += state.bytes;
  return bytes;
}

std::uint64_t file_bytes(const Manifest& manifest) {
  std::uint64_t bytes = 0;
  for (const ManifestFile& file : manifest.files) bytes += file.bytes;
  return bytes;
}

CheckpointSummary summarize(const Manifest& manifest) {
  return {.bytes = file_bytes(manifest),
          .world_size = manifest.world_size,
          .live_ranks = manifest.live_ranks,
          .agreed_milliseconds = manifest.agreed_milliseconds};
}

}  // namespace rekindle
