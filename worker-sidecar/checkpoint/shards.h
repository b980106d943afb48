// What the ranks of one job hold together: every element of every tensor in exactly one shard,
// shards with the same holders in one replica group. Pure; the same ranks give the same groups on
// every machine.
//
// Ranks that registered the same box of a tensor hold copies of one shard. Boxes that overlap
// without being equal are cut along their first dimension where they differ in nothing else (one
// rank holds the whole, others a half each: the halves have two holders); where they differ in
// other dimensions the larger boxes are used and the smaller ones are not, as long as every element
// is still held by a rank.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "worker-sidecar/checkpoint/layout.h"

namespace rekindle {

// `layout` has passed check_layout and outlives what is made of it. Ranks may share one.
struct RankLayout {
  std::uint32_t rank = 0;
  const Layout* layout = nullptr;
};

// Rows of a part of a tensor; a scalar has one.
struct Shard {
  // the part, as the lowest holder registered it
  const TensorDescription* tensor = nullptr;
  std::uint64_t begin_row = 0;  // in the whole tensor
  std::uint64_t rows = 0;
  // in the registration of the lowest holder
  std::size_t position = 0;
  // in the part of each holder, in the order of the group's ranks; empty: 0 for all
  std::vector<std::uint64_t> first_rows;
};

struct ReplicaGroup {
  // that hold all of these shards, sorted
  std::vector<std::uint32_t> ranks;
  // in the order in which the lowest rank registered them
  std::vector<Shard> shards;
  std::uint64_t bytes = 0;
};

// Groups with fewer ranks first, equally many by their ranks. `ranks` may come in any order, none
// twice. invalid_input when they cannot be one job: a name with two types or global shapes,
// elements that no rank holds, boxes that overlap in a way that cannot be cut. The message names
// the tensor, the ranks and both shapes.
Result<std::vector<ReplicaGroup>> group_shards(std::vector<RankLayout> ranks);

// Where the shard lies in the whole tensor: "[2, 4) x [0, 8)".
std::string describe_place(const Shard& shard);

// "rank 3", "ranks 0, 1, 2 and 13 more".
std::string describe_ranks(const std::vector<std::uint32_t>& ranks);

}  // namespace rekindle
