#include "worker-sidecar/storage/scan.h"

#include <cerrno>
#include <utility>

#include "common/base/format.h"
#include "worker-sidecar/checkpoint/names.h"
#include "worker-sidecar/storage/attempt_store.h"
#include "worker-sidecar/storage/files.h"
#include "worker-sidecar/storage/publisher.h"

namespace rekindle {

Result<FolderScan> scan_job_folder(FileSystem& file_system, const std::string& job_folder) {
  FolderScan scan;
  Result<std::vector<FoundAttempt>> attempts = list_attempts(file_system, job_folder);
  if (attempts) {
    scan.attempts = std::move(*attempts);
  } else if (attempts.error().code != ErrorCode::not_found) {
    return std::unexpected(attempts.error());
  }
  const Result<std::vector<std::string>> names = list_folder(file_system, job_folder);
  if (!names) return std::unexpected(names.error());
  for (const std::string& name : *names) {
    std::optional<FolderName> folder_name = parse_folder_name(name);
    if (!folder_name) continue;
    FoundFolder folder{.path = name, .name = std::move(*folder_name)};
    FileInfo info;
    const int seen = file_system.stat(join_path(job_folder, name), info);
    if (seen == -ENOENT) continue;
    if (seen == 0 && info.kind == FileKind::other) {
      // Counted as the checkpoint that it leads to, it would push the real one out.
      folder.manifest = fail(ErrorCode::corrupt, format("{} is a link, and a checkpoint is a folder of its own", name));
    } else {
      Result<SealedManifest> sealed = read_manifest(file_system, job_folder, name);
      if (sealed || sealed.error().code != ErrorCode::not_found) folder.manifest = std::move(sealed);
    }
    scan.folders.push_back(std::move(folder));
  }
  return scan;
}

}  // namespace rekindle
