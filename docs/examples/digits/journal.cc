#include "journal.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>

namespace digits {

Journal::~Journal() {
  for (const int descriptor : descriptors_) {
    if (descriptor > STDERR_FILENO) close(descriptor);
  }
}

Status Journal::open(const std::string& path) {
  const int descriptor =
      path == "-" ? STDOUT_FILENO : ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (descriptor < 0) return failure("cannot write the log " + path + ": " + std::strerror(errno));
  descriptors_.push_back(descriptor);
  return {};
}

void Journal::write(const StepReport& report) {
  if (descriptors_.empty()) return;
  const double now_milliseconds =
      std::chrono::duration<double, std::milli>(std::chrono::system_clock::now().time_since_epoch()).count();
  char line[320];
  const int bytes = std::snprintf(line, sizeof line,
                                  "{\"attempt\":%llu,\"step\":%llu,\"rank\":%d,\"loss\":%.6f,\"time_ms\":%.1f,"
                                  "\"compute_ms\":%.2f,\"reduce_ms\":%.2f}\n",
                                  static_cast<unsigned long long>(report.attempt),
                                  static_cast<unsigned long long>(report.step), report.rank, report.loss,
                                  now_milliseconds, report.compute_milliseconds, report.reduce_milliseconds);
  // A log that cannot be written is no reason to stop training.
  std::erase_if(descriptors_, [&](int descriptor) {
    return bytes > 0 && ::write(descriptor, line, static_cast<std::size_t>(bytes)) < 0;
  });
}

StatusPage::~StatusPage() {
  if (layout_ != &unshared_) munmap(layout_, sizeof(Layout));
}

Status StatusPage::open(const std::string& path, int rank) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor < 0) return failure("cannot write the status page " + path + ": " + std::strerror(errno));
  void* mapped = MAP_FAILED;
  if (posix_fallocate(descriptor, 0, sizeof(Layout)) == 0) {
    mapped = mmap(nullptr, sizeof(Layout), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  }
  close(descriptor);
  if (mapped == MAP_FAILED) return failure("cannot map the status page " + path);
  layout_ = static_cast<Layout*>(mapped);
  layout_->rank = static_cast<std::uint32_t>(rank);
  set(Doing::starting, 0);
  return {};
}

}  // namespace digits
