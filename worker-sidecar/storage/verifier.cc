#include "worker-sidecar/storage/verifier.h"

#include <algorithm>
#include <utility>

#include "common/base/format.h"
#include "worker-sidecar/checkpoint/file_entries.h"
#include "worker-sidecar/checkpoint/hash.h"
#include "worker-sidecar/checkpoint/names.h"
#include "worker-sidecar/checkpoint/safetensors.h"
#include "worker-sidecar/storage/block_source.h"
#include "worker-sidecar/storage/files.h"
#include "worker-sidecar/storage/publisher.h"

namespace rekindle {
namespace {

// What the manifest says of one file.
struct Expected {
  const ManifestFile* file = nullptr;
  std::vector<DataEntry> entries;
};

std::vector<Expected> gather_expected(const Manifest& manifest) {
  EntriesByFile entries = entries_by_file(manifest);
  std::vector<Expected> all;
  for (const ManifestFile& file : manifest.files) all.push_back({&file, std::move(entries[file.name])});
  return all;
}

// One verification of one file.
class FileCheck {
 public:
  FileCheck(FileSystem& file_system, std::string path, const Expected& expected, Verification& result,
            const std::function<void(std::uint64_t)>& on_bytes)
      : file_system_(file_system), path_(std::move(path)), expected_(expected), result_(result), on_bytes_(on_bytes) {}

  void run() {
    const Result<SourceFile> file = SourceFile::open(file_system_, path_, ReadWay::queued);
    if (!file) return report(0, expected_.file->bytes, file.error().message);
    if (file->bytes() != expected_.file->bytes) {
      report(std::min(file->bytes(), expected_.file->bytes), std::max(file->bytes(), expected_.file->bytes),
             format("it has {} bytes; the manifest says {}", file->bytes(), expected_.file->bytes));
      if (file->bytes() < expected_.file->bytes) return;
    }
    if (hash_contents(*file)) check_header(file->plain());
  }

 private:
  void report(std::uint64_t begin, std::uint64_t end, std::string message) {
    Finding finding{.file = expected_.file->name, .begin_byte = begin, .end_byte = end, .message = std::move(message)};
    for (const DataEntry& entry : expected_.entries) {
      if (entry.begin_byte < end && begin < entry.end_byte) finding.tensors.push_back(entry.key);
    }
    result_.findings.push_back(std::move(finding));
  }

  // True when every byte is as it was written.
  bool hash_contents(const SourceFile& file) {
    const ManifestFile& expected = *expected_.file;
    HashStream hash;
    bool fine = true;
    std::uint64_t position = 0;
    BlockSource source(file_system_, {.block_bytes = kHashChunkBytes});
    source.start(file, every_block(expected.bytes, kHashChunkBytes));
    while (true) {
      const Result<std::optional<BlockSource::Block>> block = source.next();
      if (!block) {
        report(position, std::min(position + kHashChunkBytes, expected.bytes), block.error().message);
        return false;
      }
      if (!*block) break;
      const std::string_view chunk = (*block)->data;
      hash.update(chunk.data(), chunk.size());
      if (!expected.chunks.empty() && chunk_hash_of(chunk) != expected.chunks[position / kHashChunkBytes]) {
        report(position, position + chunk.size(), "its bytes are not those that were written");
        fine = false;
      }
      position += chunk.size();
      result_.bytes_read += chunk.size();
      on_bytes_(result_.bytes_read);
    }
    if (fine && hash.digest() != expected.hash) {
      report(0, expected.bytes, "its bytes are not those that were written (the hash of the whole file differs)");
      fine = false;
    }
    return fine;
  }

  // The bytes are right; what they say must be what the manifest says, too.
  void check_header(int descriptor) {
    const Result<std::string> header = read_data_header(file_system_, descriptor, expected_.file->bytes, path_);
    if (!header) return report(0, kDataLengthBytes, header.error().message);
    const Result<std::vector<DataEntry>> misplaced =
        entries_misplaced(expected_.entries, *header, expected_.file->bytes);
    if (!misplaced) return report(0, header->size(), misplaced.error().message);
    for (const DataEntry& entry : *misplaced) {
      report(entry.begin_byte, entry.end_byte,
             format("its header does not have \"{}\" where the manifest says", entry.key));
    }
  }

  FileSystem& file_system_;
  const std::string path_;
  const Expected& expected_;
  Verification& result_;
  const std::function<void(std::uint64_t)>& on_bytes_;
};

}  // namespace

Verification verify_checkpoint(FileSystem& file_system, const std::string& job_folder, const std::string& folder_name,
                               const std::optional<JobIdentity>& expected_job,
                               const std::function<void(std::uint64_t, std::uint64_t)>& progress) {
  Verification result{.folder = folder_name};
  const std::string folder = join_path(job_folder, folder_name);
  const std::string manifest_path = join_path(folder, kManifestName);
  const auto report_manifest = [&](std::string message) {
    FileInfo info;
    const std::uint64_t bytes = file_system.stat(manifest_path, info) == 0 ? info.bytes : 0;
    result.findings.push_back({.file = std::string(kManifestName), .end_byte = bytes, .message = std::move(message)});
  };

  Result<SealedManifest> sealed = read_manifest(file_system, job_folder, folder_name);
  if (!sealed) {
    report_manifest(sealed.error().code == ErrorCode::not_found
                        ? "there is none: the save did not finish, or this is no checkpoint"
                        : sealed.error().message);
    return result;
  }
  result.sealed = std::move(*sealed);
  const Manifest& manifest = result.sealed->manifest;
  const std::optional<FolderName> name = parse_folder_name(folder_name);
  if (name && (name->attempt != manifest.attempt || name->step != manifest.step)) {
    report_manifest(format("it is of attempt {}, step {}: the folder was renamed or the manifest copied",
                           manifest.attempt, manifest.step));
  }
  if (expected_job) {
    if (Status status = check_job(manifest, *expected_job); !status) report_manifest(status.error().message);
  }
  const std::uint64_t all_bytes = file_bytes(manifest);
  const std::function<void(std::uint64_t)> on_bytes = [&](std::uint64_t done) {
    if (progress) progress(done, all_bytes);
  };
  for (const Expected& expected : gather_expected(manifest)) {
    FileCheck(file_system, join_path(folder, expected.file->name), expected, result, on_bytes).run();
  }
  return result;
}

}  // namespace rekindle
