#include "worker-sidecar/runtime/src/memory_reading.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace rekindle::runtime {
namespace {

constexpr std::size_t kTextBytesMax = 1u << 20;

// Files of the kernel's do not say how long they are.
std::string read_text(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return {};
  std::string text;
  char part[4096];
  while (text.size() < kTextBytesMax) {
    const ssize_t got = ::read(descriptor, part, sizeof part);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(part, static_cast<std::size_t>(got));
  }
  ::close(descriptor);
  return text;
}

// The files' names in both versions. What files have left in the cache and no process has used
// lately is taken back first.
struct Names {
  const char* limit;
  const char* used;
  const char* reclaimable;
};
constexpr Names kFirst{"/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_inactive_file"};
constexpr Names kSecond{"/memory.max", "/memory.current", "inactive_file"};

std::optional<MemoryLimit> read_limit(const std::string& folder, const Names& names) {
  const std::optional<std::uint64_t> limit = only_number(read_text(folder + names.limit));
  const std::optional<std::uint64_t> used = only_number(read_text(folder + names.used));
  if (!limit || !used) return std::nullopt;
  const std::uint64_t reclaimable = number_behind(names.reclaimable, read_text(folder + "/memory.stat")).value_or(0);
  return MemoryLimit{
      .source = folder + names.limit, .limit_bytes = *limit, .used_bytes = *used - std::min(*used, reclaimable)};
}

}  // namespace

MemoryRoom read_memory_room(const std::string& root) {
  MemoryRoom room;
  for (const MemoryGroup& group :
       find_memory_groups(read_text(root + "/proc/self/cgroup"), read_text(root + "/proc/self/mountinfo"))) {
    std::string folder = group.folder;
    while (true) {
      if (const std::optional<MemoryLimit> limit = read_limit(root + folder, group.unified ? kSecond : kFirst))
        room.limits.push_back(*limit);
      if (folder.size() <= group.highest.size()) break;
      folder.resize(folder.rfind('/'));
    }
  }
  constexpr std::uint64_t kUnit = 1024;  // "kB" means this
  if (const auto available = number_behind("MemAvailable", read_text(root + "/proc/meminfo")))
    room.available_bytes = *available * kUnit;
  return room;
}

std::optional<std::uint64_t> free_volume_bytes(int descriptor) {
  struct statvfs volume{};
  if (::fstatvfs(descriptor, &volume) != 0 || volume.f_blocks == 0) return std::nullopt;
  return static_cast<std::uint64_t>(volume.f_bavail) * volume.f_frsize;
}

}  // namespace rekindle::runtime
