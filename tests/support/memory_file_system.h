// A file system in memory that remembers what was done to it, so that a test can ask how it may
// look after the power went off.
//
// The model is the weakest that POSIX allows: what was written to a file is certain after a later
// fsync of that file, a name in a folder after a later fsync of that folder, by the same client
// (storage over a network promises nothing for what others did); of everything else any part may be
// there or not, in any order, and a write may be there by half. One thread.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "worker-sidecar/storage/file_system.h"

namespace rekindle {

class MemoryFileSystem : public FileSystem {
 public:
  struct Node {
    FileKind kind = FileKind::file;
    std::string content;
    std::map<std::string, std::size_t> entries;  // of a folder: name to node
  };
  struct Operation {
    enum class Kind { write, add_name, remove_name, sync } kind = Kind::write;
    std::size_t node = 0;    // written to, or the folder, or synced
    std::size_t offset = 0;  // of a write
    std::string text;        // written bytes, or the name
    std::size_t target = 0;  // node that a name leads to
    std::size_t client = 0;
  };
  enum class Kept : std::uint8_t { none, half, all };

  MemoryFileSystem();  // with an empty folder /

  const std::vector<Operation>& operations() const { return operations_; }
  std::size_t syncs() const { return syncs_; }
  // Whose the calls from now on are.
  void set_client(std::size_t client) { client_ = client; }

  // The k-th fsync from now on (counted from 1) claims to have worked and does nothing.
  void lie_at_sync(std::size_t k) { lie_at_ = syncs_ + k; }

  // Indices of the operations before `end` that no sync before `end` has made certain.
  std::vector<std::size_t> uncertain(std::size_t end) const;
  // What is found after a loss of power right before operation `end`, with this much of each
  // uncertain operation. The answer remembers nothing of before.
  MemoryFileSystem after_power_loss(std::size_t end, const std::vector<std::size_t>& uncertain,
                                    const std::vector<Kept>& kept) const;

  // Whole content of a file, to be changed at will; null when there is none.
  std::string* content(const std::string& path);
  // Paths of all files, in order.
  std::vector<std::string> files() const;

  int open(const std::string& path, int flags, mode_t mode) override;
  int open_folder(int parent, const std::string& name) override;
  int set_blocking(int) override { return 0; }
  int close(int descriptor) override;
  ssize_t pwrite(int descriptor, const void* data, std::size_t bytes, std::uint64_t offset) override;
  int allocate(int, std::uint64_t) override { return -EOPNOTSUPP; }
  ssize_t pread(int descriptor, void* data, std::size_t bytes, std::uint64_t offset) override;
  int fsync(int descriptor) override;
  int fchmod(int, mode_t) override { return 0; }
  int fstat(int descriptor, FileInfo& info) override;
  int stat(const std::string& path, FileInfo& info) override;
  int link(const std::string& from, const std::string& to) override;
  int unlink(const std::string& path) override;
  int unlink_in(int folder, const std::string& name) override;
  int rmdir_in(int folder, const std::string& name) override;
  int mkdir(const std::string& path, mode_t mode) override;
  int chmod(const std::string&, mode_t) override { return 0; }
  int change_group(const std::string&, gid_t) override { return 0; }
  int list(const std::string& path, std::vector<std::string>& names) override;
  int list_in(int folder, std::vector<std::string>& names) override;
  bool is_member_of(gid_t) override { return true; }

 private:
  struct Place {
    std::size_t folder = 0;
    std::string name;
  };
  // From `begin` on, which is the root unless somebody has opened another folder.
  bool find(const std::string& path, std::size_t& node, std::size_t begin = 0) const;
  bool find_parent(const std::string& path, Place& place, std::size_t begin = 0) const;
  // Minus an errno.
  int remove_file(const std::string& path, std::size_t begin);
  int list_node(std::size_t node, std::vector<std::string>& names) const;
  std::size_t make_node(FileKind kind);
  void apply(const Operation& operation);
  void record(Operation operation);
  FileInfo info(std::size_t node) const;

  std::vector<Node> nodes_;
  std::vector<Operation> operations_;
  std::map<int, std::size_t> open_;  // the node behind each descriptor
  int next_descriptor_ = 3;
  std::size_t client_ = 0;
  std::size_t syncs_ = 0;
  std::size_t lie_at_ = 0;
};

// Calls `look` for every way in which the file system may be found after a loss of power within
// operations [begin, end], as far as they are few, and for a sample of them drawn from `seed` where
// they are many, until it answers false. Returns how many it has seen.
std::size_t for_each_power_loss(const MemoryFileSystem& recorded, std::size_t begin, std::size_t end,
                                std::uint64_t seed,
                                const std::function<bool(MemoryFileSystem&& found, std::size_t at)>& look);

}  // namespace rekindle
