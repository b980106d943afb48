// The system calls that checkpoints need, so that tests can make the k-th one fail. Calls mirror
// the kernel's: a result that is negative is minus an errno; nothing is retried or interpreted
// here. Safe for any number of threads. Depends on libc only.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "worker-sidecar/storage/transfer_queue.h"

namespace rekindle {

enum class FileKind : std::uint8_t { file, folder, other };

struct FileInfo {
  FileKind kind = FileKind::other;
  std::uint64_t bytes = 0;
  std::uint64_t inode = 0;
  std::uint64_t links = 0;
  std::uint32_t mode = 0;  // permission bits
  std::uint32_t group = 0;
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // a descriptor; O_CLOEXEC is always added
  virtual int open(const std::string& path, int flags, mode_t mode) = 0;
  // A descriptor of the folder of this name inside an open one. `name` may have several parts;
  // -ELOOP or -ENOTDIR when one of them is a link or no folder.
  virtual int open_folder(int parent, const std::string& name) = 0;
  // Takes O_NONBLOCK from what was opened with it.
  virtual int set_blocking(int descriptor) = 0;
  virtual int close(int descriptor) = 0;
  virtual ssize_t pwrite(int descriptor, const void* data, std::size_t bytes, std::uint64_t offset) = 0;
  virtual ssize_t pread(int descriptor, void* data, std::size_t bytes, std::uint64_t offset) = 0;
  virtual int fsync(int descriptor) = 0;
  // reserves the space and makes the file that long
  virtual int allocate(int descriptor, std::uint64_t bytes) = 0;
  virtual int fchmod(int descriptor, mode_t mode) = 0;
  virtual int fstat(int descriptor, FileInfo& info) = 0;
  // does not follow a link at the end of the path
  virtual int stat(const std::string& path, FileInfo& info) = 0;
  virtual int link(const std::string& from, const std::string& to) = 0;
  virtual int unlink(const std::string& path) = 0;
  // the name in an open folder: a file or a link, or an empty folder
  virtual int unlink_in(int folder, const std::string& name) = 0;
  virtual int rmdir_in(int folder, const std::string& name) = 0;
  virtual int mkdir(const std::string& path, mode_t mode) = 0;
  virtual int chmod(const std::string& path, mode_t mode) = 0;
  virtual int change_group(const std::string& path, gid_t group) = 0;
  // sorted, without . and ..
  virtual int list(const std::string& path, std::vector<std::string>& names) = 0;
  virtual int list_in(int folder, std::vector<std::string>& names) = 0;
  virtual bool is_member_of(gid_t group) = 0;
  // The absolute path of what is there, without links; of a file system that has neither links nor
  // a working folder, the path itself.
  virtual int resolve(const std::string& path, std::string& resolved) { return resolved = path, 0; }

  // Begins to fetch this range of a file that will be read soon. Only a hint.
  virtual void will_read(int, std::uint64_t, std::uint64_t) {}

  // Null: writes go one at a time, by pwrite.
  virtual std::unique_ptr<WriteQueue> make_write_queue(unsigned) { return nullptr; }
  // Null: reads go one at a time, by pread.
  virtual std::unique_ptr<ReadQueue> make_read_queue(unsigned) { return nullptr; }
};

// The kernel's.
FileSystem& real_file_system();

}  // namespace rekindle
