#include "worker-sidecar/sidecar/job_memory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <sstream>

#include "common/base/format.h"
#include "common/system/file_descriptor.h"
#include "worker-sidecar/checkpoint/hash.h"

namespace rekindle::sidecar {
namespace {

// An attempt and a hash are much shorter.
constexpr std::size_t kTextBytesMax = 512;

std::string path_in(const std::string& run_folder) { return run_folder + "/job-layout"; }

Error not_ours(const std::string& path) {
  return {ErrorCode::corrupt, format("{} is not a file that this sidecar made; it is not read. Remove it", path)};
}

}  // namespace

Status remember_job(const std::string& run_folder, const RememberJob& job) {
  const std::string path = path_in(run_folder);
  const std::string temporary = path + ".new";
  if (::unlink(temporary.c_str()) != 0 && errno != ENOENT) return fail_errno(errno, format("removing {}", temporary));
  FileDescriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return fail_errno(errno, format("creating {}", temporary));
  const std::string text = format("{} {}\n", job.attempt, job.job_layout_hash);
  const ssize_t written = ::write(file.get(), text.data(), text.size());
  if (written < 0) return fail_errno(errno, format("writing {}", temporary));
  if (static_cast<std::size_t>(written) != text.size()) return fail_errno(ENOSPC, format("writing {}", temporary));
  // A reader sees the earlier one or the new one, never half of it.
  if (std::rename(temporary.c_str(), path.c_str()) != 0) return fail_errno(errno, format("replacing {}", path));
  return {};
}

Result<std::optional<JobRemembered>> remembered_job(const std::string& run_folder) {
  const std::string path = path_in(run_folder);
  // A FIFO would wait for somebody who writes, a file under a lease for its holder.
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file && errno == ENOENT) return std::nullopt;
  if (!file && errno == ELOOP) return std::unexpected(not_ours(path));
  if (!file) return fail_errno(errno, format("opening {}", path));
  struct stat about{};
  if (::fstat(file.get(), &about) != 0 || !S_ISREG(about.st_mode) || about.st_uid != ::geteuid())
    return std::unexpected(not_ours(path));
  std::array<char, kTextBytesMax> text{};
  const ssize_t got = ::read(file.get(), text.data(), text.size());
  if (got < 0) return fail_errno(errno, format("reading {}", path));
  std::istringstream words(std::string(text.data(), static_cast<std::size_t>(got)));
  JobRemembered job;
  if (!(words >> job.attempt >> job.job_layout_hash) || job.attempt == 0 || !is_hash_text(job.job_layout_hash))
    return fail(ErrorCode::corrupt, format("{} does not read like what a sidecar leaves there; it is ignored", path));
  return job;
}

}  // namespace rekindle::sidecar
