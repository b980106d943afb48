// The folder in memory where a local run keeps its socket and control blocks. Removed at the end;
// what a killed launcher left behind is removed by the next one, which knows it by the lock that
// no process holds any more.
#pragma once

#include <string>
#include <utility>

#include "common/base/error.h"

namespace rekindle::launcher {

class RunFolder {
 public:
  // Below /dev/shm when that can be written, else TMPDIR, else /tmp.
  static Result<RunFolder> make();
  RunFolder(RunFolder&& other) noexcept;
  RunFolder& operator=(RunFolder&&) = delete;
  ~RunFolder();

  const std::string& path() const { return path_; }
  // What the destructor does, for an end that runs none.
  void remove();

 private:
  RunFolder(std::string path, int lock) : path_(std::move(path)), lock_(lock) {}
  std::string path_;
  int lock_ = -1;
};

// Keeps a second `rekindle run` of the same job away from the same checkpoint folder while this one
// lives.
class JobLock {
 public:
  // already_exists when another run has it. Storage that knows no locks or is mounted read-only is
  // no error here: the storage probe says what is wrong. Whatever else keeps the file from being
  // locked is an error that names it.
  static Result<JobLock> take(const std::string& checkpoint_folder, const std::string& job);
  JobLock(JobLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  JobLock& operator=(JobLock&&) = delete;
  ~JobLock();

 private:
  explicit JobLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_ = -1;
};

}  // namespace rekindle::launcher
