#include "worker-sidecar/launcher/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "common/base/format.h"
#include "common/system/file_descriptor.h"

namespace rekindle::launcher {
namespace {

constexpr const char* kPrefix = "rekindle-run-";
constexpr int kAttemptsMax = 100;

std::string lock_of(const std::string& folder) { return folder + "/lock"; }

int lock_in(const std::string& folder, int flags) {
  FileDescriptor lock(::open(lock_of(folder).c_str(), flags | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (lock && ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return lock.release();
  return -1;
}

// remove_leftovers() of another start may have come between the making of the file and the lock,
// and then the folder is gone or going.
bool is_ours(const std::string& folder, int lock) {
  struct stat locked{};
  struct stat there{};
  return lock >= 0 && ::fstat(lock, &locked) == 0 && ::lstat(lock_of(folder).c_str(), &there) == 0 &&
         locked.st_dev == there.st_dev && locked.st_ino == there.st_ino;
}

// Storage on which nobody can have a lock.
bool knows_no_locks(int error) { return error == EROFS || error == ENOLCK || error == ENOTSUP; }

// The file of a job's lock, which is made so that others of the group can train the job as well,
// whatever the umask says.
FileDescriptor open_job_lock(const std::string& path) {
  FileDescriptor made(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0660));
  if (made) {
    [[maybe_unused]] const int changed = ::fchmod(made.get(), 0660);
    return made;
  }
  if (errno != EEXIST) return made;
  return FileDescriptor(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
}

void remove_leftovers(const std::string& base) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(base, ignored)) {
    if (!entry.path().filename().string().starts_with(kPrefix)) continue;
    struct stat about{};
    if (::lstat(entry.path().c_str(), &about) != 0 || !S_ISDIR(about.st_mode) || about.st_uid != ::geteuid()) continue;
    const int lock = lock_in(entry.path().string(), 0);
    if (lock < 0) continue;
    std::filesystem::remove_all(entry.path(), ignored);
    ::close(lock);
  }
}

}  // namespace

Result<RunFolder> RunFolder::make() {
  std::vector<std::string> bases{"/dev/shm"};
  if (const char* const temporary = std::getenv("TMPDIR"); temporary != nullptr && *temporary != '\0')
    bases.emplace_back(temporary);
  bases.emplace_back("/tmp");
  int last_error = 0;
  for (const std::string& base : bases) {
    remove_leftovers(base);
    for (int left = kAttemptsMax; left > 0; --left) {
      std::string path = format("{}/{}XXXXXX", base, kPrefix);
      if (::mkdtemp(path.data()) == nullptr) {
        last_error = errno;
        break;
      }
      RunFolder folder(path, lock_in(path, O_CREAT | O_EXCL));
      last_error = folder.lock_ < 0 ? errno : EAGAIN;
      if (is_ours(path, folder.lock_) || (folder.lock_ < 0 && knows_no_locks(last_error))) return folder;
    }
  }
  return fail_errno(last_error, "making a folder for the socket; set TMPDIR to one that can be written");
}

RunFolder::RunFolder(RunFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})), lock_(std::exchange(other.lock_, -1)) {}

RunFolder::~RunFolder() { remove(); }

void RunFolder::remove() {
  if (path_.empty()) return;
  std::error_code ignored;
  std::filesystem::remove_all(std::exchange(path_, {}), ignored);
  if (lock_ >= 0) ::close(std::exchange(lock_, -1));
}

Result<JobLock> JobLock::take(const std::string& checkpoint_folder, const std::string& job) {
  std::error_code ignored;
  std::filesystem::create_directories(checkpoint_folder, ignored);
  const std::string path = format("{}/.{}.lock", checkpoint_folder, job);
  const auto without = [&](int error) -> Result<JobLock> {
    if (knows_no_locks(error)) return JobLock(-1);
    return fail_errno(error,
                      format("the file {}, which keeps a second run of this job away, cannot be locked; see that "
                             "this user has permission to write there, or name another folder with "
                             "--checkpoint-dir",
                             path));
  };
  FileDescriptor file = open_job_lock(path);
  if (!file) return without(errno);
  if (::flock(file.get(), LOCK_EX | LOCK_NB) == 0) {
    const std::string holder = format("{}\n", ::getpid());
    [[maybe_unused]] const int cut = ::ftruncate(file.get(), 0);
    [[maybe_unused]] const ssize_t written = ::pwrite(file.get(), holder.data(), holder.size(), 0);
    return JobLock(file.release());
  }
  if (errno != EWOULDBLOCK) return without(errno);
  std::array<char, 32> holder{};
  const ssize_t got = ::pread(file.get(), holder.data(), holder.size() - 1, 0);
  std::string process(holder.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  while (!process.empty() && process.back() == '\n') process.pop_back();
  return fail(ErrorCode::already_exists,
              format("another `rekindle run`{} trains the job \"{}\" in {}. Two runs in one folder would continue "
                     "each other: end that one, or "
                     "give this one its own --job or --checkpoint-dir.",
                     process.empty() ? "" : format(" (process {})", process), job, checkpoint_folder));
}

JobLock::~JobLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

}  // namespace rekindle::launcher
