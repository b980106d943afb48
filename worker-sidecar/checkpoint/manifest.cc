#include "worker-sidecar/checkpoint/manifest.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

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
    return wrong("live_ranks is " + std::to_string(manifest.live_ranks) + "; it must be at most world_size, " +
                 std::to_string(manifest.world_size));
  }
  if (const Result<std::string> name = job_folder_name(manifest.job.namespace_name, manifest.job.name); !name) {
    return wrong(name.error().message);
  }
  std::set<std::uint32_t> inexact;
  for (const std::uint32_t rank : manifest.inexact_ranks) {
    if (rank >= manifest.world_size || !inexact.insert(rank).second)
      return wrong("inexact_ranks names rank " + std::to_string(rank) + " wrongly");
  }
  return {};
}

Status check_files(const Manifest& manifest, FilesByName& files) {
  for (const ManifestFile& file : manifest.files) {
    if (!is_safe_file_name(file.name) || file.name == kManifestName) {
      return wrong("\"" + file.name +
                   "\" cannot be the name of a data file; it must be a plain name inside the folder");
    }
    if (!is_hash_text(file.hash)) return wrong("the hash of " + file.name + " is not one");
    const std::uint64_t chunks = file.bytes / kHashChunkBytes + (file.bytes % kHashChunkBytes != 0 ? 1 : 0);
    if (!file.chunks.empty() &&
        (file.chunks.size() != chunks ||
         !std::ranges::all_of(file.chunks, [](const std::string& hash) { return is_hash_text(hash, 16); }))) {
      return wrong("the chunk hashes of " + file.name + " do not fit its size");
    }
    if (file.bytes < kDataLengthBytes || file.bytes > 2 * kTensorBytesMax)
      return wrong("the size of " + file.name + " is not possible");
    if (!files.emplace(file.name, &file).second) return wrong("file " + file.name + " is listed twice");
  }
  return {};
}

Status check_range(const FilesByName& files, const UsedRange& range, std::uint64_t bytes) {
  const auto file = files.find(range.file);
  if (file == files.end())
    return wrong("\"" + std::string(range.key) + "\" lies in " + std::string(range.file) + ", which is not listed");
  if (range.begin_byte < kDataLengthBytes || range.begin_byte > range.end_byte ||
      range.end_byte > file->second->bytes) {
    return wrong("\"" + std::string(range.key) + "\" does not lie inside the data of " + std::string(range.file));
  }
  if (range.end_byte - range.begin_byte != bytes) {
    return wrong("\"" + std::string(range.key) + "\" in " + std::string(range.file) + " has " +
                 std::to_string(range.end_byte - range.begin_byte) + " bytes where type and shape say " +
                 std::to_string(bytes));
  }
  return {};
}

Status check_tensor_entry(const ManifestTensor& tensor, const FilesByName& files, std::vector<UsedRange>& used) {
  const TensorDescription whole = whole_tensor(tensor.name, tensor.dtype, tensor.global_shape);
  if (Status status = check_tensor(whole); !status) return wrong(status.error().message);
  if (const std::string fault = find_coverage_fault(tensor.global_shape, tensor.pieces); !fault.empty()) {
    return wrong("tensor \"" + tensor.name + "\" " + fault);
  }
  for (const ManifestPiece& piece : tensor.pieces) {
    // The rows in a key are those of whoever wrote it, which may hold a part of the tensor only.
    if (piece.key != tensor.name && !piece.key.starts_with(tensor.name + "[")) {
      return wrong("\"" + piece.key + "\" cannot be a piece of tensor \"" + tensor.name + "\"");
    }
    const UsedRange range{piece.file, piece.begin_byte, piece.end_byte, piece.key};
    if (!is_whole_bytes(tensor.dtype, piece.shape) || !is_whole_bytes(tensor.dtype, piece.offset)) {
      return wrong("piece \"" + piece.key + "\" begins or ends inside a byte");
    }
    const Result<std::uint64_t> bytes = array_bytes(tensor.dtype, piece.shape);
    if (!bytes) return wrong("piece \"" + piece.key + "\" is too large");
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
      return wrong("\"" + std::string(previous->key) + "\" and \"" + std::string(range.key) + "\" share bytes of " +
                   std::string(range.file));
    }
    previous = &range;
  }
  return {};
}

}  // namespace

std::string_view to_string(CheckpointKind kind) {
  return kind == CheckpointKind::breakpoint ? "breakpoint" : "periodic";
}

Status check_manifest(const Manifest& manifest) {
  if (Status status = check_header_fields(manifest); !status) return status;
  FilesByName files;
  if (Status status = check_files(manifest, files); !status) return status;
  if (manifest.tensors.size() > kTensorsMax) return wrong("it has too many tensors");

  std::vector<UsedRange> used;
  std::set<std::string_view> names;
  for (const ManifestTensor& tensor : manifest.tensors) {
    if (!names.insert(tensor.name).second) return wrong("tensor \"" + tensor.name + "\" is listed twice");
    if (Status status = check_tensor_entry(tensor, files, used); !status) return status;
  }
  std::set<std::pair<std::uint32_t, std::string_view>> states;
  for (const ManifestState& state : manifest.states) {
    if (const std::string fault = find_name_fault(state.name); !fault.empty())
      return wrong("the name of a state " + fault);
    if (state.rank >= manifest.world_size)
      return wrong("state \"" + state.name + "\" belongs to a rank that does not exist");
    if (!states.emplace(state.rank, state.name).second)
      return wrong("state \"" + state.name + "\" of a rank is listed twice");
    if (state.key != state_key(state.rank, state.name))
      return wrong("state \"" + state.name + "\" of rank " + std::to_string(state.rank) + " has the key \"" +
                   state.key + "\"");
    const UsedRange range{state.file, state.begin_byte, state.end_byte, state.key};
    if (Status status = check_range(files, range, state.bytes); !status) return status;
    used.push_back(range);
  }
  return check_ranges_are_disjoint(used);
}

Status check_job(const Manifest& manifest, const JobIdentity& expected) {
  if (manifest.job.namespace_name == expected.namespace_name && manifest.job.name == expected.name) return {};
  return fail(ErrorCode::refused, "the checkpoint belongs to job " + manifest.job.namespace_name + "/" +
                                      manifest.job.name + ", not to " + expected.namespace_name + "/" + expected.name);
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
