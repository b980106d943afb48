#include "worker-sidecar/cli/checkpoint_groups.h"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <map>
#include <ostream>
#include <set>
#include <string_view>
#include <utility>

#include "common/base/assert.h"
#include "common/base/format.h"
#include "common/base/json_fields.h"
#include "worker-sidecar/cli/rank_files.h"
#include "worker-sidecar/cli/table.h"
#include "worker-sidecar/mindspore/file_names.h"
#include "worker-sidecar/mindspore/restore_ranks.h"
#include "worker-sidecar/storage/files.h"

namespace rekindle::cli {
namespace {

constexpr std::string_view kGroupFileName = "group_info.pb";

Result<RankGroup> read_group(FileSystem& file_system, const std::string& path) {
  const Result<FileInfo> info = info_of(file_system, path);
  if (!info) return std::unexpected(info.error());
  // Before it is opened: opening a pipe would wait for a writer.
  if (info->kind != FileKind::file) return fail(ErrorCode::invalid_input, path + " is not a plain file");
  const Result<std::string> bytes = read_whole_file(file_system, path, kGroupInfoBytesMax);
  if (!bytes) return std::unexpected(bytes.error());
  Result<RankGroup> group = decode_group_info(*bytes);
  if (!group) return std::unexpected(with_context(group.error(), path));
  return group;
}

// What the file of each rank says.
Result<std::map<std::uint32_t, RankGroup>> read_groups(FileSystem& file_system, const std::string& root) {
  const Result<std::vector<std::string>> names = list_folder(file_system, root);
  if (!names) return std::unexpected(names.error());
  std::map<std::uint32_t, RankGroup> groups;
  for (const std::string& name : *names) {
    const std::optional<std::uint32_t> rank = rank_of_folder(name);
    if (!rank) continue;
    const std::string path = join_path(join_path(root, name), kGroupFileName);
    FileInfo info;
    // A folder whose file is gone, or a file with a folder's name: the files of others list
    // that rank.
    if (const int result = file_system.stat(path, info); result == -ENOENT || result == -ENOTDIR) continue;
    Result<RankGroup> group = read_group(file_system, path);
    if (!group) return std::unexpected(group.error());
    if (!groups.emplace(*rank, std::move(*group)).second) {
      return fail(
          ErrorCode::invalid_input,
          format("{} holds two folders of rank {} (device and rank_); remove the one of the other run", root, *rank));
    }
  }
  if (groups.empty()) {
    return fail(ErrorCode::not_found, format("{} holds no device<rank>/{} and no rank_<rank>/{}. MindSpore writes it "
                                             "where GROUP_INFO_FILE says, when it compiles a parallel graph",
                                             root, kGroupFileName, kGroupFileName));
  }
  return groups;
}

void print_choice(std::ostream& out, const RestoreChoice& choice, const RestoreEnvironment& environment) {
  Table table({{"GROUP", Table::Align::right}, {"RANKS"}, {"USABLE"}, {"CHOSEN", Table::Align::right}});
  for (std::size_t i = 0; i < choice.size(); ++i) {
    const GroupChoice& group = choice[i];
    table.add({std::to_string(i), comma_joined(group.ranks), group.usable.empty() ? "none" : comma_joined(group.usable),
               group.chosen ? std::to_string(*group.chosen) : "none"});
  }
  table.print(out);
  out << "\nRESTORE_RANKS=" << environment.ranks << '\n';
  // Quoted, so that it can be given to a shell as it is.
  if (environment.map) out << "RESTORE_RANKS_MAP='" << *environment.map << "'\n";
}

// What the ranks hold, where the user requests it.
struct HeldByRanks {
  RankFiles files;
  std::vector<std::string> faults;  // why it cannot be restored from
  std::vector<RebuiltFile> rebuilt;
};

Json to_json(const RestoreChoice& choice, const RestoreEnvironment& environment,
             const std::optional<HeldByRanks>& held) {
  Json groups = Json::array();
  for (const GroupChoice& group : choice) {
    groups.push_back(
        {{"ranks", group.ranks}, {"usable", group.usable}, {"chosen", group.chosen ? Json(*group.chosen) : Json()}});
  }
  Json json = {{"groups", std::move(groups)},
               {"restore_ranks", environment.ranks},
               {"restore_ranks_map", environment.map ? Json(*environment.map) : Json()},
               {"lost", lost_groups(choice)}};
  if (!held) return json;
  Json files = Json::array();
  for (const auto& [rank, file] : held->files.files) {
    files.push_back({{"rank", rank},
                     {"file", join_path(file.folder, file.name)},
                     {"step", file.held.step},
                     {"hash", file.held.hash}});
  }
  Json rebuilt = Json::array();
  for (const RebuiltFile& file : held->rebuilt)
    rebuilt.push_back({{"rank", file.rank}, {"from_rank", file.from_rank}, {"file", file.path}});
  json["files"] = std::move(files);
  json["unreadable"] = held->files.unreadable;
  json["faults"] = held->faults;
  json["rebuilt"] = std::move(rebuilt);
  return json;
}

void print_held(std::ostream& out, const HeldByRanks& held) {
  out << '\n';
  Table table({{"RANK", Table::Align::right}, {"STEP", Table::Align::right}, {"FILE"}, {"HASH"}});
  for (const auto& [rank, file] : held.files.files) {
    table.add(
        {std::to_string(rank), std::to_string(file.held.step), join_path(file.folder, file.name), file.held.hash});
  }
  table.print(out);
  for (const std::string& reason : held.files.unreadable) out << "not used: " << printable(reason) << '\n';
  for (const RebuiltFile& file : held.rebuilt)
    out << "rebuilt " << printable(file.path) << " of rank " << file.rank << " from rank " << file.from_rank << '\n';
}

}  // namespace

int show_groups(FileSystem& file_system, const GroupsQuestion& question, const std::string& nonce,
                CommandStreams streams) {
  const Result<std::map<std::uint32_t, RankGroup>> groups = read_groups(file_system, question.root);
  if (!groups) return report(streams, groups.error());
  std::set<std::uint32_t> lost(question.faulty.begin(), question.faulty.end());
  Result<RestoreChoice> choice = choose_restore_ranks(*groups, lost, question.world_size);
  if (!choice) {
    report(streams, choice.error());
    return kExitProblemsFound;  // the files were read; they do not fit together
  }
  std::optional<HeldByRanks> held;
  if (question.rebuild || !question.checkpoints.empty()) {
    const std::string& root = question.checkpoints.empty() ? question.root : question.checkpoints;
    Result<RankFiles> files = find_rank_files(file_system, root, question.prefix, streams.progress);
    if (!files) return report(streams, files.error());
    held = HeldByRanks{.files = std::move(*files), .faults = {}, .rebuilt = {}};
    if (question.rebuild) {
      // A rank that has no file cannot give one, whatever became of the rank itself.
      for (const GroupChoice& group : *choice) {
        std::ranges::copy_if(group.ranks, std::inserter(lost, lost.end()),
                             [&](std::uint32_t rank) { return !held->files.files.contains(rank); });
      }
      choice = choose_restore_ranks(*groups, lost, question.world_size);
      RK_ASSERT(choice.has_value());  // it was, with other ranks of the same groups
    }
    std::map<std::uint32_t, HeldCheckpoint> checkpoints;
    for (const auto& [rank, file] : held->files.files) checkpoints.emplace(rank, file.held);
    if (const Status status = check_copies(*choice, checkpoints); !status) {
      held->faults.push_back(status.error().message);
    } else if (question.rebuild) {
      Result<std::vector<RebuiltFile>> rebuilt =
          rebuild_rank_files(file_system, root, held->files, *choice, lost, nonce, streams.progress);
      if (!rebuilt) return report(streams, rebuilt.error());
      held->rebuilt = std::move(*rebuilt);
    }
  }
  // Scripts that follow RESTORE_RANKS must not mix steps or take a damaged copy.
  const bool fits = !held || held->faults.empty();
  const RestoreEnvironment environment =
      fits ? restore_environment(*choice) : RestoreEnvironment{.ranks = "-1", .map = {}};
  if (streams.json) {
    streams.out << dump_json(to_json(*choice, environment, held)) << '\n';
  } else {
    print_choice(streams.out, *choice, environment);
    if (held) print_held(streams.out, *held);
  }
  int code = kExitOk;
  for (const std::string& message : lost_groups(*choice))
    code = report(streams, {.code = ErrorCode::refused, .message = message + "."});
  if (held && code == kExitOk) {
    for (const std::string& message : held->faults)
      code = report(streams, {.code = ErrorCode::refused, .message = message + "."});
  }
  return code;
}

}  // namespace rekindle::cli
