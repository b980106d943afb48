#include "worker-sidecar/mindspore/restore_ranks.h"

#include <algorithm>

#include "common/base/format.h"

namespace rekindle {
namespace {

std::string rank_text(std::uint32_t rank) { return format("rank {}", rank); }

std::string group_text(const RankGroup& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + comma_joined(ranks);
}

// The step that most chosen ranks have; of equally frequent ones the newest. Ranks that hold
// nothing do not count.
std::uint64_t common_step(const RestoreChoice& choice, const std::map<std::uint32_t, HeldCheckpoint>& held) {
  std::map<std::uint64_t, std::size_t> counts;
  for (const GroupChoice& group : choice) {
    if (const auto found = held.find(*group.chosen); found != held.end()) ++counts[found->second.step];
  }
  std::uint64_t step = 0;
  std::size_t count_max = 0;
  for (const auto& [candidate, count] : counts) {
    if (count >= count_max) {
      step = candidate;
      count_max = count;
    }
  }
  return step;
}

}  // namespace

Result<RestoreChoice> choose_restore_ranks(const std::map<std::uint32_t, RankGroup>& groups,
                                           const std::set<std::uint32_t>& faulty,
                                           std::optional<std::uint32_t> world_size) {
  // The group of every rank, and the rank whose file lists it.
  struct Named {
    const RankGroup* group;
    std::uint32_t by;
  };
  std::map<std::uint32_t, Named> named;
  for (const auto& [rank, group] : groups) {
    if (!std::ranges::binary_search(group, rank)) {
      return fail(ErrorCode::invalid_input,
                  format("the file of {} lists {} and not {} itself; it belongs to another rank", rank_text(rank),
                         group_text(group), rank_text(rank)));
    }
    for (const std::uint32_t member : group) {
      const auto [known, is_new] = named.try_emplace(member, &group, rank);
      if (!is_new && *known->second.group != group) {
        return fail(
            ErrorCode::invalid_input,
            format("the file of {} lists {} and the file of {} lists {}; they are of different runs",
                   rank_text(known->second.by), group_text(*known->second.group), rank_text(rank), group_text(group)));
      }
    }
  }
  if (named.empty()) return fail(ErrorCode::invalid_input, "no rank has a file that tells its group");
  const std::uint32_t world = world_size.value_or(named.rbegin()->first + 1);
  if (named.rbegin()->first >= world) {
    return fail(ErrorCode::invalid_input,
                format("the file of {} lists {}, but a world of {} has none; the file is of another run",
                       rank_text(named.rbegin()->second.by), rank_text(named.rbegin()->first), world));
  }
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    if (!named.contains(rank))
      return fail(ErrorCode::invalid_input,
                  format("no file tells the group of {}; nobody knows who could replace it", rank_text(rank)));
  }
  for (const std::uint32_t rank : faulty) {
    if (!named.contains(rank))
      return fail(ErrorCode::invalid_input, rank_text(rank) + " is named as faulty, but no file lists it");
  }

  RestoreChoice choice;
  for (const auto& [rank, entry] : named) {
    if (entry.group->front() != rank) continue;
    GroupChoice group{.ranks = *entry.group};
    std::ranges::set_difference(group.ranks, faulty, std::back_inserter(group.usable));
    if (!group.usable.empty()) group.chosen = group.usable.front();
    choice.push_back(std::move(group));
  }
  return choice;
}

std::vector<std::string> lost_groups(const RestoreChoice& choice) {
  std::vector<std::string> messages;
  for (const GroupChoice& group : choice) {
    if (group.chosen) continue;
    messages.push_back(
        format("the part of {} has no living copy: {}. All ranks have to go back to a periodic checkpoint",
               group_text(group.ranks), group.ranks.size() == 1 ? "no other rank holds it" : "all of them are faulty"));
  }
  return messages;
}

RestoreEnvironment restore_environment(const RestoreChoice& choice) {
  if (!lost_groups(choice).empty()) return {.ranks = "-1", .map = {}};
  std::vector<std::uint32_t> chosen;
  std::string map;
  for (const GroupChoice& group : choice) {
    chosen.push_back(*group.chosen);
    map += format("{}{}\":{}", map.empty() ? "{\"" : ",\"", comma_joined(group.ranks), *group.chosen);
  }
  std::ranges::sort(chosen);
  return {.ranks = comma_joined(chosen), .map = map + "}"};
}

Status check_copies(const RestoreChoice& choice, const std::map<std::uint32_t, HeldCheckpoint>& held) {
  if (const std::vector<std::string> lost = lost_groups(choice); !lost.empty())
    return fail(ErrorCode::refused, lost.front());
  const std::uint64_t step = common_step(choice, held);
  for (const GroupChoice& group : choice) {
    const auto chosen = held.find(*group.chosen);
    const std::string subject = format("{}, chosen for {},", rank_text(*group.chosen), group_text(group.ranks));
    if (chosen == held.end()) return fail(ErrorCode::refused, subject + " has no checkpoint");
    if (chosen->second.step != step) {
      return fail(ErrorCode::refused,
                  format("{} has step {} where others have step {}; parts of different steps do not fit together",
                         subject, chosen->second.step, step));
    }
    for (const std::uint32_t rank : group.usable) {
      const auto copy = held.find(rank);
      if (copy == held.end() || copy->second.step != step || copy->second.hash == chosen->second.hash) continue;
      return fail(
          ErrorCode::refused,
          format(
              "{} and {} hold different parameters for step {} though they should be copies; at least one is damaged",
              subject, rank_text(rank), step));
    }
  }
  return {};
}

}  // namespace rekindle
