// Who writes what: every shard of the job is written once, cut into shares for the ranks that have
// it. Pure; the same input gives the same plan on every machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/enum_names.h"
#include "worker-sidecar/checkpoint/layout.h"
#include "worker-sidecar/checkpoint/shards.h"

namespace rekindle {

// Rows [begin_row, end_row) of the part of `tensor` that the rank holds. A scalar is row [0, 1); an
// empty tensor without rows is [0, 0) and still belongs to exactly one writer.
struct PiecePlan {
  std::string tensor;
  std::uint64_t begin_row = 0;
  std::uint64_t end_row = 0;

  bool operator==(const PiecePlan&) const = default;
};

// Where a rank's bytes come from: its registered memory, or the copy of its stripe in its shadow
// (docs/decisions/0006).
enum class WriteSource : std::uint8_t { memory = 0, shadow = 1 };
constexpr auto enum_names(WriteSource) {
  return std::to_array<EnumName<WriteSource>>({{WriteSource::memory, "memory"}, {WriteSource::shadow, "shadow"}});
}

struct WriterPlan {
  std::uint32_t rank = 0;
  std::string file;  // rank_file_name(rank)
  std::vector<PiecePlan> pieces;
  // of data, without the file's header
  std::uint64_t bytes = 0;
  WriteSource source = WriteSource::memory;

  bool operator==(const WriterPlan&) const = default;
};

// The stripes of all ranks, each rank writing its share: by rank, those without any left out.
//
// The shards of one group are laid end to end in the order of registration and cut at row borders.
// Groups with few writers come first and later ones even out what earlier ones have left uneven:
// each group's bytes go to its least loaded writers. Guaranteed: every row is in exactly one piece;
// with one group the shares differ by at most two rows; where a group's bytes suffice to level its
// writers, they are level within two rows and one row for each smaller group that they are in. So
// data parallel, tensor, pipeline and expert parallel with equal parts, and ZeRO are balanced
// within rows; stages of different sizes stay as different as they are.
std::vector<WriterPlan> split_for_writers(const std::vector<ReplicaGroup>& groups);

// The same for ranks that all hold all of one layout, which has passed check_layout. `writer_ranks`
// is not empty and has no rank twice.
std::vector<WriterPlan> split_for_writers(const Layout& layout, const std::vector<std::uint32_t>& writer_ranks);

// For each group the ranks that have a share of it under split_for_writers(groups): without one of
// them no shadow is complete.
std::vector<std::vector<std::uint32_t>> ranks_with_shares(const std::vector<ReplicaGroup>& groups);

struct WritePlan {
  std::vector<WriterPlan> writers;  // by rank
  // of which no rank has a copy: the checkpoint cannot be made
  std::vector<std::size_t> lost_groups;

  bool operator==(const WritePlan&) const = default;
};

// Shards that a rank of `live` has are cut over the ranks of `live`. Each of the others is taken
// from the shadows, the stripe that split_for_writers(groups) gives to each of its ranks; `shadows`
// are those that have one. Both sorted; no rank in both.
WritePlan plan_write(const std::vector<ReplicaGroup>& groups, const std::vector<std::uint32_t>& live,
                     const std::vector<std::uint32_t>& shadows);

// For a message about what is lost: "tensor \"w\" at [0, 2) x [0, 8) of [4, 8] and 11 more, held
// by ranks 2, 3".
std::string describe_group(const ReplicaGroup& group);

}  // namespace rekindle
