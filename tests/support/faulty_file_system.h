// A file system that breaks at one chosen call: the k-th call fails with an errno, or the k-th
// write is short and the next one fails. With `power_off`, everything after the k-th call fails,
// too: the process is dead from there on.
#pragma once

#include <cerrno>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "worker-sidecar/storage/file_system.h"

namespace rekindle {

struct Breakage {
  std::size_t at_call = 0;  // counted from 1; 0: never
  int error_number = EIO;
  bool short_write = false;  // a write at that call writes half and reports it, without an error
  bool power_off = false;
};

class FaultyFileSystem : public FileSystem {
 public:
  explicit FaultyFileSystem(Breakage breakage, FileSystem& inner = real_file_system())
      : breakage_(breakage), inner_(inner) {}

  std::size_t calls() const { return calls_; }
  // Name of the call that broke, "fsync"; empty when none did.
  const std::string& broken() const { return broken_; }

  int open(const std::string& path, int flags, mode_t mode) override {
    return fails("open") ? -error() : inner_.open(path, flags, mode);
  }
  int open_folder(int parent, const std::string& name) override {
    return fails("open_folder") ? -error() : inner_.open_folder(parent, name);
  }
  int set_blocking(int descriptor) override { return inner_.set_blocking(descriptor); }
  // A descriptor is really closed even when the call reports an error, as in the kernel.
  int close(int descriptor) override {
    const bool broken = fails("close");
    const int result = inner_.close(descriptor);
    return broken ? -error() : result;
  }
  ssize_t pwrite(int descriptor, const void* data, std::size_t bytes, std::uint64_t offset) override {
    if (!fails("write")) return inner_.pwrite(descriptor, data, bytes, offset);
    if (breakage_.short_write && bytes > 1) return inner_.pwrite(descriptor, data, bytes / 2, offset);
    return -error();
  }
  ssize_t pread(int descriptor, void* data, std::size_t bytes, std::uint64_t offset) override {
    if (!fails("pread")) return inner_.pread(descriptor, data, bytes, offset);
    if (breakage_.short_write && bytes > 1) return inner_.pread(descriptor, data, bytes / 2, offset);
    return -error();
  }
  int fsync(int descriptor) override { return fails("fsync") ? -error() : inner_.fsync(descriptor); }
  int allocate(int descriptor, std::uint64_t bytes) override {
    return fails("allocate") ? -error() : inner_.allocate(descriptor, bytes);
  }
  int fchmod(int descriptor, mode_t mode) override {
    return fails("fchmod") ? -error() : inner_.fchmod(descriptor, mode);
  }
  int fstat(int descriptor, FileInfo& info) override {
    return fails("fstat") ? -error() : inner_.fstat(descriptor, info);
  }
  int stat(const std::string& path, FileInfo& info) override {
    return fails("stat") ? -error() : inner_.stat(path, info);
  }
  int link(const std::string& from, const std::string& to) override {
    return fails("link") ? -error() : inner_.link(from, to);
  }
  int unlink(const std::string& path) override { return fails("unlink") ? -error() : inner_.unlink(path); }
  int mkdir(const std::string& path, mode_t mode) override {
    return fails("mkdir") ? -error() : inner_.mkdir(path, mode);
  }
  int unlink_in(int folder, const std::string& name) override {
    return fails("unlink_in") ? -error() : inner_.unlink_in(folder, name);
  }
  int rmdir_in(int folder, const std::string& name) override {
    return fails("rmdir_in") ? -error() : inner_.rmdir_in(folder, name);
  }
  int chmod(const std::string& path, mode_t mode) override {
    return fails("chmod") ? -error() : inner_.chmod(path, mode);
  }
  int change_group(const std::string& path, gid_t group) override {
    return fails("change_group") ? -error() : inner_.change_group(path, group);
  }
  int list(const std::string& path, std::vector<std::string>& names) override {
    return fails("list") ? -error() : inner_.list(path, names);
  }
  int list_in(int folder, std::vector<std::string>& names) override {
    return fails("list_in") ? -error() : inner_.list_in(folder, names);
  }
  int resolve(const std::string& path, std::string& resolved) override { return inner_.resolve(path, resolved); }
  bool is_member_of(gid_t group) override { return inner_.is_member_of(group); }

 private:
  // What somebody else does at this moment; calls are counted from 1.
  virtual void before_call(std::size_t) {}

  bool fails(const char* call) {
    before_call(++calls_);
    if (breakage_.at_call == 0 || calls_ < breakage_.at_call) return false;
    if (calls_ > breakage_.at_call) return breakage_.power_off;
    broken_ = call;
    return true;
  }
  int error() const { return breakage_.error_number; }

  const Breakage breakage_;
  FileSystem& inner_;
  std::size_t calls_ = 0;
  std::string broken_;
};

}  // namespace rekindle
