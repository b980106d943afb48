#include "worker-sidecar/runtime/src/memory_room.h"

#include <algorithm>
#include <charconv>

#include "common/base/format.h"

namespace rekindle::runtime {
namespace {

// The next line of `text`, which is taken from it.
std::string_view take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

std::vector<std::string_view> split(std::string_view text, char by) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(by);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

bool names_memory(std::string_view controllers) {
  const std::vector<std::string_view> parts = split(controllers, ',');
  return std::ranges::find(parts, "memory") != parts.end();
}

// mountinfo writes a space as \040.
std::string unescaped(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    if (text[i] == '\\' && i + 3 < text.size() &&
        std::from_chars(&text[i + 1], &text[i + 4], value, 8).ptr == &text[i + 4]) {
      result += static_cast<char>(value);
      i += 3;
    } else {
      result += text[i];
    }
  }
  return result;
}

// Where the group lies below the mount. A group outside of what is mounted (another namespace's) is
// seen from the mount's own root.
std::string path_below(std::string_view group, std::string_view mounted) {
  if (mounted == "/") mounted = "";
  const bool inside = group.starts_with(mounted) && (group.size() == mounted.size() || group[mounted.size()] == '/') &&
                      !group.starts_with("/..");
  if (!inside) return "";
  const std::string_view rest = group.substr(mounted.size());
  return rest == "/" ? "" : std::string(rest);
}

}  // namespace

std::optional<std::uint64_t> only_number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || (end != text.data() + text.size() && *end != '\n')) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> number_behind(std::string_view key, std::string_view lines) {
  while (!lines.empty()) {
    std::string_view line = take_line(lines);
    if (!line.starts_with(key)) continue;
    line.remove_prefix(key.size());
    if (line.starts_with(':')) line.remove_prefix(1);
    const std::size_t begin = line.find_first_not_of(' ');
    if (begin == 0 || begin == std::string_view::npos) continue;  // a longer key
    line.remove_prefix(begin);
    return only_number(line.substr(0, line.find(' ')));
  }
  return std::nullopt;
}

std::vector<MemoryGroup> find_memory_groups(std::string_view groups, std::string_view mounts) {
  std::optional<std::string_view> first;   // of version 1
  std::optional<std::string_view> second;  // of version 2
  while (!groups.empty()) {
    const std::vector<std::string_view> parts = split(take_line(groups), ':');
    if (parts.size() < 3) continue;
    const std::string_view path(parts[2].data(),
                                static_cast<std::size_t>(parts.back().data() + parts.back().size() - parts[2].data()));
    if (parts[0] == "0" && parts[1].empty()) second = path;
    else if (names_memory(parts[1])) first = path;
  }
  std::vector<MemoryGroup> found;
  while (!mounts.empty()) {
    const std::string_view line = take_line(mounts);
    const std::size_t divider = line.find(" - ");
    if (divider == std::string_view::npos) continue;
    const std::vector<std::string_view> place = split(line.substr(0, divider), ' ');
    const std::vector<std::string_view> kind = split(line.substr(divider + 3), ' ');
    if (place.size() < 5 || kind.size() < 3) continue;
    const bool unified = kind[0] == "cgroup2";
    if (!unified && !(kind[0] == "cgroup" && names_memory(kind[2]))) continue;
    const std::optional<std::string_view>& group = unified ? second : first;
    if (!group) continue;
    const std::string highest = unescaped(place[4]);
    found.push_back(
        {.folder = highest + path_below(*group, unescaped(place[3])), .highest = highest, .unified = unified});
  }
  return found;
}

std::optional<std::string> find_shortage(std::uint64_t bytes, const MemoryRoom& room) {
  const auto left = [](const MemoryLimit& limit) {
    return limit.limit_bytes - std::min(limit.limit_bytes, limit.used_bytes);
  };
  const auto tightest = std::ranges::min_element(room.limits, {}, left);
  if (tightest != room.limits.end() && left(*tightest) < bytes) {
    return format(
        "the memory limit of {} bytes leaves {} ({} are in use, says {}): raise the memory limit of the training "
        "container by {} bytes or more",
        tightest->limit_bytes, left(*tightest), tightest->used_bytes, tightest->source, bytes - left(*tightest));
  }
  if (room.volume_bytes && *room.volume_bytes < bytes) {
    return format(
        "the memory volume is full ({} bytes are free): raise its size and the memory limit of the training container "
        "by "
        "{} bytes or more (in a pod rekindle.dev/memory-volume-size, elsewhere that of /dev/shm)",
        *room.volume_bytes, bytes - *room.volume_bytes);
  }
  if (room.available_bytes && *room.available_bytes < bytes) {
    return format(
        "the machine has {} bytes of memory available: train on one with {} bytes more, or with fewer ranks on it",
        *room.available_bytes, bytes - *room.available_bytes);
  }
  return std::nullopt;
}

}  // namespace rekindle::runtime
