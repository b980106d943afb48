#include "worker-sidecar/storage/folder.h"

#include <cerrno>

#include "common/base/assert.h"
#include "worker-sidecar/storage/files.h"

namespace rekindle {

Result<std::string> create_checkpoint_folder(FileSystem& file_system, const std::string& job_folder,
                                             const FolderName& name) {
  const std::string text = checkpoint_folder_name(name);
  const std::string path = join_path(job_folder, text);
  if (const int result = file_system.mkdir(path, 0770); result < 0) {
    if (result == -EEXIST)
      return fail(ErrorCode::already_exists,
                  path + " exists already; names of checkpoints are never used twice: take another nonce");
    return storage_failure(-result, "creating", path);
  }
  // The group came from the job's folder (setgid); storage without groups or modes is used as it
  // is.
  file_system.chmod(path, kSharedFolderMode);
  return text;
}

Status remove_checkpoint_folder(FileSystem& file_system, const std::string& job_folder, const std::string& name) {
  RK_ASSERT(parse_folder_name(name).has_value());
  const std::string path = join_path(job_folder, name);
  const Result<OpenFile> folder = open_for_removing(file_system, job_folder, name);
  if (!folder) {
    if (folder.error().code == ErrorCode::not_found) return {};
    return std::unexpected(folder.error());
  }
  const auto remove = [&](const std::string& file) -> Result<bool> {
    const int result = file_system.unlink_in(folder->descriptor(), file);
    if (result < 0 && result != -ENOENT) return storage_failure(-result, "removing", join_path(path, file));
    return result == 0;
  };
  const Result<bool> was_published = remove(std::string(kManifestName));
  if (!was_published) return std::unexpected(was_published.error());
  if (*was_published) {
    if (Status status = fsync_open_folder(file_system, folder->descriptor(), path); !status) return status;
  }
  std::vector<std::string> names;
  if (const int result = file_system.list_in(folder->descriptor(), names); result < 0)
    return result == -ENOENT ? Status() : storage_failure(-result, "listing", path);
  for (const std::string& file : names) {
    if (const Result<bool> removed = remove(file); !removed) return std::unexpected(removed.error());
  }
  return remove_beneath(file_system, job_folder, name, FileKind::folder);
}

}  // namespace rekindle
