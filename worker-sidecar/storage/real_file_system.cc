#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/openat2.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "worker-sidecar/storage/file_system.h"
#include "worker-sidecar/storage/ring_queue.h"

namespace rekindle {
namespace {

// Beyond ulimit -f the kernel answers with a signal, and the process that it would end may be the
// user's training.
bool is_beyond_limit(std::uint64_t file_bytes) {
  rlimit limit{};
  return ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && file_bytes > limit.rlim_cur;
}

int result_of(int value) { return value < 0 ? -errno : value; }

FileInfo info_from(const struct stat& status) {
  return {.kind = S_ISREG(status.st_mode)   ? FileKind::file
                  : S_ISDIR(status.st_mode) ? FileKind::folder
                                            : FileKind::other,
          .bytes = static_cast<std::uint64_t>(status.st_size),
          .inode = status.st_ino,
          .links = status.st_nlink,
          .mode = status.st_mode & 07777u,
          .group = status.st_gid};
}

constexpr int kFolderFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

// One part of the name after the other, for kernels and sandboxes without openat2.
int open_folder_by_parts(int parent, const std::string& name) {
  int folder = -1;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    const std::string part = name.substr(begin, end - begin);
    begin = end + 1;
    // Above the folder is not inside it.
    const int next =
        part == ".." ? -EXDEV : result_of(::openat(folder < 0 ? parent : folder, part.c_str(), kFolderFlags));
    if (folder >= 0) ::close(folder);
    if (next < 0) return next;
    folder = next;
  }
  return folder;
}

// Reads to the end and closes.
int list_folder_stream(DIR* folder, std::vector<std::string>& names) {
  names.clear();
  errno = 0;
  while (const dirent* entry = ::readdir(folder)) {
    if (std::strcmp(entry->d_name, ".") != 0 && std::strcmp(entry->d_name, "..") != 0)
      names.emplace_back(entry->d_name);
    errno = 0;
  }
  const int result = -errno;
  ::closedir(folder);
  std::ranges::sort(names);
  return result;
}

class RealFileSystem final : public FileSystem {
 public:
  int open(const std::string& path, int flags, mode_t mode) override {
    return result_of(::open(path.c_str(), flags | O_CLOEXEC, mode));
  }
  int open_folder(int parent, const std::string& name) override {
    open_how how{};
    how.flags = kFolderFlags;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
    const int descriptor = result_of(static_cast<int>(::syscall(SYS_openat2, parent, name.c_str(), &how, sizeof how)));
    // Containers from before openat2 answer EPERM to what they do not know.
    return descriptor == -ENOSYS || descriptor == -EPERM ? open_folder_by_parts(parent, name) : descriptor;
  }
  int set_blocking(int descriptor) override {
    const int flags = ::fcntl(descriptor, F_GETFL);
    return flags < 0 ? -errno : result_of(::fcntl(descriptor, F_SETFL, flags & ~O_NONBLOCK));
  }
  int close(int descriptor) override { return result_of(::close(descriptor)); }
  ssize_t pwrite(int descriptor, const void* data, std::size_t bytes, std::uint64_t offset) override {
    if (is_beyond_limit(offset + bytes)) return -EFBIG;
    const ssize_t written = ::pwrite(descriptor, data, bytes, static_cast<off_t>(offset));
    return written < 0 ? -errno : written;
  }
  ssize_t pread(int descriptor, void* data, std::size_t bytes, std::uint64_t offset) override {
    const ssize_t read = ::pread(descriptor, data, bytes, static_cast<off_t>(offset));
    return read < 0 ? -errno : read;
  }
  int fsync(int descriptor) override { return result_of(::fsync(descriptor)); }
  int allocate(int descriptor, std::uint64_t bytes) override {
    return is_beyond_limit(bytes) ? -EFBIG : result_of(::fallocate(descriptor, 0, 0, static_cast<off_t>(bytes)));
  }
  int fchmod(int descriptor, mode_t mode) override { return result_of(::fchmod(descriptor, mode)); }
  int fstat(int descriptor, FileInfo& info) override {
    struct stat status;
    const int result = result_of(::fstat(descriptor, &status));
    if (result == 0) info = info_from(status);
    return result;
  }
  int stat(const std::string& path, FileInfo& info) override {
    struct stat status;
    const int result = result_of(::lstat(path.c_str(), &status));
    if (result == 0) info = info_from(status);
    return result;
  }
  int link(const std::string& from, const std::string& to) override {
    return result_of(::link(from.c_str(), to.c_str()));
  }
  int unlink(const std::string& path) override { return result_of(::unlink(path.c_str())); }
  int unlink_in(int folder, const std::string& name) override { return result_of(::unlinkat(folder, name.c_str(), 0)); }
  int rmdir_in(int folder, const std::string& name) override {
    return result_of(::unlinkat(folder, name.c_str(), AT_REMOVEDIR));
  }
  int mkdir(const std::string& path, mode_t mode) override { return result_of(::mkdir(path.c_str(), mode)); }
  int chmod(const std::string& path, mode_t mode) override { return result_of(::chmod(path.c_str(), mode)); }
  int change_group(const std::string& path, gid_t group) override {
    return result_of(::chown(path.c_str(), static_cast<uid_t>(-1), group));
  }

  int list(const std::string& path, std::vector<std::string>& names) override {
    DIR* const folder = ::opendir(path.c_str());
    return folder == nullptr ? -errno : list_folder_stream(folder, names);
  }
  int list_in(int folder, std::vector<std::string>& names) override {
    // A description of its own: the caller's keeps its place, and stays open.
    const int descriptor = ::openat(folder, ".", kFolderFlags);
    if (descriptor < 0) return -errno;
    DIR* const stream = ::fdopendir(descriptor);
    if (stream != nullptr) return list_folder_stream(stream, names);
    const int result = -errno;
    ::close(descriptor);
    return result;
  }

  int resolve(const std::string& path, std::string& resolved) override {
    char* const found = ::realpath(path.c_str(), nullptr);
    if (found == nullptr) return -errno;
    resolved = found;
    std::free(found);
    return 0;
  }

  void will_read(int descriptor, std::uint64_t offset, std::uint64_t bytes) override {
    ::posix_fadvise(descriptor, static_cast<off_t>(offset), static_cast<off_t>(bytes), POSIX_FADV_WILLNEED);
  }
  std::unique_ptr<WriteQueue> make_write_queue(unsigned depth) override { return make_ring_write_queue(depth); }
  std::unique_ptr<ReadQueue> make_read_queue(unsigned depth) override { return make_ring_read_queue(depth); }

  bool is_member_of(gid_t group) override {
    if (::getegid() == group) return true;
    const int count = ::getgroups(0, nullptr);
    if (count <= 0) return false;
    std::vector<gid_t> groups(static_cast<std::size_t>(count));
    const int got = ::getgroups(count, groups.data());
    return got > 0 && std::find(groups.begin(), groups.begin() + got, group) != groups.begin() + got;
  }
};

}  // namespace

FileSystem& real_file_system() {
  static RealFileSystem file_system;
  return file_system;
}

}  // namespace rekindle
