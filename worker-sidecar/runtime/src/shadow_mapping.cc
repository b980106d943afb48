#include "worker-sidecar/runtime/src/shadow_mapping.h"

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/base/sentence.h"

namespace rekindle {
namespace {

Outcome<std::string> read_front(int descriptor) {
  std::string front(kShadowPageBytes, '\0');
  const auto read = [&](std::size_t begin) -> bool {
    while (begin < front.size()) {
      const ssize_t got = ::pread(descriptor, front.data() + begin, front.size() - begin, static_cast<off_t>(begin));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;
      begin += static_cast<std::size_t>(got);
    }
    return true;
  };
  if (!read(0)) return refuse(RK_ERROR_UNAVAILABLE, "the shadow that the sidecar handed over cannot be read");
  const Result<std::uint64_t> wanted = shadow_front_bytes(front);
  if (!wanted) return refuse(RK_ERROR_VERSION, wanted.error().message);
  if (*wanted <= front.size()) return front;
  front.resize(*wanted);
  if (!read(kShadowPageBytes)) return refuse(RK_ERROR_UNAVAILABLE, "the shadow that the sidecar handed over is cut short");
  return front;
}

Outcome<std::byte*> map_memory(std::uint64_t bytes, int flags, int descriptor) {
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags | MAP_SHARED | MAP_POPULATE, descriptor, 0);
  if (memory == MAP_FAILED) {
    return refuse(RK_ERROR_MEMORY, sentence("no memory for a shadow of {} bytes: {}; raise the memory limit or switch shadows off", bytes, std::strerror(errno)));
  }
  // A kernel or sandbox that refuses loses nothing but tidiness: calls in a child are refused before they touch it.
  ::madvise(memory, bytes, MADV_DONTFORK);
  return static_cast<std::byte*>(memory);
}

}  // namespace

Outcome<ShadowMapping> ShadowMapping::map(int descriptor, std::uint32_t rank, std::uint64_t incarnation) {
  const Outcome<std::string> front = read_front(descriptor);
  if (!front) return std::unexpected(front.error());
  Result<ShadowPlan> plan = decode_shadow_plan(*front);
  if (!plan) return refuse(RK_ERROR_UNAVAILABLE, plan.error().message);
  if (plan->rank != rank || plan->incarnation != incarnation) {
    return refuse(RK_ERROR_UNAVAILABLE, sentence("the shadow that the sidecar handed over is for rank {}, or for an earlier process of this one", plan->rank));
  }
  const std::uint64_t bytes = plan->file_bytes();
  // Beyond this limit the kernel would answer with a signal that ends training.
  rlimit file_size{};
  if (::getrlimit(RLIMIT_FSIZE, &file_size) == 0 && file_size.rlim_cur != RLIM_INFINITY && bytes > file_size.rlim_cur) {
    return refuse(RK_ERROR_MEMORY, sentence("rank {} needs a file of {} bytes in memory for copies of its share, and its limit for files (ulimit -f) is {} bytes. Raise the "
                                               "limit, or switch shadows and periodic checkpoints off", rank, bytes, file_size.rlim_cur));
  }
  if (const int error = ::posix_fallocate(descriptor, 0, static_cast<off_t>(bytes)); error != 0) {
    if (error == ENOSPC || error == ENOMEM) {
      return refuse(RK_ERROR_MEMORY, sentence("the memory volume is full: rank {} needs {} bytes there for copies of its share. Raise the volume's size and the memory limit of "
                                                 "the training container, or switch shadows and periodic checkpoints off", rank, bytes));
    }
    return refuse(RK_ERROR_MEMORY, sentence("allocating {} bytes for the shadow of rank {}: {}", bytes, rank, std::strerror(error)));
  }
  const Outcome<std::byte*> memory = map_memory(bytes, 0, descriptor);
  if (!memory) return std::unexpected(memory.error());
  return ShadowMapping(*std::move(plan), *memory, bytes);
}

Outcome<ShadowMapping> ShadowMapping::make_private(ShadowPlan plan) {
  const std::uint64_t bytes = plan.file_bytes();
  const Outcome<std::byte*> memory = map_memory(bytes, MAP_ANONYMOUS, -1);
  if (!memory) return std::unexpected(memory.error());
  return ShadowMapping(std::move(plan), *memory, bytes);
}

ShadowMapping::ShadowMapping(ShadowMapping&& other) noexcept
    : plan_(std::move(other.plan_)), memory_(std::exchange(other.memory_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

ShadowMapping& ShadowMapping::operator=(ShadowMapping&& other) noexcept {
  std::swap(plan_, other.plan_);
  std::swap(memory_, other.memory_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

ShadowMapping::~ShadowMapping() {
  if (memory_ != nullptr) ::munmap(memory_, bytes_);
}

}  // namespace rekindle
