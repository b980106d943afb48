#include "worker-sidecar/checkpoint/plan.h"

#include <algorithm>
#include <map>
#include <utility>

#include "common/base/assert.h"
#include "common/base/format.h"
#include "worker-sidecar/checkpoint/coverage.h"
#include "worker-sidecar/checkpoint/names.h"

namespace rekindle {
namespace {

// A border between rows: everything before row `row` of shard `shard`. Normalized: row is below the
// shard's rows, or the border is the end of all.
struct Cut {
  std::size_t shard = 0;
  std::uint64_t row = 0;

  auto operator<=>(const Cut&) const = default;
};

// The row border nearest to byte `target` of the shards laid end to end; the lower one of two.
Cut nearest_cut(const ReplicaGroup& group, const std::vector<std::uint64_t>& begins, std::uint64_t target) {
  // begins has one more element than there are shards; the last begin that is not beyond the target
  // owns it.
  const auto after = std::upper_bound(begins.begin(), begins.end(), target);
  const std::size_t index = static_cast<std::size_t>(after - begins.begin()) - 1;
  if (index >= group.shards.size()) return {group.shards.size(), 0};
  const Shard& shard = group.shards[index];
  const std::uint64_t step = row_step(*shard.tensor);
  const std::uint64_t bytes = rows_bytes(*shard.tensor, step);
  if (bytes == 0) return {index, 0};
  const std::uint64_t inside = target - begins[index];
  const std::uint64_t below = inside / bytes;
  const std::uint64_t row = (inside - below * bytes > bytes / 2 ? below + 1 : below) * step;
  if (row >= shard.rows) return {index + 1, 0};
  return {index, row};
}

// `member`: the writer's index in group.ranks.
void append_pieces(const ReplicaGroup& group, std::size_t member, Cut begin, Cut end, WriterPlan& writer) {
  if (begin == end) return;
  for (std::size_t i = begin.shard; i < group.shards.size() && (i < end.shard || (i == end.shard && end.row > 0));
       ++i) {
    const Shard& shard = group.shards[i];
    const std::uint64_t begin_row = i == begin.shard ? begin.row : 0;
    const std::uint64_t end_row = i == end.shard ? end.row : shard.rows;
    const std::uint64_t first = shard.first_rows.empty() ? 0 : shard.first_rows[member];
    writer.pieces.push_back({shard.tensor->name, first + begin_row, first + end_row});
    writer.bytes += rows_bytes(*shard.tensor, end_row - begin_row);
  }
}

// One group's part in the plan: what each of its writers gets; writers that get nothing are left
// out.
struct GroupShares {
  std::size_t group = 0;
  std::vector<WriterPlan> writers;
};

// How far down the group's bytes each writer goes, so that the least loaded are filled up to one
// level. With equal loads the i-th of n ends at bytes * (i + 1) / n.
std::vector<std::uint64_t> level_out(std::uint64_t bytes, const std::vector<std::uint64_t>& loads) {
  std::vector<std::uint64_t> sorted = loads;
  std::sort(sorted.begin(), sorted.end());
  unsigned __int128 sum = bytes;
  std::size_t filled = 0;  // the lowest that take part
  for (const std::uint64_t load : sorted) {
    // A load that the level of those below it does not reach stays out.
    if (filled > 0 && static_cast<unsigned __int128>(load) * filled >= sum) break;
    sum += load;
    ++filled;
  }
  const std::uint64_t highest = sorted[filled - 1];
  std::vector<std::uint64_t> ends;
  unsigned __int128 load_before = 0;
  std::uint64_t taken = 0;
  std::size_t count = 0;
  for (const std::uint64_t load : loads) {
    if (count < filled && load <= highest) {
      ++count;
      load_before += load;
      const unsigned __int128 level = sum * count / filled;
      if (level > load_before) taken = std::max(taken, static_cast<std::uint64_t>(level - load_before));
    }
    ends.push_back(std::min(taken, bytes));
  }
  ends.back() = bytes;
  return ends;
}

// Cuts every group over those of its ranks that `writes` allows, fewest writers first.
template <typename Writes>
std::vector<GroupShares> cut_groups(const std::vector<ReplicaGroup>& groups, const Writes& writes) {
  std::vector<GroupShares> all;
  std::vector<std::vector<std::size_t>> members(groups.size());
  for (std::size_t i = 0; i < groups.size(); ++i) {
    for (std::size_t member = 0; member < groups[i].ranks.size(); ++member) {
      if (writes(groups[i].ranks[member])) members[i].push_back(member);
    }
    if (!members[i].empty()) all.push_back({.group = i, .writers = {}});
  }
  std::stable_sort(all.begin(), all.end(),
                   [&](const auto& a, const auto& b) { return members[a.group].size() < members[b.group].size(); });

  std::map<std::uint32_t, std::uint64_t> loads;
  for (GroupShares& shares : all) {
    const ReplicaGroup& group = groups[shares.group];
    std::vector<std::uint64_t> begins{0};
    for (const Shard& shard : group.shards) begins.push_back(begins.back() + rows_bytes(*shard.tensor, shard.rows));
    std::vector<std::uint64_t> before;
    for (const std::size_t member : members[shares.group]) before.push_back(loads[group.ranks[member]]);
    const std::vector<std::uint64_t> ends = level_out(group.bytes, before);
    Cut begin;
    for (std::size_t i = 0; i < ends.size(); ++i) {
      const std::size_t member = members[shares.group][i];
      // Empty shards at the very end lie behind the last byte and belong to the last writer.
      const Cut end =
          i + 1 == ends.size() ? Cut{group.shards.size(), 0} : std::max(begin, nearest_cut(group, begins, ends[i]));
      WriterPlan writer{.rank = group.ranks[member], .file = rank_file_name(group.ranks[member]), .pieces = {}};
      append_pieces(group, member, begin, end, writer);
      begin = end;
      if (writer.pieces.empty()) continue;
      loads[writer.rank] += writer.bytes;
      shares.writers.push_back(std::move(writer));
    }
  }
  return all;
}

// Shares of one rank in several groups become one plan.
void gather(GroupShares&& shares, WriteSource source, std::map<std::uint32_t, WriterPlan>& plans) {
  for (WriterPlan& share : shares.writers) {
    const auto [place, fresh] = plans.try_emplace(share.rank);
    if (fresh) {
      place->second = std::move(share);
      place->second.source = source;
      continue;
    }
    place->second.bytes += share.bytes;
    std::move(share.pieces.begin(), share.pieces.end(), std::back_inserter(place->second.pieces));
  }
}

std::vector<WriterPlan> listed(std::map<std::uint32_t, WriterPlan>&& plans) {
  std::vector<WriterPlan> list;
  for (auto& [rank, plan] : plans) list.push_back(std::move(plan));
  return list;
}

constexpr auto kEverybody = [](std::uint32_t) { return true; };

}  // namespace

std::vector<WriterPlan> split_for_writers(const std::vector<ReplicaGroup>& groups) {
  std::map<std::uint32_t, WriterPlan> plans;
  for (GroupShares& shares : cut_groups(groups, kEverybody)) gather(std::move(shares), WriteSource::memory, plans);
  return listed(std::move(plans));
}

std::vector<WriterPlan> split_for_writers(const Layout& layout, const std::vector<std::uint32_t>& writer_ranks) {
  RK_ASSERT(!writer_ranks.empty());
  ReplicaGroup group{.ranks = writer_ranks, .shards = {}, .bytes = 0};
  for (const TensorDescription& tensor : layout.tensors) {
    group.shards.push_back({.tensor = &tensor,
                            .begin_row = tensor.offset.empty() ? 0 : tensor.offset.front(),
                            .rows = row_count(tensor),
                            .position = group.shards.size(),
                            .first_rows = {}});
    group.bytes += tensor_bytes(tensor);
  }
  std::vector<ReplicaGroup> groups;
  groups.push_back(std::move(group));
  return split_for_writers(groups);
}

std::vector<std::vector<std::uint32_t>> ranks_with_shares(const std::vector<ReplicaGroup>& groups) {
  std::vector<std::vector<std::uint32_t>> ranks(groups.size());
  for (const GroupShares& shares : cut_groups(groups, kEverybody)) {
    for (const WriterPlan& writer : shares.writers) ranks[shares.group].push_back(writer.rank);
  }
  return ranks;
}

WritePlan plan_write(const std::vector<ReplicaGroup>& groups, const std::vector<std::uint32_t>& live,
                     const std::vector<std::uint32_t>& shadows) {
  WritePlan plan;
  std::map<std::uint32_t, WriterPlan> plans;
  std::vector<bool> written(groups.size(), false);
  for (GroupShares& shares :
       cut_groups(groups, [&](std::uint32_t rank) { return std::binary_search(live.begin(), live.end(), rank); })) {
    written[shares.group] = true;
    gather(std::move(shares), WriteSource::memory, plans);
  }
  if (std::find(written.begin(), written.end(), false) != written.end()) {
    for (GroupShares& shares : cut_groups(groups, kEverybody)) {
      if (written[shares.group]) continue;
      written[shares.group] = std::all_of(shares.writers.begin(), shares.writers.end(), [&](const WriterPlan& writer) {
        return std::binary_search(shadows.begin(), shadows.end(), writer.rank);
      });
      if (written[shares.group]) gather(std::move(shares), WriteSource::shadow, plans);
    }
  }
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (!written[i]) plan.lost_groups.push_back(i);
  }
  plan.writers = listed(std::move(plans));
  return plan;
}

std::string describe_group(const ReplicaGroup& group) {
  std::string text = "tensor";
  if (!group.shards.empty()) {
    const Shard& first = group.shards.front();
    text += format(" \"{}\"", first.tensor->name);
    if (first.rows != row_count(*first.tensor) || !is_whole(*first.tensor)) {
      text += format(" at {} of {}", describe_place(first), describe_shape(first.tensor->global_shape));
    }
    if (group.shards.size() > 1) text += format(" and {} more", group.shards.size() - 1);
  }
  return format("{}, held by {}", text, describe_ranks(group.ranks));
}

}  // namespace rekindle
