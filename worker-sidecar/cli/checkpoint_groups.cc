#include "worker-sidecar/cli/checkpoint_groups.h"

#include <cerrno>
#include <charconv>
#include <map>
#include <ostream>
#include <set>
#include <string_view>
#include <utility>

#include "common/base/json_fields.h"
#include "worker-sidecar/cli/table.h"
#include "worker-sidecar/groups/restore_ranks.h"
#include "worker-sidecar/storage/files.h"

namespace rekindle {
namespace {

constexpr std::string_view kGroupFileName = "group_info.pb";

// MindX's name of a rank's folder, or that of MindSpore's tutorial.
std::optional<std::uint32_t> rank_of_folder(std::string_view name) {
  for (const std::string_view prefix : {"device", "rank_"}) {
    if (!name.starts_with(prefix)) continue;
    const std::string_view digits = name.substr(prefix.size());
    std::uint32_t rank = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), rank);
    if (error == std::errc() && std::to_string(rank) == digits) return rank;
  }
  return std::nullopt;
}

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
    // A folder whose file is gone, or a file with a folder's name: the files of others tell about that rank.
    if (const int result = file_system.stat(path, info); result == -ENOENT || result == -ENOTDIR) continue;
    Result<RankGroup> group = read_group(file_system, path);
    if (!group) return std::unexpected(group.error());
    if (!groups.emplace(*rank, std::move(*group)).second) {
      return fail(ErrorCode::invalid_input, root + " holds two folders of rank " + std::to_string(*rank) + " (device and rank_); remove the one of the other run");
    }
  }
  if (groups.empty()) {
    return fail(ErrorCode::not_found, root + " holds no device<rank>/" + std::string(kGroupFileName) + " and no rank_<rank>/" + std::string(kGroupFileName) +
                                          ". MindSpore writes it where GROUP_INFO_FILE says, when it compiles a parallel graph");
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

Json to_json(const RestoreChoice& choice, const RestoreEnvironment& environment) {
  Json groups = Json::array();
  for (const GroupChoice& group : choice) {
    groups.push_back({{"ranks", group.ranks}, {"usable", group.usable}, {"chosen", group.chosen ? Json(*group.chosen) : Json()}});
  }
  return {{"groups", std::move(groups)},
          {"restore_ranks", environment.ranks},
          {"restore_ranks_map", environment.map ? Json(*environment.map) : Json()},
          {"lost", lost_groups(choice)}};
}

}  // namespace

int show_groups(FileSystem& file_system, const GroupsQuestion& question, CommandStreams streams) {
  const Result<std::map<std::uint32_t, RankGroup>> groups = read_groups(file_system, question.root);
  if (!groups) return report(streams, groups.error());
  const Result<RestoreChoice> choice =
      choose_restore_ranks(*groups, {question.faulty.begin(), question.faulty.end()}, question.world_size);
  if (!choice) return report(streams, choice.error());
  const RestoreEnvironment environment = restore_environment(*choice);
  if (streams.json) {
    streams.out << dump_json(to_json(*choice, environment)) << '\n';
  } else {
    print_choice(streams.out, *choice, environment);
  }
  int code = 0;
  for (const std::string& sentence : lost_groups(*choice)) code = report(streams, {.code = ErrorCode::refused, .message = sentence + "."});
  return code;
}

}  // namespace rekindle
