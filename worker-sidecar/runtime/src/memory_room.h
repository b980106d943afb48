// Whether memory that this process is about to take will be given to it, or whether the kernel
// would end a process of its container instead. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace rekindle::runtime {

struct MemoryLimit {
  std::string source;  // the file that says it
  std::uint64_t limit_bytes = 0;
  // less what the kernel takes back by itself when memory is short
  std::uint64_t used_bytes = 0;

  bool operator==(const MemoryLimit&) const = default;
};

// What could not be found out is absent, and refuses nothing.
struct MemoryRoom {
  // of this process's cgroup and those above it
  std::vector<MemoryLimit> limits;
  std::optional<std::uint64_t> available_bytes;  // of the machine
  // free on the volume that the memory is a file of
  std::optional<std::uint64_t> volume_bytes;
};

// What is missing for so many bytes more, and what a person changes; nothing when they fit.
std::optional<std::string> find_shortage(std::uint64_t bytes, const MemoryRoom& room);

// A folder of a cgroup with control over memory, and the highest one above it (or itself) that can
// be seen.
struct MemoryGroup {
  std::string folder;
  std::string highest;
  bool unified = false;  // version 2

  bool operator==(const MemoryGroup&) const = default;
};

// From /proc/self/cgroup and /proc/self/mountinfo.
std::vector<MemoryGroup> find_memory_groups(std::string_view groups, std::string_view mounts);

// The number behind `key` in lines of "key number", with or without a colon: of memory.stat,
// /proc/meminfo.
std::optional<std::uint64_t> number_behind(std::string_view key, std::string_view lines);

// A whole file that holds one number. "max", or anything else, is none.
std::optional<std::uint64_t> only_number(std::string_view text);

}  // namespace rekindle::runtime
