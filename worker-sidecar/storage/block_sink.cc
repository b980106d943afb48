#include "worker-sidecar/storage/block_sink.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>

#include "common/base/assert.h"
#include "common/base/format.h"
#include "worker-sidecar/checkpoint/pace.h"
#include "worker-sidecar/storage/block_memory.h"
#include "worker-sidecar/storage/transfer_queue.h"

namespace rekindle {
namespace {

// copied and hashed while it is in the processor's cache
constexpr std::size_t kSliceBytes = 256u << 10;
// of a capped write, between two checks whether it may go on
constexpr Duration kPauseMax = std::chrono::milliseconds(50);

}  // namespace

struct BlockSink::State {
  struct Block {
    BlockMemory memory;
    std::uint64_t offset = 0;  // in the file
    std::size_t filled = 0;
    bool under_way = false;
  };

  FileSystem& file_system;
  const int plain;  // the caller's descriptor, through the page cache
  const std::string path;
  const std::uint64_t file_bytes;
  const BlockOptions options;
  Waiter& waiter;
  Pace pace;
  std::vector<Block> blocks;
  std::size_t current = 0;  // being filled
  std::uint64_t taken = 0;
  WriteWay way = WriteWay::plain;
  std::optional<OpenFile> direct;
  std::unique_ptr<WriteQueue> queue;  // gone before the blocks are

  Status open_direct() {
    if (options.way_max == WriteWay::plain || file_bytes < kDirectFileBytesMin ||
        options.block_bytes % kBlockAlignmentBytes != 0)
      return {};
    const int descriptor = file_system.open(path, O_WRONLY | O_DIRECT | O_NOFOLLOW, 0);
    if (descriptor < 0) return {};  // tmpfs and some network file systems: through the cache, then
    direct.emplace(file_system, descriptor);
    way = WriteWay::direct;
    if (const int result = file_system.allocate(plain, file_bytes);
        result == -ENOSPC || result == -EDQUOT || result == -EFBIG) {
      return storage_failure(-result, format("reserving {} bytes for", file_bytes), path);
    }
    if (options.way_max == WriteWay::queued) queue = file_system.make_write_queue(kBlocksMax);
    if (queue) way = WriteWay::queued;
    return {};
  }

  // What storage took of a block directly is less than all of it: the rest goes through the cache.
  Status write_rest(const Block& block, std::int64_t written) {
    if (written == -EINVAL || written == -EOPNOTSUPP) {
      way = WriteWay::plain;  // it opened the file for direct writes and does not do them
      written = 0;
    }
    if (written == -EINTR || written == -EAGAIN) written = 0;
    if (written < 0) return storage_failure(static_cast<int>(-written), "writing", path);
    const auto done = static_cast<std::size_t>(written);
    RK_ASSERT(done <= block.filled);
    return write_all(file_system, plain, block.memory.get() + done, block.filled - done, block.offset + done, path);
  }

  Status end_one() {
    const TransferEnd end = queue->wait();
    Block& block = blocks[end.tag];
    block.under_way = false;
    return write_rest(block, end.result);
  }

  Status write_block() {
    Block& block = blocks[current];
    const bool whole = block.filled == options.block_bytes;
    if (way == WriteWay::plain || !whole)
      return write_all(file_system, plain, block.memory.get(), block.filled, block.offset, path);
    if (way == WriteWay::direct)
      return write_rest(block,
                        file_system.pwrite(direct->descriptor(), block.memory.get(), block.filled, block.offset));
    if (const int result = queue->begin(direct->descriptor(), block.memory.get(), block.filled, block.offset, current);
        result < 0) {
      return write_rest(block, result);
    }
    block.under_way = true;
    return {};
  }

  // Makes `current` a block that can be filled from `taken` on.
  Status take_block() {
    std::size_t free = 0;
    while (free < blocks.size() && blocks[free].under_way) ++free;
    if (free == blocks.size()) {
      const std::size_t blocks_max = way == WriteWay::queued ? kBlocksMax : 1;
      BlockMemory memory = blocks.size() < blocks_max ? BlockMemory(memory_bytes()) : BlockMemory();
      if (memory) {
        blocks.push_back({.memory = std::move(memory)});
      } else if (blocks.empty()) {
        return fail(ErrorCode::unavailable,
                    format("there is no memory for a write buffer of {} bytes", memory_bytes()));
      } else {
        if (Status status = end_one(); !status) return status;
        return take_block();
      }
    }
    current = free;
    blocks[current].offset = taken;
    blocks[current].filled = 0;
    return {};
  }

  // A file that is smaller than a block needs no more memory than it has bytes.
  std::size_t memory_bytes() const {
    const std::uint64_t needed = std::min<std::uint64_t>(options.block_bytes, std::max<std::uint64_t>(file_bytes, 1));
    return round_up_to_alignment(static_cast<std::size_t>(needed));
  }

  Status may_go_on() const { return options.may_go_on ? options.may_go_on() : Status(); }

  // A cap may mean a long wait; may_go_on() is called all through it.
  Status wait_for_pace() {
    Duration now = waiter.now();
    for (const Duration end = now + pace.wait_for(blocks[current].filled, now); now < end; now = waiter.now()) {
      waiter.pause(std::min(end - now, kPauseMax));
      if (Status status = may_go_on(); !status) return status;
    }
    return {};
  }

  Status end_block() {
    if (options.bytes_per_second_max != 0) {
      if (Status status = wait_for_pace(); !status) return status;
    }
    if (Status status = write_block(); !status) return status;
    return may_go_on();
  }

  Status append(const char* data, std::size_t bytes) {
    RK_ASSERT(bytes <= file_bytes - taken);
    while (bytes > 0) {
      if (blocks.empty() || blocks[current].under_way || blocks[current].filled == options.block_bytes) {
        if (Status status = take_block(); !status) return status;
      }
      Block& block = blocks[current];
      const std::size_t part = std::min({bytes, options.block_bytes - block.filled, kSliceBytes});
      char* const to = block.memory.get() + block.filled;
      std::memcpy(to, data, part);
      if (options.on_bytes) options.on_bytes(to, part);
      block.filled += part;
      taken += part;
      data += part;
      bytes -= part;
      if (block.filled == options.block_bytes) {
        if (Status status = end_block(); !status) return status;
      }
    }
    return {};
  }

  Status finish() {
    if (!blocks.empty() && !blocks[current].under_way && blocks[current].filled > 0 &&
        blocks[current].filled < options.block_bytes) {
      if (Status status = end_block(); !status) return status;
    }
    while (std::ranges::any_of(blocks, &Block::under_way)) {
      if (Status status = end_one(); !status) return status;
    }
    if (!direct) return {};
    if (const int result = direct->close(); result < 0) return storage_failure(-result, "closing", path);
    return {};
  }
};

BlockSink::BlockSink(std::unique_ptr<State> state) : state_(std::move(state)) {}
BlockSink::~BlockSink() = default;
BlockSink::BlockSink(BlockSink&&) noexcept = default;

Result<BlockSink> BlockSink::open(FileSystem& file_system, const OpenFile& file, std::string path,
                                  std::uint64_t file_bytes, BlockOptions options) {
  RK_ASSERT(options.block_bytes > 0);
  Waiter& waiter = options.waiter != nullptr ? *options.waiter : real_waiter();
  const Pace pace(options.bytes_per_second_max, options.block_bytes,
                  options.bytes_per_second_max != 0 ? waiter.now() : Duration());
  BlockSink sink(std::make_unique<State>(State{.file_system = file_system,
                                               .plain = file.descriptor(),
                                               .path = std::move(path),
                                               .file_bytes = file_bytes,
                                               .options = std::move(options),
                                               .waiter = waiter,
                                               .pace = pace}));
  if (Status status = sink.state_->open_direct(); !status) return std::unexpected(status.error());
  return sink;
}

Status BlockSink::append(const void* data, std::size_t bytes) {
  return state_->append(static_cast<const char*>(data), bytes);
}
Status BlockSink::finish() { return state_->finish(); }
std::uint64_t BlockSink::bytes_taken() const { return state_->taken; }
WriteWay BlockSink::way() const { return state_->way; }

}  // namespace rekindle
