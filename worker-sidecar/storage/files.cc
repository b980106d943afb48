#include "worker-sidecar/storage/files.h"

#include <fcntl.h>

#include <cerrno>
#include <utility>

#include "common/base/format.h"
#include "worker-sidecar/checkpoint/safetensors.h"

namespace rekindle {
namespace {

// What a person changes, for the causes that have one answer.
std::string_view advice_for(int error_number) {
  switch (error_number) {
    case ENOSPC: return " The storage is full: free space, enlarge the volume, or keep fewer checkpoints.";
    case EDQUOT: return " The quota is used up: raise it, free space, or keep fewer checkpoints.";
    case EFBIG:
      return " The process may not make files that large, or the storage cannot keep them: raise its limit (ulimit "
             "-f), or use another file system.";
    case EROFS: return " It is mounted read-only: mount it with write access (in a pod: readOnly: false).";
    case EACCES:
    case EPERM:
      return " The process needs to read, write and enter it; in a pod through group 64532: chgrp -R 64532 and chmod "
             "-R "
             "g+rwX on the folder, or set fsGroup: 64532.";
    case ENOENT: return " Check that the folder above it exists and that the storage is mounted there.";
    case ENOTDIR: return " A part of the path is a file: give the path of a folder.";
    case EIO: return " The storage reported an error: look at the node's kernel log and the storage's health.";
    case ESTALE: return " The network file system lost it: mount it again.";
    default: return "";
  }
}

Status chmod_shared(FileSystem& file_system, int descriptor, std::string_view path) {
  // The umask of a training process must not shut the sidecar out.
  const int result = file_system.fchmod(descriptor, kSharedFileMode);
  // FUSE and some NFS servers refuse modes altogether; probe_storage finds out whether that hurts.
  if (result < 0 && result != -EPERM && result != -ENOTSUP && result != -ENOSYS) {
    return storage_failure(-result, "setting the mode of", path);
  }
  return {};
}

}  // namespace

OpenFile::~OpenFile() { close(); }

OpenFile::OpenFile(OpenFile&& other) noexcept
    : file_system_(other.file_system_), descriptor_(std::exchange(other.descriptor_, -1)) {}

int OpenFile::close() {
  const int descriptor = std::exchange(descriptor_, -1);
  return descriptor < 0 ? 0 : file_system_->close(descriptor);
}

std::string join_path(std::string_view folder, std::string_view name) {
  std::string path(folder);
  if (path.empty() || path.back() != '/') path += '/';
  return path.append(name);
}

std::unexpected<Error> storage_failure(int error_number, std::string_view doing, std::string_view path) {
  std::unexpected<Error> failure = fail_errno(error_number, format("{} {} failed", doing, path));
  if (const std::string_view advice = advice_for(error_number); !advice.empty())
    failure.error().message.append(".").append(advice);
  return failure;
}

Result<OpenFile> open_for_reading(FileSystem& file_system, const std::string& path, FileInfo* info, int more_flags) {
  int descriptor;
  do {
    descriptor = file_system.open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | more_flags, 0);
  } while (descriptor == -EINTR);
  const bool is_link = descriptor == -ELOOP;
  if (descriptor < 0 && !is_link) return storage_failure(-descriptor, "opening", path);
  OpenFile file(file_system, descriptor);
  FileInfo found;
  if (const int result = is_link ? 0 : file_system.fstat(descriptor, found); result < 0)
    return storage_failure(-result, "looking at", path);
  if (found.kind != FileKind::file)
    return fail(ErrorCode::invalid_input, path + " is not a plain file: move it away, or restore it from a copy");
  // Where storage cannot say at once whether it has the bytes, a queued read would not wait for
  // them.
  file_system.set_blocking(descriptor);
  if (info != nullptr) *info = found;
  return file;
}

Result<OpenFile> open_for_removing(FileSystem& file_system, const std::string& base, const std::string& inside) {
  const int descriptor = file_system.open(base, O_RDONLY | O_DIRECTORY, 0);
  if (descriptor < 0) return storage_failure(-descriptor, "opening", base);
  OpenFile folder(file_system, descriptor);
  if (inside.empty()) return folder;
  const std::string path = join_path(base, inside);
  const int inner = file_system.open_folder(descriptor, inside);
  if (inner == -ELOOP || inner == -ENOTDIR || inner == -EXDEV) {
    return fail(ErrorCode::refused,
                path +
                    " is a link or a file where a folder of ours would be, and nothing was removed through it: "
                    "look at it, and remove it by hand");
  }
  if (inner < 0) return storage_failure(-inner, "opening", path);
  return OpenFile(file_system, inner);
}

Status remove_beneath(FileSystem& file_system, const std::string& base, const std::string& inside, FileKind kind) {
  const std::size_t cut = inside.rfind('/');
  const std::string above = cut == std::string::npos ? "" : inside.substr(0, cut);
  const std::string name = cut == std::string::npos ? inside : inside.substr(cut + 1);
  const Result<OpenFile> folder = open_for_removing(file_system, base, above);
  if (!folder) {
    if (folder.error().code == ErrorCode::not_found) return {};
    return std::unexpected(folder.error());
  }
  const int result = kind == FileKind::folder ? file_system.rmdir_in(folder->descriptor(), name)
                                              : file_system.unlink_in(folder->descriptor(), name);
  if (result < 0 && result != -ENOENT) return storage_failure(-result, "removing", join_path(base, inside));
  return {};
}

Result<FileInfo> info_of(FileSystem& file_system, const std::string& path) {
  FileInfo info;
  if (const int result = file_system.stat(path, info); result < 0) return storage_failure(-result, "looking at", path);
  return info;
}

Status write_all(FileSystem& file_system, int descriptor, const void* data, std::size_t bytes, std::uint64_t offset,
                 std::string_view path) {
  const auto* position = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t written = file_system.pwrite(descriptor, position, bytes, offset);
    if (written == -EINTR) continue;
    if (written < 0) return storage_failure(static_cast<int>(-written), "writing", path);
    if (written == 0) return storage_failure(ENOSPC, "writing", path);
    position += written;
    offset += static_cast<std::uint64_t>(written);
    bytes -= static_cast<std::size_t>(written);
  }
  return {};
}

Status fsync_folder(FileSystem& file_system, const std::string& path) {
  const int descriptor = file_system.open(path, O_RDONLY | O_DIRECTORY, 0);
  if (descriptor < 0) return storage_failure(-descriptor, "opening", path);
  const OpenFile folder(file_system, descriptor);
  return fsync_open_folder(file_system, folder.descriptor(), path);
}

Status fsync_open_folder(FileSystem& file_system, int descriptor, const std::string& path) {
  const int result = file_system.fsync(descriptor);
  // Some network file systems have nothing to sync in a folder and say so; names are durable there
  // when the call returns.
  if (result < 0 && result != -EINVAL && result != -ENOTSUP) return storage_failure(-result, "syncing", path);
  return {};
}

Status write_new_file(FileSystem& file_system, const std::string& path, std::string_view content) {
  const int descriptor = file_system.open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, kSharedFileMode);
  if (descriptor < 0) return storage_failure(-descriptor, "creating", path);
  OpenFile file(file_system, descriptor);
  Status status = chmod_shared(file_system, file.descriptor(), path);
  if (status) status = write_all(file_system, file.descriptor(), content.data(), content.size(), 0, path);
  if (status) {
    if (const int result = file_system.fsync(file.descriptor()); result < 0)
      status = storage_failure(-result, "syncing", path);
  }
  if (const int result = file.close(); status && result < 0) status = storage_failure(-result, "closing", path);
  if (!status) file_system.unlink(path);
  return status;
}

Status read_exactly(FileSystem& file_system, int descriptor, void* data, std::size_t bytes, std::uint64_t offset,
                    std::string_view path) {
  auto* position = static_cast<char*>(data);
  while (bytes > 0) {
    const ssize_t read = file_system.pread(descriptor, position, bytes, offset);
    if (read == -EINTR) continue;
    if (read < 0) return storage_failure(static_cast<int>(-read), "reading", path);
    if (read == 0) return fail(ErrorCode::corrupt, format("{} ends at byte {}, before its time", path, offset));
    position += read;
    offset += static_cast<std::uint64_t>(read);
    bytes -= static_cast<std::size_t>(read);
  }
  return {};
}

Result<std::string> read_whole_file(FileSystem& file_system, const std::string& path, std::uint64_t bytes_max) {
  FileInfo info;
  Result<OpenFile> file = open_for_reading(file_system, path, &info);
  if (!file) return std::unexpected(file.error());
  if (info.bytes > bytes_max) {
    return fail(ErrorCode::invalid_input, format("{} has {} bytes; at most {} are read", path, info.bytes, bytes_max));
  }
  std::string content(info.bytes, '\0');
  if (Status status = read_exactly(file_system, file->descriptor(), content.data(), content.size(), 0, path); !status) {
    return std::unexpected(status.error());
  }
  return content;
}

Result<std::string> read_data_header(FileSystem& file_system, int descriptor, std::uint64_t file_bytes,
                                     std::string_view path) {
  std::string header(kDataLengthBytes, '\0');
  if (Status status = read_exactly(file_system, descriptor, header.data(), header.size(), 0, path); !status)
    return std::unexpected(status.error());
  const Result<std::uint64_t> bytes = data_header_bytes(header, file_bytes);
  if (!bytes) return std::unexpected(with_context(bytes.error(), std::string(path)));
  header.resize(*bytes);
  if (Status status = read_exactly(file_system, descriptor, header.data(), header.size(), 0, path); !status)
    return std::unexpected(status.error());
  return header;
}

Result<std::vector<std::string>> list_folder(FileSystem& file_system, const std::string& path) {
  std::vector<std::string> names;
  if (const int result = file_system.list(path, names); result < 0) return storage_failure(-result, "listing", path);
  return names;
}

Status publish_file(FileSystem& file_system, const std::string& folder, std::string_view name, std::string_view content,
                    std::string_view nonce) {
  const std::string temporary = join_path(folder, format(".{}-{}", name, nonce));
  const std::string target = join_path(folder, name);
  // The nonce is ours alone: what lies there is from a try of our own that was cut off.
  file_system.unlink(temporary);
  if (Status status = write_new_file(file_system, temporary, content); !status) return status;

  Status status;
  if (const int result = file_system.link(temporary, target); result < 0) {
    FileInfo ours;
    FileInfo there;
    const bool linked_all_the_same = result == -EEXIST && file_system.stat(temporary, ours) == 0 &&
                                     file_system.stat(target, there) == 0 && ours.inode == there.inode &&
                                     ours.links >= 2;
    if (!linked_all_the_same) status = storage_failure(-result, "creating", target);
  }
  if (status) status = fsync_folder(file_system, folder);
  file_system.unlink(temporary);
  return status;
}

}  // namespace rekindle
