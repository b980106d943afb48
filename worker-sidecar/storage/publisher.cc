#include "worker-sidecar/storage/publisher.h"

#include <utility>

#include "common/base/assert.h"
#include "common/base/format.h"
#include "worker-sidecar/checkpoint/names.h"
#include "worker-sidecar/storage/files.h"

namespace rekindle {
namespace {

Status check_files_are_there(FileSystem& file_system, const std::string& folder, const Manifest& manifest) {
  for (const ManifestFile& expected : manifest.files) {
    const std::string path = join_path(folder, expected.name);
    // Opened, not only queried: network file systems compare their cache with the server then.
    FileInfo info;
    const Result<OpenFile> file = open_for_reading(file_system, path, &info);
    if (!file) return std::unexpected(file.error());
    if (info.bytes != expected.bytes) {
      return fail(ErrorCode::corrupt,
                  format("{} has {} bytes where its writer reported {}", path, info.bytes, expected.bytes));
    }
  }
  return {};
}

Status check_attempt_is_newest(FileSystem& file_system, const std::string& job_folder, std::uint64_t attempt) {
  const Result<std::vector<std::string>> names = list_folder(file_system, join_path(job_folder, kAttemptsFolder));
  if (!names) return std::unexpected(names.error());
  for (const std::string& name : *names) {
    if (parse_attempt_file_name(name).value_or(0) > attempt) {
      return fail(ErrorCode::gone,
                  format("attempt {} of the job has begun; attempt {} may not publish checkpoints any more",
                         *parse_attempt_file_name(name), attempt));
    }
  }
  return {};
}

}  // namespace

Result<std::string> publish_manifest(FileSystem& file_system, const std::string& job_folder,
                                     const std::string& folder_name, const Manifest& manifest,
                                     const std::string& nonce) {
  RK_ASSERT(is_nonce(nonce));
  const std::optional<FolderName> name = parse_folder_name(folder_name);
  RK_ASSERT(name && name->attempt == manifest.attempt && name->step == manifest.step);
  const std::string folder = join_path(job_folder, folder_name);
  if (Status status = check_manifest(manifest); !status) return std::unexpected(status.error());
  const EncodedManifest encoded = encode_manifest(manifest);
  if (encoded.text.size() > kManifestBytesMax)
    return fail(ErrorCode::invalid_input, "the manifest would be larger than any reader accepts");
  if (Status status = check_files_are_there(file_system, folder, manifest); !status)
    return std::unexpected(status.error());
  if (Status status = check_attempt_is_newest(file_system, job_folder, manifest.attempt); !status)
    return std::unexpected(status.error());
  const Status status = publish_file(file_system, folder, kManifestName, encoded.text, nonce);
  if (!status && status.error().code != ErrorCode::already_exists) return std::unexpected(status.error());
  const Result<std::string> read = read_whole_file(file_system, join_path(folder, kManifestName), kManifestBytesMax);
  if (!read) return std::unexpected(with_context(read.error(), "reading back the manifest"));
  if (*read != encoded.text) {
    if (status)
      return fail(ErrorCode::corrupt,
                  format("the manifest of {} reads back differently: the storage is not reliable", folder));
    return fail(ErrorCode::conflict, folder + " was published already with another manifest");
  }
  // The process that linked an equal one may have died before this.
  if (!status) {
    if (Status synced = fsync_folder(file_system, folder); !synced) return std::unexpected(synced.error());
  }
  // The folder's own name, which no reader needed before.
  if (Status synced = fsync_folder(file_system, job_folder); !synced) return std::unexpected(synced.error());
  return encoded.hash;
}

Result<SealedManifest> read_manifest(FileSystem& file_system, const std::string& job_folder,
                                     const std::string& folder_name) {
  // The name may have come over a wire.
  if (!is_safe_file_name(folder_name))
    return fail(ErrorCode::refused, format("\"{}\" cannot be the name of a checkpoint's folder", folder_name));
  const std::string path = join_path(join_path(job_folder, folder_name), kManifestName);
  const Result<std::string> text = read_whole_file(file_system, path, kManifestBytesMax);
  if (!text) return std::unexpected(text.error());
  Result<SealedManifest> sealed = decode_manifest(*text);
  if (!sealed) return std::unexpected(with_context(sealed.error(), path));
  return sealed;
}

}  // namespace rekindle
