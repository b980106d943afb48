// What a plan needs of one file: which blocks of it have to be read, and where in registered memory
// the bytes of a block go.
//
// Threads: blocks may be scattered at the same time, each caller with a Scatter of its own, unless
// an array is among the destinations.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "common/base/error.h"
#include "worker-sidecar/checkpoint/restore_plan.h"
#include "worker-sidecar/storage/array_memory.h"
#include "worker-sidecar/storage/block_source.h"

namespace rekindle {

struct Destination {
  void* data = nullptr;
  std::uint64_t bytes = 0;
  const ArrayMemory* array = nullptr;  // instead of `data`
};

struct RestoreMemory {
  // one for each tensor of the layout that the plan was made for
  std::span<const Destination> tensors;
  std::span<const Destination> states;  // one for each registered state
};

// The one place where bytes enter registered memory.
class Scatter {
 public:
  static constexpr std::size_t kStagingBytes = 4u << 20;

  explicit Scatter(const RestoreMemory& memory) : memory_(memory) {}

  // Copies what the range needs of the block.
  Status put(const ReadRange& range, const BlockSource::Block& block);

 private:
  Status put_into_array(const ReadRange& range, const BlockSource::Block& block, const ArrayMemory& array);

  const RestoreMemory& memory_;
  // for arrays only, at most kStagingBytes
  std::vector<char> staging_;
};

class WantedParts {
 public:
  // Ranges by begin_byte, as in a plan, which outlives this.
  explicit WantedParts(const std::vector<ReadRange>& ranges);

  // Copies what the ranges need of the block.
  Status put(Scatter& scatter, const BlockSource::Block& block) const;

  // Those blocks of the file that hold its header or something needed, in order.
  std::vector<BlockSpan> blocks(std::uint64_t file_bytes, std::uint64_t header_bytes, std::uint64_t block_bytes) const;

 private:
  const std::vector<ReadRange>& ranges_;
  // ends_[i]: behind everything that the first i + 1 need
  std::vector<std::uint64_t> ends_;
};

}  // namespace rekindle
