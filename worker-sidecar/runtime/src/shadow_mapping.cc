#include "worker-sidecar/runtime/src/shadow_mapping.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/format.h"

namespace rekindle::runtime {
namespace {

// Between two checks of the room that is left.
constexpr std::uint64_t kTakenAtOnceBytes = 16u << 20;

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
  const Result<std::uint64_t> needed = shadow_front_bytes(front);
  if (!needed) return refuse(RK_ERROR_VERSION, needed.error().message);
  if (*needed <= front.size()) return front;
  front.resize(*needed);
  if (!read(kShadowPageBytes))
    return refuse(RK_ERROR_UNAVAILABLE, "the shadow that the sidecar handed over is cut short");
  return front;
}

std::unexpected<Failure> no_room(std::uint32_t rank, std::uint64_t bytes, std::string_view why) {
  return refuse(RK_ERROR_MEMORY, format("rank {} needs {} bytes of memory for copies of its share, and {}; or switch "
                                        "shadows and periodic checkpoints off",
                                        rank, bytes, why));
}

// Takes `bytes` of memory, a part at a time: `take(begin, bytes)` answers with an errno.
Done take_in_parts(std::uint32_t rank, std::uint64_t bytes, const ShadowHost& host,
                   const std::function<int(std::uint64_t begin, std::uint64_t bytes)>& take) {
  for (std::uint64_t begin = 0; begin < bytes; begin += kTakenAtOnceBytes) {
    const std::uint64_t part = std::min(kTakenAtOnceBytes, bytes - begin);
    // The other ranks have seen the same room, and may each be taking a part of it now.
    const std::uint64_t needed = std::max(bytes - begin, part * host.ranks);
    if (const auto shortage = find_shortage(needed, host.read_room())) return no_room(rank, bytes, *shortage);
    const int error = take(begin, part);
    if (error == ENOSPC)
      return no_room(rank, bytes,
                     "the memory volume is full: raise its size and the memory limit of the training container");
    if (error != 0) return no_room(rank, bytes, format("the kernel gives none: {}", std::strerror(error)));
  }
  return {};
}

// A kernel or sandbox that refuses loses nothing but tidiness: calls in a child are refused before
// they touch it.
void keep_from_children(void* memory, std::uint64_t bytes) { ::madvise(memory, bytes, MADV_DONTFORK); }

}  // namespace

Outcome<ShadowMapping> ShadowMapping::map(int descriptor, std::uint32_t rank, std::uint64_t incarnation,
                                          const ShadowHost& host) {
  const Outcome<std::string> front = read_front(descriptor);
  if (!front) return std::unexpected(front.error());
  Result<ShadowPlan> plan = decode_shadow_plan(*front);
  if (!plan) return refuse(RK_ERROR_UNAVAILABLE, plan.error().message);
  if (plan->rank != rank || plan->incarnation != incarnation) {
    return refuse(
        RK_ERROR_UNAVAILABLE,
        format("the shadow that the sidecar handed over is for rank {}, or for an earlier process of this one",
               plan->rank));
  }
  const std::uint64_t bytes = plan->file_bytes();
  // Beyond this limit the kernel would answer with a signal that ends training.
  rlimit file_size{};
  if (::getrlimit(RLIMIT_FSIZE, &file_size) == 0 && file_size.rlim_cur != RLIM_INFINITY && bytes > file_size.rlim_cur) {
    return no_room(rank, bytes, format("its limit for files (ulimit -f) is {} bytes: raise it", file_size.rlim_cur));
  }
  if (const auto shortage =
          find_shortage(bytes, {.limits = {}, .available_bytes = {}, .volume_bytes = free_volume_bytes(descriptor)}))
    return no_room(rank, bytes, *shortage);
  const Done taken = take_in_parts(rank, bytes, host, [&](std::uint64_t begin, std::uint64_t part) {
    return ::posix_fallocate(descriptor, static_cast<off_t>(begin), static_cast<off_t>(part));
  });
  if (!taken) {
    // What others may use now; should it not work, the sidecar takes the whole file away with its
    // next plan.
    [[maybe_unused]] const int cut = ::ftruncate(descriptor, static_cast<off_t>(front->size()));
    return std::unexpected(taken.error());
  }
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, descriptor, 0);
  if (memory == MAP_FAILED) return no_room(rank, bytes, format("it cannot be mapped: {}", std::strerror(errno)));
  keep_from_children(memory, bytes);
  return ShadowMapping(*std::move(plan), static_cast<std::byte*>(memory), bytes);
}

Outcome<ShadowMapping> ShadowMapping::make_private(ShadowPlan plan, const ShadowHost& host) {
  const std::uint64_t bytes = plan.file_bytes();
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return no_room(plan.rank, bytes, format("the kernel gives none: {}", std::strerror(errno)));
  const std::uint32_t rank = plan.rank;
  ShadowMapping mapping(std::move(plan), static_cast<std::byte*>(memory), bytes);
  const Done taken = take_in_parts(rank, bytes, host, [&](std::uint64_t begin, std::uint64_t part) {
    std::memset(mapping.memory_ + begin, 0, part);
    return 0;
  });
  if (!taken) return std::unexpected(taken.error());
  keep_from_children(memory, bytes);
  return mapping;
}

ShadowMapping::ShadowMapping(ShadowMapping&& other) noexcept
    : plan_(std::move(other.plan_)),
      memory_(std::exchange(other.memory_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

ShadowMapping& ShadowMapping::operator=(ShadowMapping&& other) noexcept {
  std::swap(plan_, other.plan_);
  std::swap(memory_, other.memory_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

ShadowMapping::~ShadowMapping() {
  if (memory_ != nullptr) ::munmap(memory_, bytes_);
}

}  // namespace rekindle::runtime
