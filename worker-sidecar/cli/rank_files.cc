#include "worker-sidecar/cli/rank_files.h"

#include <algorithm>
#include <cerrno>
#include <functional>
#include <optional>
#include <utility>

#include "common/base/format.h"
#include "worker-sidecar/checkpoint/hash.h"
#include "worker-sidecar/cli/foreign_tensors.h"
#include "worker-sidecar/cli/new_file.h"
#include "worker-sidecar/mindspore/appended_value.h"
#include "worker-sidecar/mindspore/file_names.h"
#include "worker-sidecar/storage/files.h"

namespace rekindle::cli {
namespace {

Result<std::uint64_t> step_of(FileSystem& file_system, const std::string& path, const MindSporeFile& file) {
  const Result<std::optional<std::uint64_t>> step = find_number(file_system, path, file, kStepNumber);
  if (!step) return std::unexpected(step.error());
  if (*step) return **step;
  return fail(ErrorCode::invalid_input,
              path + " does not have its step_num: save with append_info=[\"epoch_num\", \"step_num\"]");
}

Result<std::string> hash_of_parameters(FileSystem& file_system, const std::string& path, MindSporeFile file,
                                       Progress& progress) {
  std::ranges::sort(file.entries, {}, &MindSporeEntry::name);
  HashStream hash;
  std::uint64_t done = 0;
  progress.begin("reading " + path);
  for (const MindSporeEntry& entry : file.entries) {
    if (entry.name == kRankNumber) continue;
    const std::string head = describe_entry(entry);
    hash.update(head.data(), head.size());
    const Status status =
        stream_ranges(file_system, path, entry.content, [&](const char* data, std::size_t bytes) -> Status {
          hash.update(data, bytes);
          progress.report(done += bytes, file.message_bytes);
          return {};
        });
    if (!status) return std::unexpected(status.error());
  }
  return hash.digest();
}

Result<HeldCheckpoint> read_held(FileSystem& file_system, const std::string& path, Progress& progress) {
  Result<MindSporeFile> file = index_mindspore_path(file_system, path, progress);
  if (!file) return std::unexpected(file.error());
  const Result<std::uint64_t> step = step_of(file_system, path, *file);
  if (!step) return std::unexpected(step.error());
  Result<std::string> hash = hash_of_parameters(file_system, path, std::move(*file), progress);
  if (!hash) return std::unexpected(hash.error());
  return HeldCheckpoint{*step, std::move(*hash)};
}

// The newest file of one rank that reads well. Steps are read first, so that only one file is
// hashed.
std::optional<RankFile> find_newest(FileSystem& file_system, const std::string& root, const std::string& folder,
                                    const std::string& prefix, RankFiles& files, Progress& progress) {
  const std::string place = join_path(root, folder);
  const Result<std::vector<std::string>> names = list_folder(file_system, place);
  if (!names) {
    files.unreadable.push_back(names.error().message);
    return std::nullopt;
  }
  std::vector<std::pair<std::uint64_t, std::string>> steps;
  for (const std::string& name : *names) {
    const std::optional<MindSporeFileName> parsed = parse_mindspore_file_name(name);
    if (!parsed || !parsed->dying || (!prefix.empty() && parsed->prefix != prefix)) continue;
    const std::string path = join_path(place, name);
    const Result<MindSporeFile> file = index_mindspore_path(file_system, path, progress);
    const Result<std::uint64_t> step =
        file ? step_of(file_system, path, *file) : Result<std::uint64_t>(std::unexpected(file.error()));
    if (step) {
      steps.emplace_back(*step, name);
    } else {
      files.unreadable.push_back(step.error().message);
    }
  }
  std::ranges::sort(steps, std::greater());
  for (const auto& [step, name] : steps) {
    Result<HeldCheckpoint> held = read_held(file_system, join_path(place, name), progress);
    if (held) return RankFile{folder, name, std::move(*held)};
    files.unreadable.push_back(held.error().message);
  }
  return std::nullopt;
}

// The lost rank's folder, or the name that it has beside the folders of others.
std::string folder_for(std::uint32_t rank, const RankFiles& files, const RankFile& from) {
  if (const auto known = files.folders.find(rank); known != files.folders.end()) return known->second;
  return folder_name_like(from.folder, rank);
}

Status copy_rank_file(FileSystem& file_system, const std::string& from, const HeldCheckpoint& held,
                      const std::string& folder, const std::string& name, const std::string& nonce,
                      Progress& progress) {
  const Result<FileInfo> info = info_of(file_system, from);
  if (!info) return std::unexpected(info.error());
  Result<NewFile> file = NewFile::create(file_system, folder, name, info->bytes, nonce);
  if (!file) return std::unexpected(file.error());
  progress.begin("copying " + from);
  std::uint64_t done = 0;
  const Status copied = stream_ranges(file_system, from, {{0, info->bytes}}, [&](const char* data, std::size_t bytes) {
    progress.report(done += bytes, info->bytes);
    return file->append(data, bytes);
  });
  if (!copied) return copied;
  const Result<std::string> temporary = file->sync();
  if (!temporary) return std::unexpected(temporary.error());
  const Result<HeldCheckpoint> read_back = read_held(file_system, *temporary, progress);
  if (!read_back) return std::unexpected(read_back.error());
  if (read_back->step != held.step || read_back->hash != held.hash) {
    return fail(
        ErrorCode::corrupt,
        format("the copy of {} reads back differently: the file changed meanwhile, or the storage is not reliable",
               from));
  }
  return file->publish();
}

}  // namespace

Result<RankFiles> find_rank_files(FileSystem& file_system, const std::string& root, const std::string& prefix,
                                  Progress& progress) {
  const Result<std::vector<std::string>> names = list_folder(file_system, root);
  if (!names) return std::unexpected(names.error());
  RankFiles files;
  for (const std::string& name : *names) {
    const std::optional<std::uint32_t> rank = rank_of_folder(name);
    FileInfo info;
    if (!rank || file_system.stat(join_path(root, name), info) < 0 || info.kind != FileKind::folder) continue;
    if (!files.folders.emplace(*rank, name).second) {
      return fail(
          ErrorCode::invalid_input,
          format("{} holds two folders of rank {} (device and rank_); remove the one of the other run", root, *rank));
    }
    if (std::optional<RankFile> file = find_newest(file_system, root, name, prefix, files, progress))
      files.files.emplace(*rank, std::move(*file));
  }
  return files;
}

Result<std::vector<RebuiltFile>> rebuild_rank_files(FileSystem& file_system, const std::string& root,
                                                    const RankFiles& files, const RestoreChoice& choice,
                                                    const std::set<std::uint32_t>& lost, const std::string& nonce,
                                                    Progress& progress) {
  std::vector<RebuiltFile> rebuilt;
  for (const GroupChoice& group : choice) {
    const RankFile& from = files.files.at(*group.chosen);
    for (const std::uint32_t rank : group.ranks) {
      if (!lost.contains(rank)) continue;
      const auto own = files.files.find(rank);
      if (own != files.files.end() && own->second.held.step == from.held.step &&
          own->second.held.hash == from.held.hash)
        continue;
      const std::string folder = folder_for(rank, files, from);
      const std::string place = join_path(root, folder);
      const int made = file_system.mkdir(place, 0777);
      if (made < 0 && made != -EEXIST) return storage_failure(-made, "creating", place);
      if (Status synced = fsync_folder(file_system, root); !synced) return std::unexpected(synced.error());
      const std::string name = file_name_for_rank(from.name, *group.chosen, rank);
      const Status status = copy_rank_file(file_system, join_path(join_path(root, from.folder), from.name), from.held,
                                           place, name, nonce, progress);
      if (!status) {
        if (made == 0) static_cast<void>(remove_beneath(file_system, root, folder, FileKind::folder));
        return std::unexpected(status.error());
      }
      rebuilt.push_back({rank, *group.chosen, join_path(folder, name)});
    }
  }
  return rebuilt;
}

}  // namespace rekindle::cli
