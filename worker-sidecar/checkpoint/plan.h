// Who writes what: a layout that several ranks hold alike is cut into one share for each writer. Pure; the same input gives the
// same plan on every machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "worker-sidecar/checkpoint/layout.h"

namespace rekindle {

// Rows [begin_row, end_row) of the part of `tensor` that the rank holds. A scalar is row [0, 1); an empty tensor
// without rows is [0, 0) and still belongs to exactly one writer.
struct PiecePlan {
  std::string tensor;
  std::uint64_t begin_row = 0;
  std::uint64_t end_row = 0;

  bool operator==(const PiecePlan&) const = default;
};

struct WriterPlan {
  std::uint32_t rank = 0;
  std::string file;  // rank_file_name(rank)
  std::vector<PiecePlan> pieces;
  std::uint64_t bytes = 0;  // of data, without the file's header

  bool operator==(const WriterPlan&) const = default;
};

// All tensors in order of registration, laid end to end in bytes and cut into as many equal parts as there are writers, each cut
// moved to the nearest row border. Every row is in exactly one piece; two shares differ by at most two rows.
// `layout` must have passed check_layout; `writer_ranks` is not empty and has no rank twice. A writer that gets nothing (more writers than
// rows) is left out of the answer.
std::vector<WriterPlan> split_for_writers(const Layout& layout, const std::vector<std::uint32_t>& writer_ranks);

}  // namespace rekindle
