// Layouts of whole jobs, as the usual ways of training them give every rank.
#pragma once

#include <string>
#include <vector>

#include "common/base/format.h"
#include "worker-sidecar/checkpoint/shards.h"

namespace rekindle {

// One layout a rank; lists() points into it.
struct JobOfLayouts {
  std::vector<Layout> layouts;

  std::vector<RankLayout> lists() const {
    std::vector<RankLayout> ranks;
    for (std::size_t i = 0; i < layouts.size(); ++i) ranks.push_back({static_cast<std::uint32_t>(i), &layouts[i]});
    return ranks;
  }
};

// Part `index` of `parts` of a tensor along one dimension, the first ones larger where it does not
// divide.
inline TensorDescription part_of_tensor(std::string name, Extents global, std::size_t dimension, std::uint64_t index,
                                        std::uint64_t parts) {
  TensorDescription tensor = whole_tensor(std::move(name), Dtype::f32, global);
  const std::uint64_t rows_min = global[dimension] / parts;
  const std::uint64_t larger = global[dimension] % parts;
  tensor.offset[dimension] = index * rows_min + std::min(index, larger);
  tensor.shape[dimension] = rows_min + (index < larger ? 1 : 0);
  return tensor;
}

inline JobOfLayouts data_parallel(std::size_t ranks) {
  Layout layout{{whole_tensor("w1", Dtype::f32, {64, 32}), whole_tensor("b1", Dtype::f32, {64}),
                 whole_tensor("w2", Dtype::f32, {10, 64})}};
  return {std::vector<Layout>(ranks, layout)};
}

// Rank = replica * parts + part. Rows of one matrix, columns of the other, the norm whole
// everywhere.
inline JobOfLayouts tensor_parallel(std::size_t parts, std::size_t replicas) {
  JobOfLayouts job;
  for (std::size_t rank = 0; rank < parts * replicas; ++rank) {
    const std::uint64_t part = rank % parts;
    job.layouts.push_back({{part_of_tensor("up", {128, 32}, 0, part, parts), whole_tensor("norm", Dtype::f32, {512}),
                            part_of_tensor("down", {32, 128}, 1, part, parts)}});
  }
  return job;
}

// Rank = replica * stages + stage.
inline JobOfLayouts pipeline_parallel(std::size_t stages, std::size_t replicas) {
  JobOfLayouts job;
  for (std::size_t rank = 0; rank < stages * replicas; ++rank) {
    const std::string stage = format("stage{}", rank % stages);
    job.layouts.push_back(
        {{whole_tensor(stage + ".w", Dtype::f32, {64, 32}), whole_tensor(stage + ".b", Dtype::f32, {64})}});
  }
  return job;
}

// Whole parameters everywhere, the optimizer's moments cut flat.
inline JobOfLayouts zero_one(std::size_t ranks) {
  JobOfLayouts job;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    job.layouts.push_back(
        {{whole_tensor("w1", Dtype::f32, {64, 32}), whole_tensor("w2", Dtype::f32, {10, 64}),
          part_of_tensor("moment1", {2688}, 0, rank, ranks), part_of_tensor("moment2", {2688}, 0, rank, ranks)}});
  }
  return job;
}

}  // namespace rekindle
