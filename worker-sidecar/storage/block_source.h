// The bytes of files on their way from the disk, in blocks: while one is consumed, the next are
// already coming. Past the page cache where the storage can, which is as fast as the disk; what the
// disk will not give that way comes through the cache.
//
// Storage that fails, a read that is interrupted or ends too early, a file that shrinks meanwhile:
// either the right bytes come, or an error that names the file. One thread; several sources may
// read one file. Memory: `blocks_max` blocks at most.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "common/base/error.h"
#include "worker-sidecar/storage/source_file.h"

namespace rekindle {

// A part of a file. `offset` is a multiple of 4096; `bytes` is not 0 and at most one block.
struct BlockSpan {
  std::uint64_t offset = 0;
  std::size_t bytes = 0;
};

struct BlockSourceOptions {
  static constexpr unsigned kBlocksMax = 8;

  std::size_t block_bytes = 4u << 20;
  ReadWay way_max = ReadWay::queued;
  unsigned blocks_max = kBlocksMax;
};

class BlockSource {
 public:
  struct Block {
    std::uint64_t offset = 0;
    std::string_view data;  // until the next call
  };

  BlockSource(FileSystem& file_system, BlockSourceOptions options);
  ~BlockSource();
  BlockSource(BlockSource&&) noexcept;

  // What next() reads from now on: the spans that `take` gives until it gives none, in that order.
  // `file` lives until then. Nothing is under way from before.
  void start(const SourceFile& file, std::function<std::optional<BlockSpan>()> take);

  // None: the end.
  Result<std::optional<Block>> next();

  // The best way of the current file that has not turned out to be impossible.
  ReadWay way() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// All of a file of `file_bytes` from its beginning, block after block: a `take` for
// BlockSource::start.
std::function<std::optional<BlockSpan>()> every_block(std::uint64_t file_bytes, std::size_t block_bytes);

}  // namespace rekindle
