#include "worker-sidecar/runtime/src/fork_guard.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "common/base/format.h"

namespace rekindle::runtime {
namespace {

// For kernels and sandboxes without MADV_WIPEONFORK. There is one session a process, so one mark is
// enough.
std::atomic<volatile std::uint32_t*> mark_to_clear = nullptr;

void clear_in_child() {
  if (volatile std::uint32_t* const mark = mark_to_clear.load()) *mark = 0;
}

bool clear_by_handler(volatile std::uint32_t* mark) {
  static const int registered = ::pthread_atfork(nullptr, nullptr, clear_in_child);
  mark_to_clear = mark;
  return registered == 0;
}

std::size_t page_bytes() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

}  // namespace

Outcome<ForkGuard> ForkGuard::make() {
  void* const page =
      ::mmap(nullptr, page_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (page == MAP_FAILED) return refuse(RK_ERROR_MEMORY, format("no memory for one page: {}", std::strerror(errno)));
  ForkGuard guard(static_cast<volatile std::uint32_t*>(page));
  if (::madvise(page, page_bytes(), MADV_WIPEONFORK) != 0 && !clear_by_handler(guard.mark_)) {
    return refuse(RK_ERROR_MEMORY,
                  "neither the kernel nor the C library can tell a forked child apart; raise the memory limit");
  }
  *guard.mark_ = 1;
  return guard;
}

ForkGuard::ForkGuard(ForkGuard&& other) noexcept : mark_(std::exchange(other.mark_, nullptr)) {}

ForkGuard& ForkGuard::operator=(ForkGuard&& other) noexcept {
  std::swap(mark_, other.mark_);
  return *this;
}

ForkGuard::~ForkGuard() {
  if (mark_ == nullptr) return;
  mark_to_clear = nullptr;
  ::munmap(const_cast<std::uint32_t*>(mark_), page_bytes());
}

}  // namespace rekindle::runtime
