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
  if (const int result = file_system.unlink(join_path(path, kManifestName)); result < 0 && result != -ENOENT) {
    return storage_failure(-result, "removing", join_path(path, kManifestName));
  } else if (result == 0) {
    if (Status status = fsync_folder(file_system, path); !status) return status;
  }
  std::vector<std::string> names;
  if (const int result = file_system.list(path, names); result < 0) {
    if (result == -ENOENT) return {};
    return storage_failure(-result, "listing", path);
  }
  for (const std::string& file : names) {
    if (const int result = file_system.unlink(join_path(path, file)); result < 0 && result != -ENOENT) {
      return storage_failure(-result, "removing", join_path(path, file));
    }
  }
  if (const int result = file_system.rmdir(path); result < 0 && result != -ENOENT)
    return storage_failure(-result, "removing", path);
  return {};
}

}  // namespace rekindle
