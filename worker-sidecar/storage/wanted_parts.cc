#include "worker-sidecar/storage/wanted_parts.h"

#include <algorithm>
#include <utility>

#include "common/base/assert.h"
#include "worker-sidecar/storage/run_copy.h"

namespace rekindle {
namespace {

std::uint64_t end_of(const BlockSource::Block& block) { return block.offset + block.data.size(); }

// What lies in the block of the run at which a walk stands.
struct Part {
  std::uint64_t file_byte = 0;
  std::uint64_t target_byte = 0;
  std::uint64_t bytes = 0;
};

Part part_in(const RunWalk& walk, const ReadRange& range, const BlockSource::Block& block) {
  const std::uint64_t begin = std::max(walk.file_byte(), block.offset);
  const std::uint64_t end = std::min(walk.file_byte() + range.bytes, end_of(block));
  return {.file_byte = begin, .target_byte = walk.target_byte() + (begin - walk.file_byte()), .bytes = end - begin};
}

// Copies the runs from where the walk stands, as far as they begin before `end` and lie in the
// block. `memory` begins at `memory_byte` of the target.
void copy_to_memory(const ReadRange& range, RunWalk walk, std::uint64_t end, const BlockSource::Block& block,
                    char* memory, std::uint64_t memory_byte) {
  while (!walk.at_end() && walk.file_byte() < end) {
    const Part part = part_in(walk, range, block);
    std::uint64_t runs = 1;
    const Repeat line = walk.line();
    // Whole runs in equal steps go together; only the first and the last of a block are cut.
    if (part.bytes == range.bytes && line.count > 1) {
      runs = std::min({line.count, (end_of(block) - part.file_byte - part.bytes) / line.file_step + 1,
                       (end - part.file_byte - 1) / line.file_step + 1});
    }
    copy_runs(memory + (part.target_byte - memory_byte), line.target_step,
              block.data.data() + (part.file_byte - block.offset), line.file_step, part.bytes, runs);
    walk.advance(runs);
  }
}

}  // namespace

Status Scatter::put(const ReadRange& range, const BlockSource::Block& block) {
  const std::span<const Destination> destinations = range.kind == TargetKind::tensor ? memory_.tensors : memory_.states;
  RK_ASSERT(range.index < destinations.size());
  const Destination& destination = destinations[range.index];
  RK_ASSERT(target_end_byte(range) <= destination.bytes);
  if (destination.array != nullptr) return put_into_array(range, block, *destination.array);
  copy_to_memory(range, RunWalk(range, block.offset), end_of(block), block, static_cast<char*>(destination.data), 0);
  return {};
}

// A call of an array may cost as much as thousands of runs. So neighbours are put together first,
// and where there are gaps between them that are cheaper to copy than to leave out, what the array
// has there is fetched and put back: parts of it come from other files, before or after.
Status Scatter::put_into_array(const ReadRange& range, const BlockSource::Block& block, const ArrayMemory& array) {
  const std::uint64_t call_bytes = array.bytes_worth_a_call();
  RunWalk walk(range, block.offset);
  const auto more = [&] { return !walk.at_end() && walk.file_byte() < end_of(block); };
  while (more()) {
    const RunWalk first_walk = walk;
    const Part first = part_in(walk, range, block);
    std::uint64_t window_end = first.target_byte + first.bytes;
    bool alone = true;
    bool with_gaps = false;
    for (walk.advance(); more(); walk.advance()) {
      const Part next = part_in(walk, range, block);
      const std::uint64_t gap = next.target_byte - window_end;
      if (next.target_byte + next.bytes - first.target_byte > kStagingBytes) break;
      // out and in again, or one more call
      if (gap > 0 && 2 * (gap + next.bytes) > call_bytes + next.bytes) break;
      window_end = next.target_byte + next.bytes;
      alone = false;
      with_gaps = with_gaps || gap > 0;
    }
    const auto window_bytes = static_cast<std::size_t>(window_end - first.target_byte);
    const char* from = block.data.data() + (first.file_byte - block.offset);
    if (!alone) {
      if (staging_.size() < window_bytes) staging_.resize(window_bytes);
      if (with_gaps) {
        if (Status status = array.copy_out(staging_.data(), first.target_byte, window_bytes); !status) return status;
      }
      const std::uint64_t end = walk.at_end() ? end_of(block) : std::min(walk.file_byte(), end_of(block));
      copy_to_memory(range, first_walk, end, block, staging_.data(), first.target_byte);
      from = staging_.data();
    }
    if (Status status = array.copy_in(first.target_byte, from, window_bytes); !status) return status;
  }
  return {};
}

WantedParts::WantedParts(const std::vector<ReadRange>& ranges) : ranges_(ranges) {
  for (const ReadRange& range : ranges_) ends_.push_back(std::max(ends_.empty() ? 0 : ends_.back(), end_byte(range)));
}

Status WantedParts::put(Scatter& scatter, const BlockSource::Block& block) const {
  // the first that is not wholly before
  const auto first = std::ranges::upper_bound(ends_, block.offset) - ends_.begin();
  for (auto i = static_cast<std::size_t>(first); i < ranges_.size() && ranges_[i].begin_byte < end_of(block); ++i) {
    if (Status status = scatter.put(ranges_[i], block); !status) return status;
  }
  return {};
}

std::vector<BlockSpan> WantedParts::blocks(std::uint64_t file_bytes, std::uint64_t header_bytes,
                                           std::uint64_t block_bytes) const {
  std::vector<bool> needed((file_bytes + block_bytes - 1) / block_bytes);
  // Answers where the last block that is marked ends.
  const auto need = [&](std::uint64_t begin, std::uint64_t end) {
    std::uint64_t block = begin / block_bytes;
    for (; block * block_bytes < std::min(end, file_bytes); ++block) needed[block] = true;
    return block * block_bytes;
  };
  need(0, header_bytes);
  for (const ReadRange& range : ranges_) {
    // From block to block, not from run to run.
    for (std::uint64_t byte = 0; byte < file_bytes;) {
      const RunWalk walk(range, byte);
      if (walk.at_end() || walk.file_byte() >= file_bytes) break;
      byte = need(std::max(byte, walk.file_byte()), walk.file_byte() + range.bytes);
    }
  }
  std::vector<BlockSpan> spans;
  for (std::uint64_t block = 0; block < needed.size(); ++block) {
    const std::uint64_t begin = block * block_bytes;
    if (needed[block])
      spans.push_back({.offset = begin, .bytes = static_cast<std::size_t>(std::min(block_bytes, file_bytes - begin))});
  }
  return spans;
}

}  // namespace rekindle
