#include "tests/support/memory_file_system.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "common/base/assert.h"
#include "common/base/prng.h"

namespace rekindle {
namespace {

using Kind = MemoryFileSystem::Operation::Kind;

std::vector<std::string> split(const std::string& path) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (begin <= path.size()) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    if (end > begin && path.compare(begin, end - begin, ".") != 0) parts.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

}  // namespace

MemoryFileSystem::MemoryFileSystem() { make_node(FileKind::folder); }

std::size_t MemoryFileSystem::make_node(FileKind kind) {
  nodes_.push_back({.kind = kind, .content = {}, .entries = {}});
  return nodes_.size() - 1;
}

bool MemoryFileSystem::find(const std::string& path, std::size_t& node, std::size_t begin) const {
  node = begin;
  for (const std::string& part : split(path)) {
    const auto found = nodes_[node].entries.find(part);
    if (found == nodes_[node].entries.end()) return false;
    node = found->second;
  }
  return true;
}

bool MemoryFileSystem::find_parent(const std::string& path, Place& place, std::size_t begin) const {
  const std::vector<std::string> parts = split(path);
  if (parts.empty()) return false;
  place = {begin, parts.back()};
  for (std::size_t i = 0; i + 1 < parts.size(); ++i) {
    const auto found = nodes_[place.folder].entries.find(parts[i]);
    if (found == nodes_[place.folder].entries.end()) return false;
    place.folder = found->second;
  }
  return nodes_[place.folder].kind == FileKind::folder;
}

void MemoryFileSystem::apply(const Operation& operation) {
  Node& node = nodes_[operation.node];
  switch (operation.kind) {
    case Kind::write:
      node.content.resize(std::max(node.content.size(), operation.offset + operation.text.size()), '\0');
      node.content.replace(operation.offset, operation.text.size(), operation.text);
      return;
    case Kind::add_name: node.entries[operation.text] = operation.target; return;
    case Kind::remove_name: node.entries.erase(operation.text); return;
    case Kind::sync: return;
  }
}

void MemoryFileSystem::record(Operation operation) {
  operation.client = client_;
  apply(operation);
  operations_.push_back(std::move(operation));
}

std::vector<std::size_t> MemoryFileSystem::uncertain(std::size_t end) const {
  RK_ASSERT(end <= operations_.size());
  std::vector<std::size_t> indices;
  for (std::size_t i = 0; i < end; ++i) {
    if (operations_[i].kind == Kind::sync) continue;
    bool synced = false;
    for (std::size_t j = i + 1; j < end && !synced; ++j) {
      synced = operations_[j].kind == Kind::sync && operations_[j].node == operations_[i].node &&
               operations_[j].client == operations_[i].client;
    }
    if (!synced) indices.push_back(i);
  }
  return indices;
}

MemoryFileSystem MemoryFileSystem::after_power_loss(std::size_t end, const std::vector<std::size_t>& uncertain,
                                                    const std::vector<Kept>& kept) const {
  RK_ASSERT(uncertain.size() == kept.size());
  MemoryFileSystem found;
  for (std::size_t i = 1; i < nodes_.size(); ++i) found.make_node(nodes_[i].kind);
  std::size_t next = 0;
  for (std::size_t i = 0; i < end; ++i) {
    Operation operation = operations_[i];
    if (next < uncertain.size() && uncertain[next] == i) {
      const Kept how = kept[next++];
      if (how == Kept::none) continue;
      if (how == Kept::half && operation.kind == Kind::write) operation.text.resize(operation.text.size() / 2);
    }
    found.apply(operation);
  }
  return found;
}

std::string* MemoryFileSystem::content(const std::string& path) {
  std::size_t node = 0;
  return find(path, node) && nodes_[node].kind == FileKind::file ? &nodes_[node].content : nullptr;
}

std::vector<std::string> MemoryFileSystem::files() const {
  std::vector<std::string> paths;
  const std::function<void(std::size_t, const std::string&)> walk = [&](std::size_t folder, const std::string& path) {
    for (const auto& [name, node] : nodes_[folder].entries) {
      if (nodes_[node].kind == FileKind::folder) {
        walk(node, path + "/" + name);
      } else {
        paths.push_back(path + "/" + name);
      }
    }
  };
  walk(0, "");
  return paths;
}

int MemoryFileSystem::open(const std::string& path, int flags, mode_t) {
  if ((flags & O_DIRECT) != 0) return -EINVAL;
  std::size_t node = 0;
  if (find(path, node)) {
    if ((flags & O_CREAT) != 0 && (flags & O_EXCL) != 0) return -EEXIST;
    if ((flags & O_DIRECTORY) != 0 && nodes_[node].kind != FileKind::folder) return -ENOTDIR;
    if ((flags & O_ACCMODE) != O_RDONLY && nodes_[node].kind == FileKind::folder) return -EISDIR;
  } else {
    Place place;
    if ((flags & O_CREAT) == 0 || !find_parent(path, place)) return -ENOENT;
    node = make_node(FileKind::file);
    record({.kind = Kind::add_name, .node = place.folder, .text = place.name, .target = node});
  }
  open_[next_descriptor_] = node;
  return next_descriptor_++;
}

int MemoryFileSystem::open_folder(int parent, const std::string& name) {
  const auto from = open_.find(parent);
  if (from == open_.end()) return -EBADF;
  std::size_t node = 0;
  if (!find(name, node, from->second)) return -ENOENT;
  if (nodes_[node].kind != FileKind::folder) return -ENOTDIR;
  open_[next_descriptor_] = node;
  return next_descriptor_++;
}

int MemoryFileSystem::close(int descriptor) { return open_.erase(descriptor) == 1 ? 0 : -EBADF; }

ssize_t MemoryFileSystem::pwrite(int descriptor, const void* data, std::size_t bytes, std::uint64_t offset) {
  const auto found = open_.find(descriptor);
  if (found == open_.end()) return -EBADF;
  record({.kind = Kind::write,
          .node = found->second,
          .offset = offset,
          .text = std::string(static_cast<const char*>(data), bytes)});
  return static_cast<ssize_t>(bytes);
}

ssize_t MemoryFileSystem::pread(int descriptor, void* data, std::size_t bytes, std::uint64_t offset) {
  const auto found = open_.find(descriptor);
  if (found == open_.end()) return -EBADF;
  const std::string& content = nodes_[found->second].content;
  if (offset >= content.size()) return 0;
  const std::size_t part = std::min<std::size_t>(bytes, content.size() - offset);
  std::memcpy(data, content.data() + offset, part);
  return static_cast<ssize_t>(part);
}

int MemoryFileSystem::fsync(int descriptor) {
  const auto found = open_.find(descriptor);
  if (found == open_.end()) return -EBADF;
  if (++syncs_ != lie_at_) record({.kind = Kind::sync, .node = found->second});
  return 0;
}

FileInfo MemoryFileSystem::info(std::size_t node) const {
  std::uint64_t links = 0;
  for (const Node& each : nodes_)
    links += static_cast<std::uint64_t>(
        std::ranges::count_if(each.entries, [&](const auto& entry) { return entry.second == node; }));
  return {.kind = nodes_[node].kind,
          .bytes = nodes_[node].content.size(),
          .inode = node + 1,
          .links = links,
          .mode = 0770,
          .group = 64532};
}

int MemoryFileSystem::fstat(int descriptor, FileInfo& result) {
  const auto found = open_.find(descriptor);
  if (found == open_.end()) return -EBADF;
  result = info(found->second);
  return 0;
}

int MemoryFileSystem::stat(const std::string& path, FileInfo& result) {
  std::size_t node = 0;
  if (!find(path, node)) return -ENOENT;
  result = info(node);
  return 0;
}

int MemoryFileSystem::link(const std::string& from, const std::string& to) {
  std::size_t node = 0;
  std::size_t taken = 0;
  Place place;
  if (!find(from, node) || !find_parent(to, place)) return -ENOENT;
  if (find(to, taken)) return -EEXIST;
  record({.kind = Kind::add_name, .node = place.folder, .text = place.name, .target = node});
  return 0;
}

int MemoryFileSystem::remove_file(const std::string& path, std::size_t begin) {
  std::size_t node = 0;
  Place place;
  if (!find(path, node, begin) || !find_parent(path, place, begin)) return -ENOENT;
  if (nodes_[node].kind == FileKind::folder) return -EISDIR;
  record({.kind = Kind::remove_name, .node = place.folder, .text = place.name});
  return 0;
}

int MemoryFileSystem::unlink(const std::string& path) { return remove_file(path, 0); }

int MemoryFileSystem::unlink_in(int folder, const std::string& name) {
  const auto found = open_.find(folder);
  return found == open_.end() ? -EBADF : remove_file(name, found->second);
}

int MemoryFileSystem::rmdir_in(int folder, const std::string& name) {
  const auto found = open_.find(folder);
  if (found == open_.end()) return -EBADF;
  std::size_t node = 0;
  Place place;
  if (!find(name, node, found->second) || !find_parent(name, place, found->second)) return -ENOENT;
  if (nodes_[node].kind != FileKind::folder) return -ENOTDIR;
  if (!nodes_[node].entries.empty()) return -ENOTEMPTY;
  record({.kind = Kind::remove_name, .node = place.folder, .text = place.name});
  return 0;
}

int MemoryFileSystem::mkdir(const std::string& path, mode_t) {
  std::size_t node = 0;
  Place place;
  if (find(path, node)) return -EEXIST;
  if (!find_parent(path, place)) return -ENOENT;
  record({.kind = Kind::add_name, .node = place.folder, .text = place.name, .target = make_node(FileKind::folder)});
  return 0;
}

int MemoryFileSystem::list_node(std::size_t node, std::vector<std::string>& names) const {
  if (nodes_[node].kind != FileKind::folder) return -ENOTDIR;
  names.clear();
  for (const auto& [name, target] : nodes_[node].entries) names.push_back(name);
  return 0;
}

int MemoryFileSystem::list(const std::string& path, std::vector<std::string>& names) {
  std::size_t node = 0;
  return find(path, node) ? list_node(node, names) : -ENOENT;
}

int MemoryFileSystem::list_in(int folder, std::vector<std::string>& names) {
  const auto found = open_.find(folder);
  return found == open_.end() ? -EBADF : list_node(found->second, names);
}

std::size_t for_each_power_loss(const MemoryFileSystem& recorded, std::size_t begin, std::size_t end,
                                std::uint64_t seed, const std::function<bool(MemoryFileSystem&&, std::size_t)>& look) {
  using Kept = MemoryFileSystem::Kept;
  // so many uncertain operations are tried in every combination
  constexpr std::size_t kAllOf = 6;
  constexpr std::size_t kSample = 96;  // of the combinations of more
  Prng prng(seed);
  std::size_t count = 0;
  bool wanted = true;
  for (std::size_t at = end + 1; at-- > begin && wanted;) {  // most goes wrong late
    const std::vector<std::size_t> uncertain = recorded.uncertain(at);
    const auto show = [&](const std::vector<Kept>& kept) {
      if (!wanted) return;
      ++count;
      wanted = look(recorded.after_power_loss(at, uncertain, kept), at);
    };
    if (uncertain.size() <= kAllOf) {
      std::size_t combinations = 1;
      for (std::size_t i = 0; i < uncertain.size(); ++i) combinations *= 3;
      for (std::size_t number = 0; number < combinations; ++number) {
        std::vector<Kept> kept;
        bool twice = false;  // half a name is a whole one
        std::size_t rest = number;
        for (const std::size_t index : uncertain) {
          kept.push_back(static_cast<Kept>(rest % 3));
          rest /= 3;
          twice = twice || (kept.back() == Kept::half && recorded.operations()[index].kind != Kind::write);
        }
        if (!twice) show(kept);
      }
      continue;
    }
    show(std::vector<Kept>(uncertain.size(), Kept::none));
    show(std::vector<Kept>(uncertain.size(), Kept::all));
    for (std::size_t i = 0; i < uncertain.size(); ++i) {
      for (const Kept others : {Kept::none, Kept::all}) {
        std::vector<Kept> kept(uncertain.size(), others);
        kept[i] = others == Kept::none ? Kept::all : Kept::none;
        show(kept);
      }
    }
    for (std::size_t i = 0; i < kSample; ++i) {
      std::vector<Kept> kept;
      for (std::size_t k = 0; k < uncertain.size(); ++k) kept.push_back(static_cast<Kept>(prng.below(3)));
      show(kept);
    }
  }
  return count;
}

}  // namespace rekindle
