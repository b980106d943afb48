#include "worker-sidecar/checkpoint/shards.h"

#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

#include "common/base/assert.h"
#include "common/base/format.h"
#include "worker-sidecar/checkpoint/coverage.h"

namespace rekindle {
namespace {

constexpr std::size_t kRanksNamed = 4;

// Ranks with one and the same layout act as one.
struct Class {
  const Layout* layout = nullptr;
  std::vector<std::uint32_t> ranks;  // sorted
};

// A box of a tensor and one class that holds it.
struct Held {
  const TensorDescription* tensor = nullptr;
  std::size_t holder = 0;    // index of the class; lower classes have the lower lowest rank
  std::size_t position = 0;  // in its layout
};

std::uint64_t first_row(const TensorDescription& tensor) { return tensor.offset.empty() ? 0 : tensor.offset.front(); }
std::uint64_t end_row(const TensorDescription& tensor) { return first_row(tensor) + row_count(tensor); }

// The box without its first dimension: boxes that agree in it can be cut into rows against each
// other.
int compare_cross(const TensorDescription& left, const TensorDescription& right) {
  for (std::size_t i = 1; i < left.shape.size(); ++i) {
    if (left.offset[i] != right.offset[i]) return left.offset[i] < right.offset[i] ? -1 : 1;
    if (left.shape[i] != right.shape[i]) return left.shape[i] < right.shape[i] ? -1 : 1;
  }
  return 0;
}
std::uint64_t cross_volume(const TensorDescription& tensor) {
  std::uint64_t volume = 1;
  for (std::size_t i = 1; i < tensor.shape.size(); ++i) volume *= tensor.shape[i];
  return volume;
}
bool crosses_overlap(const TensorDescription& left, const TensorDescription& right) {
  for (std::size_t i = 1; i < left.shape.size(); ++i) {
    if (left.offset[i] + left.shape[i] <= right.offset[i] || right.offset[i] + right.shape[i] <= left.offset[i])
      return false;
  }
  return true;
}

// Rows of one cross section with those that hold them; indices into the tensor's Held list.
struct Cell {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::vector<std::size_t> held;  // by class
};

struct CrossSection {
  const TensorDescription* sample = nullptr;
  std::vector<Cell> cells;  // disjoint, by row
};

// `held` is sorted by cross section, first row, last row. Cuts [from, to), which share a cross
// section, at every border.
CrossSection cut_rows(const std::vector<Held>& held, std::size_t from, std::size_t to) {
  CrossSection section{.sample = held[from].tensor, .cells = {}};
  std::vector<std::uint64_t> borders;
  for (std::size_t i = from; i < to; ++i) {
    borders.push_back(first_row(*held[i].tensor));
    borders.push_back(end_row(*held[i].tensor));
  }
  std::sort(borders.begin(), borders.end());
  borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
  std::vector<std::size_t> open;
  std::size_t next = from;
  for (std::size_t i = 0; i + 1 < borders.size(); ++i) {
    std::erase_if(open, [&](std::size_t index) { return end_row(*held[index].tensor) <= borders[i]; });
    for (; next < to && first_row(*held[next].tensor) <= borders[i]; ++next) {
      if (end_row(*held[next].tensor) > borders[i]) open.push_back(next);
    }
    if (open.empty()) continue;
    Cell cell{borders[i], borders[i + 1], open};
    std::sort(cell.held.begin(), cell.held.end(),
              [&](std::size_t a, std::size_t b) { return held[a].holder < held[b].holder; });
    section.cells.push_back(std::move(cell));
  }
  return section;
}

bool rows_overlap(const std::vector<Cell>& left, const Cell& cell) {
  const auto after = std::upper_bound(left.begin(), left.end(), cell.begin,
                                      [](std::uint64_t row, const Cell& other) { return row < other.end; });
  return after != left.end() && after->begin < cell.end;
}

class Grouping {
 public:
  explicit Grouping(std::vector<RankLayout> ranks) {
    std::sort(ranks.begin(), ranks.end(), [](const RankLayout& a, const RankLayout& b) { return a.rank < b.rank; });
    std::map<const Layout*, std::size_t> places;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      RK_ASSERT(ranks[i].layout != nullptr && (i == 0 || ranks[i - 1].rank < ranks[i].rank));
      const auto [place, fresh] = places.emplace(ranks[i].layout, classes_.size());
      if (fresh) classes_.push_back({ranks[i].layout, {}});
      classes_[place->second].ranks.push_back(ranks[i].rank);
    }
  }

  Result<std::vector<ReplicaGroup>> group() {
    for (std::size_t holder = 0; holder < classes_.size(); ++holder) {
      if (Status status = gather(holder); !status) return std::unexpected(status.error());
    }
    for (std::vector<Held>& held : tensors_) {
      if (Status status = place(held); !status) return std::unexpected(status.error());
    }
    for (ReplicaGroup& group : groups_) {
      std::stable_sort(group.shards.begin(), group.shards.end(),
                       [](const Shard& a, const Shard& b) { return a.position < b.position; });
    }
    std::sort(groups_.begin(), groups_.end(), [](const ReplicaGroup& a, const ReplicaGroup& b) {
      return a.ranks.size() != b.ranks.size() ? a.ranks.size() < b.ranks.size() : a.ranks < b.ranks;
    });
    return std::move(groups_);
  }

 private:
  std::vector<std::uint32_t> ranks_of(const std::vector<std::size_t>& holders) const {
    std::vector<std::uint32_t> ranks;
    for (const std::size_t holder : holders)
      ranks.insert(ranks.end(), classes_[holder].ranks.begin(), classes_[holder].ranks.end());
    std::sort(ranks.begin(), ranks.end());
    return ranks;
  }

  Status gather(std::size_t holder) {
    const std::vector<TensorDescription>& registered = classes_[holder].layout->tensors;
    for (std::size_t position = 0; position < registered.size(); ++position) {
      const TensorDescription& tensor = registered[position];
      const auto [place, fresh] = names_.emplace(tensor.name, tensors_.size());
      if (fresh) tensors_.emplace_back();
      std::vector<Held>& held = tensors_[place->second];
      if (!held.empty()) {
        const TensorDescription& known = *held.front().tensor;
        if (known.dtype != tensor.dtype || known.global_shape != tensor.global_shape) {
          return fail(ErrorCode::invalid_input,
                      format("tensor \"{}\" is {} {} as a whole for {} and {} {} for {}; ranks that share a name must "
                             "register it with the same type and global shape",
                             tensor.name, to_string(known.dtype), describe_shape(known.global_shape),
                             describe_ranks(classes_[held.front().holder].ranks), to_string(tensor.dtype),
                             describe_shape(tensor.global_shape), describe_ranks(classes_[holder].ranks)));
        }
      }
      held.push_back({&tensor, holder, position});
    }
    return {};
  }

  // Shards of one tensor, into the groups of their holders.
  Status place(std::vector<Held>& held) {
    const TensorDescription& first = *held.front().tensor;
    const bool alike = std::all_of(held.begin(), held.end(), [&](const Held& other) {
      return other.tensor->offset == first.offset && other.tensor->shape == first.shape;
    });
    const std::uint64_t expected_elements = volume_of(first.global_shape);
    if (alike || expected_elements == 0) {
      if (volume_of(first.shape) != expected_elements) return gap(held, expected_elements - volume_of(first.shape));
      Cell cell{first_row(first), end_row(first), {}};
      for (std::size_t i = 0; i < held.size(); ++i) {
        // Of an empty tensor any box will do; those that hold another one have no part in it.
        if (held[i].tensor->offset == first.offset && held[i].tensor->shape == first.shape) cell.held.push_back(i);
      }
      add(held, cell);
      return {};
    }
    const auto before = [](const Held& a, const Held& b) {
      if (const int order = compare_cross(*a.tensor, *b.tensor); order != 0) return order < 0;
      if (first_row(*a.tensor) != first_row(*b.tensor)) return first_row(*a.tensor) < first_row(*b.tensor);
      return end_row(*a.tensor) < end_row(*b.tensor);
    };
    if (!std::is_sorted(held.begin(), held.end(), before)) std::stable_sort(held.begin(), held.end(), before);
    std::vector<CrossSection> sections;
    for (std::size_t from = 0; from < held.size();) {
      std::size_t to = from + 1;
      while (to < held.size() && compare_cross(*held[from].tensor, *held[to].tensor) == 0) ++to;
      if (cross_volume(*held[from].tensor) > 0) sections.push_back(cut_rows(held, from, to));
      from = to;
    }
    std::pair<std::size_t, std::size_t> clash{held.size(), held.size()};
    drop_overlaps(sections, clash);
    std::uint64_t covered = 0;
    for (const CrossSection& section : sections) {
      for (const Cell& cell : section.cells) covered += (cell.end - cell.begin) * cross_volume(*section.sample);
    }
    if (covered != expected_elements)
      return clash.first < held.size() ? overlap(held, clash) : gap(held, expected_elements - covered);
    for (const CrossSection& section : sections) {
      for (const Cell& cell : section.cells) add(held, cell);
    }
    return {};
  }

  // The larger cross sections stay; of the smaller ones the rows that overlap them go. `clash`: one
  // pair that did.
  static void drop_overlaps(std::vector<CrossSection>& sections, std::pair<std::size_t, std::size_t>& clash) {
    if (sections.size() < 2) return;
    // Sorted by the second dimension already, so only those that are still open there can overlap.
    std::vector<std::pair<std::size_t, std::size_t>> pairs;
    std::vector<std::size_t> open;
    for (std::size_t i = 0; i < sections.size(); ++i) {
      const TensorDescription& sample = *sections[i].sample;
      std::erase_if(open, [&](std::size_t other) {
        return sections[other].sample->offset[1] + sections[other].sample->shape[1] <= sample.offset[1];
      });
      for (const std::size_t other : open) {
        if (crosses_overlap(*sections[other].sample, sample)) pairs.emplace_back(other, i);
      }
      open.push_back(i);
    }
    for (auto& [keeps, yields] : pairs) {
      if (cross_volume(*sections[yields].sample) > cross_volume(*sections[keeps].sample)) std::swap(keeps, yields);
    }
    // The largest first: what has yielded itself drives no other shard away.
    std::stable_sort(pairs.begin(), pairs.end(), [&](const auto& a, const auto& b) {
      return cross_volume(*sections[a.first].sample) > cross_volume(*sections[b.first].sample);
    });
    for (const auto& [keeps, yields] : pairs) {
      std::erase_if(sections[yields].cells, [&](const Cell& cell) {
        if (!rows_overlap(sections[keeps].cells, cell)) return false;
        clash = {sections[keeps].cells.front().held.front(), cell.held.front()};
        return true;
      });
    }
  }

  std::string describe_held(const Held& held) const {
    return format("{} at {}", describe_ranks(classes_[held.holder].ranks),
                  describe_box(held.tensor->offset, held.tensor->shape));
  }

  std::unexpected<Error> overlap(const std::vector<Held>& held, std::pair<std::size_t, std::size_t> clash) const {
    const Held& left = held[clash.first];
    const Held& right = held[clash.second];
    return fail(ErrorCode::invalid_input,
                format("tensor \"{}\" of {} is held by {} and by {}: the parts overlap and cannot be put together so "
                       "that each element is saved once; let all ranks hold equal parts or parts that do not overlap",
                       left.tensor->name, describe_shape(left.tensor->global_shape), describe_held(left),
                       describe_held(right)));
  }

  std::unexpected<Error> gap(const std::vector<Held>& held, std::uint64_t missing) const {
    std::string holders = describe_held(held.front());
    for (const Held& other : held) {
      if (other.tensor->offset == held.front().tensor->offset && other.tensor->shape == held.front().tensor->shape)
        continue;
      holders += ", " + describe_held(other);
      break;
    }
    const TensorDescription& tensor = *held.front().tensor;
    return fail(ErrorCode::invalid_input, format("tensor \"{}\" of {} is not complete: {} of {} elements are held by "
                                                 "no rank ({}); every element must be registered by at least one rank",
                                                 tensor.name, describe_shape(tensor.global_shape), missing,
                                                 volume_of(tensor.global_shape), holders));
  }

  void add(const std::vector<Held>& held, const Cell& cell) {
    std::vector<std::size_t> holders;
    for (const std::size_t index : cell.held) holders.push_back(held[index].holder);
    const auto [place, fresh] = places_.emplace(holders, groups_.size());
    if (fresh) groups_.push_back({.ranks = ranks_of(holders), .shards = {}, .bytes = 0});
    ReplicaGroup& group = groups_[place->second];
    const Held& lowest = held[cell.held.front()];
    Shard shard{.tensor = lowest.tensor,
                .begin_row = cell.begin,
                .rows = cell.end - cell.begin,
                .position = lowest.position,
                .first_rows = {}};
    if (std::any_of(cell.held.begin(), cell.held.end(),
                    [&](std::size_t index) { return first_row(*held[index].tensor) != cell.begin; })) {
      std::map<std::uint32_t, std::uint64_t> rows;
      for (const std::size_t index : cell.held) {
        for (const std::uint32_t rank : classes_[held[index].holder].ranks)
          rows[rank] = cell.begin - first_row(*held[index].tensor);
      }
      for (const auto& [rank, row] : rows) shard.first_rows.push_back(row);
    }
    group.bytes += rows_bytes(*shard.tensor, shard.rows);
    group.shards.push_back(std::move(shard));
  }

  std::vector<Class> classes_;
  std::unordered_map<std::string_view, std::size_t> names_;
  std::vector<std::vector<Held>> tensors_;  // in the order in which the ranks name them first
  std::map<std::vector<std::size_t>, std::size_t> places_;
  std::vector<ReplicaGroup> groups_;
};

}  // namespace

std::string describe_place(const Shard& shard) {
  Extents offset = shard.tensor->offset;
  Extents shape = shard.tensor->shape;
  if (!shape.empty()) {
    offset.front() = shard.begin_row;
    shape.front() = shard.rows;
  }
  return describe_box(offset, shape);
}

std::string describe_ranks(const std::vector<std::uint32_t>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  const std::size_t named = ranks.size() > kRanksNamed + 1 ? kRanksNamed : ranks.size();
  for (std::size_t i = 0; i < named; ++i) text += format("{}{}", i == 0 ? "" : ", ", ranks[i]);
  if (named < ranks.size()) text += format(" and {} more", ranks.size() - named);
  return text;
}

Result<std::vector<ReplicaGroup>> group_shards(std::vector<RankLayout> ranks) {
  return Grouping(std::move(ranks)).group();
}

}  // namespace rekindle
