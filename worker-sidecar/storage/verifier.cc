#include "worker-sidecar/storage/verifier.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "worker-sidecar/checkpoint/file_entries.h"
#include "worker-sidecar/checkpoint/hash.h"
#include "worker-sidecar/checkpoint/names.h"
#include "worker-sidecar/checkpoint/safetensors.h"
#include "worker-sidecar/storage/files.h"
#include "worker-sidecar/storage/publisher.h"
#include "worker-sidecar/storage/read_ahead.h"

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
    const Result<OpenFile> file = open_for_reading(file_system_, path_);
    if (!file) return report(0, expected_.file->bytes, file.error().message);
    FileInfo info;
    if (const int status = file_system_.fstat(file->descriptor(), info); status < 0) {
      return report(0, expected_.file->bytes, storage_failure(-status, "looking at", path_).error().message);
    }
    if (info.bytes != expected_.file->bytes) {
      report(std::min(info.bytes, expected_.file->bytes), std::max(info.bytes, expected_.file->bytes),
             "it has " + std::to_string(info.bytes) + " bytes; the manifest says " + std::to_string(expected_.file->bytes));
      if (info.bytes < expected_.file->bytes) return;
    }
    if (hash_contents(file->descriptor())) check_header(file->descriptor());
  }

 private:
  void report(std::uint64_t begin, std::uint64_t end, std::string sentence) {
    Finding finding{.file = expected_.file->name, .begin_byte = begin, .end_byte = end, .sentence = std::move(sentence)};
    for (const DataEntry& entry : expected_.entries) {
      if (entry.begin_byte < end && begin < entry.end_byte) finding.tensors.push_back(entry.key);
    }
    result_.findings.push_back(std::move(finding));
  }

  // True when every byte is as it was written.
  bool hash_contents(int descriptor) {
    const ManifestFile& file = *expected_.file;
    std::string buffer(static_cast<std::size_t>(std::min(kHashChunkBytes, file.bytes)), '\0');
    HashStream hash;
    bool fine = true;
    ReadAhead ahead(file_system_, descriptor, file.bytes);
    for (std::uint64_t position = 0, index = 0; position < file.bytes; position += kHashChunkBytes, ++index) {
      ahead.reached(position);
      const auto part = static_cast<std::size_t>(std::min(kHashChunkBytes, file.bytes - position));
      if (Status status = read_exactly(file_system_, descriptor, buffer.data(), part, position, path_); !status) {
        report(position, position + part, status.error().message);
        return false;
      }
      result_.bytes_read += part;
      const std::string_view chunk(buffer.data(), part);
      hash.update(chunk.data(), chunk.size());
      if (!file.chunks.empty() && chunk_hash_of(chunk) != file.chunks[index]) {
        report(position, position + part, "its bytes are not those that were written");
        fine = false;
      }
      on_bytes_(result_.bytes_read);
    }
    if (fine && hash.digest() != file.hash) {
      report(0, file.bytes, "its bytes are not those that were written (the hash of the whole file differs)");
      fine = false;
    }
    return fine;
  }

  // The bytes are right; what they say must be what the manifest says, too.
  void check_header(int descriptor) {
    const Result<std::string> header = read_data_header(file_system_, descriptor, expected_.file->bytes, path_);
    if (!header) return report(0, kDataLengthBytes, header.error().message);
    const Result<std::vector<DataEntry>> misplaced = entries_misplaced(expected_.entries, *header, expected_.file->bytes);
    if (!misplaced) return report(0, header->size(), misplaced.error().message);
    for (const DataEntry& entry : *misplaced) {
      report(entry.begin_byte, entry.end_byte, "its header does not have \"" + entry.key + "\" where the manifest says");
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
  const auto report_manifest = [&](std::string sentence) {
    FileInfo info;
    const std::uint64_t bytes = file_system.stat(manifest_path, info) == 0 ? info.bytes : 0;
    result.findings.push_back({.file = std::string(kManifestName), .end_byte = bytes, .sentence = std::move(sentence)});
  };

  Result<SealedManifest> sealed = read_manifest(file_system, job_folder, folder_name);
  if (!sealed) {
    report_manifest(sealed.error().code == ErrorCode::not_found ? "there is none: the save did not finish, or this is no checkpoint"
                                                                : sealed.error().message);
    return result;
  }
  result.sealed = std::move(*sealed);
  const Manifest& manifest = result.sealed->manifest;
  const std::optional<FolderName> name = parse_folder_name(folder_name);
  if (name && (name->attempt != manifest.attempt || name->step != manifest.step)) {
    report_manifest("it is of attempt " + std::to_string(manifest.attempt) + ", step " + std::to_string(manifest.step) +
                    ": the folder was renamed or the manifest copied");
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
