#include "worker-sidecar/storage/piece_reader.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "common/base/assert.h"
#include "worker-sidecar/checkpoint/file_entries.h"
#include "worker-sidecar/checkpoint/hash.h"
#include "worker-sidecar/storage/files.h"
#include "worker-sidecar/storage/read_ahead.h"

namespace rekindle {
namespace {

constexpr std::size_t kReadChunkBytes = 4u << 20;

const Destination& destination_of(const RestoreMemory& memory, const ReadRange& range) {
  const std::span<const Destination> destinations = range.kind == TargetKind::tensor ? memory.tensors : memory.states;
  RK_ASSERT(range.index < destinations.size());
  const Destination& destination = destinations[range.index];
  RK_ASSERT(range.target_byte <= destination.bytes && range.bytes <= destination.bytes - range.target_byte);
  return destination;
}

// The one place where bytes enter registered memory: those at `offset` of the range.
Status put_bytes(const RestoreMemory& memory, const ReadRange& range, std::uint64_t offset, const char* from, std::size_t bytes) {
  const Destination& destination = destination_of(memory, range);
  if (destination.array != nullptr) return destination.array->copy_in(range.target_byte + offset, from, bytes);
  std::memcpy(static_cast<char*>(destination.data) + range.target_byte + offset, from, bytes);
  return {};
}

// Copies what the ranges want of [begin, begin + bytes). Ranges are by begin_byte, but one part of a file may be wanted twice (replicated state),
// so those that reach into later chunks stay in play: `first` is the first that is not wholly behind.
Status scatter(const FileReads& reads, const RestoreMemory& memory, const char* data, std::uint64_t begin, std::size_t bytes, std::size_t& first) {
  const std::uint64_t end = begin + bytes;
  for (std::size_t i = first; i < reads.ranges.size() && reads.ranges[i].begin_byte < end; ++i) {
    const ReadRange& range = reads.ranges[i];
    const std::uint64_t from = std::max(begin, range.begin_byte);
    const std::uint64_t to = std::min(end, range.begin_byte + range.bytes);
    if (from >= to) continue;
    if (Status status = put_bytes(memory, range, from - range.begin_byte, data + (from - begin), to - from); !status) return status;
  }
  while (first < reads.ranges.size() && reads.ranges[first].begin_byte + reads.ranges[first].bytes <= end) ++first;
  return {};
}

Status check_header(FileSystem& file_system, int descriptor, const std::string& path, const ManifestFile& file, const std::vector<DataEntry>& entries) {
  const Result<std::string> header = read_data_header(file_system, descriptor, file.bytes, path);
  if (!header) return std::unexpected(header.error());
  const Result<std::vector<DataEntry>> misplaced = entries_misplaced(entries, *header, file.bytes);
  if (!misplaced) return std::unexpected(with_context(misplaced.error(), path));
  if (misplaced->empty()) return {};
  return fail(ErrorCode::corrupt, path + " does not have \"" + misplaced->front().key + "\" where its manifest says: the manifest was changed");
}

Status read_file(FileSystem& file_system, const std::string& path, const ManifestFile& expected, const std::vector<DataEntry>& entries,
                 const FileReads& reads, const RestoreMemory& memory, std::vector<char>& buffer, const std::function<Status()>& may_go_on) {
  const Result<OpenFile> file = open_for_reading(file_system, path);
  if (!file) return std::unexpected(file.error());
  FileInfo info;
  if (const int result = file_system.fstat(file->descriptor(), info); result < 0) return storage_failure(-result, "looking at", path);
  if (info.bytes != expected.bytes) {
    return fail(ErrorCode::corrupt, path + " has " + std::to_string(info.bytes) + " bytes; its manifest says " + std::to_string(expected.bytes));
  }
  HashStream hash;
  std::size_t first = 0;
  ReadAhead ahead(file_system, file->descriptor(), expected.bytes);
  for (std::uint64_t position = 0; position < expected.bytes;) {
    ahead.reached(position);
    const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), expected.bytes - position));
    if (Status status = read_exactly(file_system, file->descriptor(), buffer.data(), part, position, path); !status) return status;
    hash.update(buffer.data(), part);
    if (Status status = scatter(reads, memory, buffer.data(), position, part, first); !status) return status;
    position += part;
    if (may_go_on) {
      if (Status status = may_go_on(); !status) return status;
    }
  }
  if (hash.digest() != expected.hash) {
    return fail(ErrorCode::corrupt, path + " does not have the hash that its manifest says: it was damaged after it was written");
  }
  return check_header(file_system, file->descriptor(), path, expected, entries);
}

}  // namespace

Status read_plan(FileSystem& file_system, const std::string& checkpoint_folder, const Manifest& manifest,
                 const RestorePlan& plan, const RestoreMemory& memory, const std::function<Status()>& may_go_on) {
  std::vector<char> buffer(kReadChunkBytes);
  const EntriesByFile entries = entries_by_file(manifest);
  for (const FileReads& reads : plan.files) {
    const ManifestFile* expected = find_file(manifest, reads.file);
    const auto placed = entries.find(reads.file);
    if (expected == nullptr || placed == entries.end()) return fail(ErrorCode::invalid_input, "the manifest does not list " + reads.file);
    const std::string path = join_path(checkpoint_folder, reads.file);
    if (Status status = read_file(file_system, path, *expected, placed->second, reads, memory, buffer, may_go_on); !status) return status;
  }
  return {};
}

Status read_plan_unverified(FileSystem& file_system, const std::string& checkpoint_folder, const RestorePlan& plan,
                            const RestoreMemory& memory) {
  std::vector<char> buffer;
  for (const FileReads& reads : plan.files) {
    const std::string path = join_path(checkpoint_folder, reads.file);
    const Result<OpenFile> file = open_for_reading(file_system, path);
    if (!file) return std::unexpected(file.error());
    for (const ReadRange& range : reads.ranges) {
      for (std::uint64_t done = 0; done < range.bytes;) {
        const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(kReadChunkBytes, range.bytes - done));
        buffer.resize(std::max(buffer.size(), part));
        if (Status status = read_exactly(file_system, file->descriptor(), buffer.data(), part, range.begin_byte + done, path); !status) return status;
        if (Status status = put_bytes(memory, range, done, buffer.data(), part); !status) return status;
        done += part;
      }
    }
  }
  return {};
}

}  // namespace rekindle
