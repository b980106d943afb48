#include "worker-sidecar/checkpoint/plan.h"

#include <algorithm>

#include "common/base/assert.h"
#include "worker-sidecar/checkpoint/names.h"

namespace rekindle {
namespace {

// A border between rows: everything before row `row` of tensor `tensor`. Normalized: row is below the tensor's row count, or
// the border is the end of all.
struct Cut {
  std::size_t tensor = 0;
  std::uint64_t row = 0;

  auto operator<=>(const Cut&) const = default;
};

// The row border nearest to byte `target` of the tensors laid end to end; the lower one of two.
Cut nearest_cut(const Layout& layout, const std::vector<std::uint64_t>& begins, std::uint64_t target) {
  // begins has one more element than there are tensors; the last begin that is not beyond the target owns it.
  const auto after = std::upper_bound(begins.begin(), begins.end(), target);
  const std::size_t index = static_cast<std::size_t>(after - begins.begin()) - 1;
  if (index >= layout.tensors.size()) return {layout.tensors.size(), 0};
  const std::uint64_t bytes = row_bytes(layout.tensors[index]);
  if (bytes == 0) return {index, 0};
  const std::uint64_t inside = target - begins[index];
  const std::uint64_t below = inside / bytes;
  const std::uint64_t row = inside - below * bytes > bytes / 2 ? below + 1 : below;
  if (row >= row_count(layout.tensors[index])) return {index + 1, 0};
  return {index, row};
}

void append_pieces(const Layout& layout, Cut begin, Cut end, WriterPlan& writer) {
  if (begin == end) return;
  for (std::size_t i = begin.tensor; i < layout.tensors.size() && (i < end.tensor || (i == end.tensor && end.row > 0)); ++i) {
    const TensorDescription& tensor = layout.tensors[i];
    const std::uint64_t begin_row = i == begin.tensor ? begin.row : 0;
    const std::uint64_t end_row = i == end.tensor ? end.row : row_count(tensor);
    writer.pieces.push_back({tensor.name, begin_row, end_row});
    writer.bytes += (end_row - begin_row) * row_bytes(tensor);
  }
}

}  // namespace

std::vector<WriterPlan> split_for_writers(const Layout& layout, const std::vector<std::uint32_t>& writer_ranks) {
  RK_ASSERT(!writer_ranks.empty());
  std::vector<std::uint64_t> begins{0};
  for (const TensorDescription& tensor : layout.tensors) begins.push_back(begins.back() + tensor_bytes(tensor));

  std::vector<WriterPlan> plan;
  const std::size_t writers = writer_ranks.size();
  Cut begin;
  for (std::size_t i = 0; i < writers; ++i) {
    const auto target = static_cast<std::uint64_t>(static_cast<unsigned __int128>(begins.back()) * (i + 1) / writers);
    // Empty tensors at the very end lie behind the last byte and belong to the last writer.
    const Cut end = i + 1 == writers ? Cut{layout.tensors.size(), 0} : std::max(begin, nearest_cut(layout, begins, target));
    WriterPlan writer{.rank = writer_ranks[i], .file = rank_file_name(writer_ranks[i])};
    append_pieces(layout, begin, end, writer);
    if (!writer.pieces.empty()) plan.push_back(std::move(writer));
    begin = end;
  }
  return plan;
}

}  // namespace rekindle
