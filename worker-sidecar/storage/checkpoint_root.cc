#include "worker-sidecar/storage/checkpoint_root.h"

#include <fcntl.h>

#include <cerrno>
#include <utility>

#include "common/base/assert.h"
#include "common/base/format.h"
#include "common/base/json_fields.h"
#include "worker-sidecar/checkpoint/names.h"
#include "worker-sidecar/storage/files.h"

namespace rekindle {
namespace {

constexpr std::string_view kJobFormat = "rekindle-job";
constexpr std::uint64_t kJobVersion = 1;
constexpr std::size_t kJobFileBytesMax = 64u << 10;

std::string describe(const JobIdentity& job) { return format("{}/{}", job.namespace_name, job.name); }

Status check_root(FileSystem& file_system, const CheckpointRootOptions& options) {
  FileInfo info;
  int result = file_system.stat(options.root, info);
  if (result == -ENOENT && options.create_root) {
    result = file_system.mkdir(options.root, 0777);
    if (result < 0 && result != -EEXIST)
      return storage_failure(-result, "creating the checkpoint folder", options.root);
    result = file_system.stat(options.root, info);
  }
  // A trailing slash makes the kernel follow a symbolic link, which is how people mount
  // volumes elsewhere.
  if (result == 0 && info.kind == FileKind::other) result = file_system.stat(options.root + "/.", info);
  if (result == -ENOENT) {
    return fail(ErrorCode::not_found, format("the checkpoint folder {} does not exist. Create it, or in a "
                                             "pod mount a volume there (annotation rekindle.dev/checkpoint-claim).",
                                             options.root));
  }
  if (result < 0) return storage_failure(-result, "looking at the checkpoint folder", options.root);
  if (info.kind != FileKind::folder) {
    return fail(ErrorCode::invalid_input,
                format("the checkpoint folder {} is not a folder. Give the path of one.", options.root));
  }
  FileInfo inner;
  if (file_system.stat(join_path(options.root, kJobFileName), inner) == 0) {
    return fail(ErrorCode::refused,
                options.root + " is itself the checkpoint folder of one job. Give the folder above it.");
  }
  return {};
}

// Creates a folder that the group shares; true when it was not there before. One that is there is
// left as its owner made it.
Result<bool> make_shared_folder(FileSystem& file_system, const std::string& path) {
  const int result = file_system.mkdir(path, 0770);
  if (result == -EEXIST) {
    Result<FileInfo> info = info_of(file_system, path);
    if (!info) return std::unexpected(info.error());
    if (info->kind != FileKind::folder) return fail(ErrorCode::invalid_input, path + " is not a folder: move it away");
    return false;
  }
  if (result < 0) return storage_failure(-result, "creating", path);
  // The group first: changing it clears the setgid bit. Storage without groups (FUSE, squashed NFS)
  // is used as it is.
  if (file_system.is_member_of(kSharedGroup)) file_system.change_group(path, kSharedGroup);
  file_system.chmod(path, kSharedFolderMode);
  return true;
}

Status check_owner(FileSystem& file_system, const std::string& folder, const JobIdentity& job) {
  const Result<JobIdentity> owner = read_job_file(file_system, folder);
  if (!owner) return std::unexpected(owner.error());
  if (owner->namespace_name == job.namespace_name && owner->name == job.name) return {};
  return fail(
      ErrorCode::refused,
      format("the checkpoint folder {} belongs to job {} and cannot be used by {}. Give each job a folder of its own.",
             folder, describe(*owner), describe(job)));
}

Status claim_for_job(FileSystem& file_system, const std::string& folder, const JobIdentity& job,
                     const std::string& nonce) {
  FileInfo info;
  if (file_system.stat(join_path(folder, kJobFileName), info) == 0) return check_owner(file_system, folder, job);
  const std::string text = dump_json(
      {{"format", kJobFormat}, {"version", kJobVersion}, {"namespace", job.namespace_name}, {"name", job.name}});
  const Status status = publish_file(file_system, folder, kJobFileName, text, nonce);
  if (!status && status.error().code != ErrorCode::already_exists) return status;
  return check_owner(file_system, folder, job);
}

Status probe_with(FileSystem& file_system, const std::string& folder, const std::string& probe,
                  const std::string& linked) {
  const std::string content = "rekindle probe " + probe;
  if (Status status = write_new_file(file_system, probe, content); !status) return status;
  const int again = file_system.open(probe, O_WRONLY | O_CREAT | O_EXCL, kSharedFileMode);
  if (again >= 0) {
    file_system.close(again);
    return fail(ErrorCode::refused, format("the storage at {} creates a file twice (O_EXCL does not hold): checkpoints "
                                           "would not be safe there. Use a POSIX file system or NFS 4.",
                                           folder));
  }
  if (again != -EEXIST) return storage_failure(-again, "creating", probe);
  if (const int result = file_system.link(probe, linked); result < 0) {
    if (result == -EPERM || result == -ENOTSUP || result == -ENOSYS || result == -EMLINK) {
      return fail(ErrorCode::refused, format("the storage at {} cannot make hard links, which publish a checkpoint in "
                                             "one step. Use a POSIX file system or NFS 4.",
                                             folder));
    }
    return storage_failure(-result, "linking", linked);
  }
  if (const int result = file_system.link(probe, linked); result < 0 && result != -EEXIST) {
    return storage_failure(-result, "linking", linked);
  } else if (result == 0) {
    return fail(ErrorCode::refused, format("the storage at {} lets a link replace another one: checkpoints would not "
                                           "be safe there. Use a POSIX file system or NFS 4.",
                                           folder));
  }
  if (Status status = fsync_folder(file_system, folder); !status) return status;
  const Result<std::string> read = read_whole_file(file_system, linked, content.size());
  if (!read) return std::unexpected(read.error());
  if (*read != content) {
    return fail(ErrorCode::refused,
                format("the storage at {} gives back other bytes than were written. Do not use it.", folder));
  }
  return {};
}

}  // namespace

Result<JobIdentity> read_job_file(FileSystem& file_system, const std::string& job_folder) {
  const std::string path = join_path(job_folder, kJobFileName);
  const Result<std::string> text = read_whole_file(file_system, path, kJobFileBytesMax);
  if (!text) return std::unexpected(text.error());
  const Result<Json> json = parse_json(*text, path);
  if (!json) {
    return fail(ErrorCode::corrupt,
                json.error().message +
                    ". It only says whose folder this is: remove it when you are sure, and it is written anew.");
  }
  JsonFields in(*json, path);
  if (in.text("format") != kJobFormat) in.refuse("format", "must be " + std::string(kJobFormat));
  if (const std::uint64_t version = in.number("version"); version > kJobVersion) {
    return fail(ErrorCode::refused,
                format("{} has version {}; this program reads up to {}: use a newer one", path, version, kJobVersion));
  }
  JobIdentity owner{.namespace_name = in.text("namespace"), .name = in.text("name")};
  if (Status status = in.finish(); !status) return std::unexpected(status.error());
  return owner;
}

Status probe_storage(FileSystem& file_system, const std::string& folder, const std::string& nonce) {
  RK_ASSERT(is_nonce(nonce));
  const std::string probe = join_path(folder, ".probe-" + nonce);
  const std::string linked = join_path(folder, format(".probe-{}-linked", nonce));
  // The nonce is ours alone: what lies there is from a probe of our own that was cut off.
  file_system.unlink(linked);
  file_system.unlink(probe);
  const Status status = probe_with(file_system, folder, probe, linked);
  file_system.unlink(linked);
  file_system.unlink(probe);
  return status;
}

Result<JobFolder> open_job_folder(FileSystem& file_system, const CheckpointRootOptions& options) {
  RK_ASSERT(is_nonce(options.nonce));
  const Result<std::string> name = job_folder_name(options.job.namespace_name, options.job.name);
  if (!name) return std::unexpected(name.error());
  if (Status status = check_root(file_system, options); !status) return std::unexpected(status.error());

  JobFolder folder{.path = join_path(options.root, *name)};
  const Result<bool> created = make_shared_folder(file_system, folder.path);
  if (!created) return std::unexpected(created.error());
  folder.created = *created;
  if (Status status = claim_for_job(file_system, folder.path, options.job, options.nonce); !status)
    return std::unexpected(status.error());
  if (Result<bool> attempts = make_shared_folder(file_system, join_path(folder.path, kAttemptsFolder)); !attempts) {
    return std::unexpected(attempts.error());
  }
  if (Status status = probe_storage(file_system, folder.path, options.nonce); !status)
    return std::unexpected(status.error());
  if (folder.created) {
    if (Status status = fsync_folder(file_system, options.root); !status) return std::unexpected(status.error());
  }
  const Result<FileInfo> info = info_of(file_system, folder.path);
  if (!info) return std::unexpected(info.error());
  folder.shared = info->group == kSharedGroup;
  return folder;
}

}  // namespace rekindle
