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

namespace rekindle::launcher {
namespace {

constexpr const char* kPrefix = "rekindle-run-";

int lock_in(const std::string& folder, int flags) {
  const int descriptor = ::open((folder + "/lock").c_str(), flags | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (descriptor >= 0 && ::flock(descriptor, LOCK_EX | LOCK_NB) == 0) return descriptor;
  if (descriptor >= 0) ::close(descriptor);
  return -1;
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
    std::string path = format("{}/{}XXXXXX", base, kPrefix);
    if (::mkdtemp(path.data()) == nullptr) {
      last_error = errno;
      continue;
    }
    return RunFolder(path, lock_in(path, O_CREAT | O_EXCL));
  }
  return fail_errno(last_error, "making a folder for the socket; set TMPDIR to one that can be written");
}

RunFolder::RunFolder(RunFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})), lock_(std::exchange(other.lock_, -1)) {}

RunFolder::~RunFolder() {
  if (path_.empty()) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
  if (lock_ >= 0) ::close(lock_);
}

Result<JobLock> JobLock::take(const std::string& checkpoint_folder, const std::string& job) {
  std::error_code ignored;
  std::filesystem::create_directories(checkpoint_folder, ignored);
  const std::string path = format("{}/.{}.lock", checkpoint_folder, job);
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0660);
  if (descriptor < 0) return JobLock(-1);
  if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) {
    const std::string holder = format("{}\n", ::getpid());
    [[maybe_unused]] const int cut = ::ftruncate(descriptor, 0);
    [[maybe_unused]] const ssize_t written = ::pwrite(descriptor, holder.data(), holder.size(), 0);
    return JobLock(descriptor);
  }
  const int error = errno;
  std::array<char, 32> holder{};
  const ssize_t got = ::pread(descriptor, holder.data(), holder.size() - 1, 0);
  ::close(descriptor);
  if (error != EWOULDBLOCK) return JobLock(-1);  // this storage has no locks
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
