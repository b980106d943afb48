#include "worker-sidecar/storage/block_source.h"

#include <algorithm>
#include <cerrno>
#include <deque>
#include <utility>
#include <vector>

#include "common/base/assert.h"
#include "common/base/format.h"
#include "worker-sidecar/storage/block_memory.h"

namespace rekindle {
namespace {

// of the page cache's read-ahead; kernels cut larger hints short
constexpr std::uint64_t kHintBytes = 2u << 20;

}  // namespace

struct BlockSource::State {
  struct Slot {
    BlockMemory memory;
    BlockSpan span;
    bool under_way = false;              // in the queue
    std::optional<std::int64_t> result;  // of its read past the cache, once that has ended
  };

  FileSystem& file_system;
  const BlockSourceOptions options;
  const SourceFile* file = nullptr;
  std::function<std::optional<BlockSpan>()> take;
  ReadWay way = ReadWay::plain;
  std::vector<Slot> slots;
  std::deque<std::size_t> order;     // slots whose blocks have been requested, the next first
  bool delivered = false;            // the first of them is in the hands of the caller
  BlockMemory common;                // of blocks that are read when their turn has come
  std::unique_ptr<ReadQueue> queue;  // gone before the slots are

  std::size_t memory_bytes() const {
    return round_up_to_alignment(static_cast<std::size_t>(std::min<std::uint64_t>(options.block_bytes, file->bytes())));
  }

  bool reserve(BlockMemory& memory) const {
    if (memory.bytes() < memory_bytes()) memory = BlockMemory(memory_bytes());
    return static_cast<bool>(memory);
  }

  void start() {
    way = ReadWay::plain;
    if (file->direct() < 0 || options.block_bytes % kBlockAlignmentBytes != 0) return;
    way = std::min(options.way_max, ReadWay::direct);
    if (options.way_max != ReadWay::queued) return;
    if (!queue) queue = file_system.make_read_queue(options.blocks_max);
    if (queue) way = ReadWay::queued;
  }

  void hint(const BlockSpan& span) const {
    for (std::uint64_t done = 0; done < span.bytes; done += kHintBytes) {
      file_system.will_read(file->plain(), span.offset + done, std::min<std::uint64_t>(kHintBytes, span.bytes - done));
    }
  }

  void begin(std::size_t index) {
    Slot& slot = slots[index];
    if (way == ReadWay::plain) return hint(slot.span);
    if (way != ReadWay::queued || !reserve(slot.memory)) return;
    const int result = queue->begin(file->direct(), slot.memory.get(), round_up_to_alignment(slot.span.bytes),
                                    slot.span.offset, index);
    if (result < 0) slot.result = result;
    else slot.under_way = true;
  }

  void begin_more() {
    while (take && order.size() < options.blocks_max) {
      const std::optional<BlockSpan> span = take();
      if (!span) {
        take = nullptr;
        return;
      }
      RK_ASSERT(span->bytes > 0 && span->bytes <= options.block_bytes);
      const auto is_free = [&](std::size_t index) { return std::ranges::find(order, index) == order.end(); };
      std::size_t free = 0;
      while (free < slots.size() && !is_free(free)) ++free;
      if (free == slots.size()) slots.emplace_back();
      slots[free].span = *span;
      slots[free].result.reset();
      order.push_back(free);
      begin(free);
    }
  }

  void wait_for_one() {
    const TransferEnd end = queue->wait();
    Slot& slot = slots[end.tag];
    slot.under_way = false;
    slot.result = end.result;
  }

  // What a read past the cache has not brought comes through it.
  Status complete(const BlockSpan& span, char* memory, std::int64_t result) {
    if (result == -EINVAL || result == -EOPNOTSUPP) {
      way = ReadWay::plain;  // it opened the file for direct reads and does not do them
      result = 0;
    }
    if (result == -EINTR || result == -EAGAIN) result = 0;
    if (result < 0) return storage_failure(static_cast<int>(-result), "reading", file->path());
    const std::size_t done = std::min(static_cast<std::size_t>(result), span.bytes);
    return read_exactly(file_system, file->plain(), memory + done, span.bytes - done, span.offset + done, file->path());
  }

  Result<Block> end(std::size_t index) {
    while (slots[index].under_way) wait_for_one();
    Slot& slot = slots[index];
    char* memory = slot.memory.get();
    if (!slot.result) {
      if (!reserve(common))
        return fail(ErrorCode::unavailable, format("there is no memory for a read buffer of {} bytes", memory_bytes()));
      memory = common.get();
      const bool direct = way != ReadWay::plain;
      slot.result =
          direct ? file_system.pread(file->direct(), memory, round_up_to_alignment(slot.span.bytes), slot.span.offset)
                 : 0;
    }
    if (Status status = complete(slot.span, memory, *slot.result); !status) return std::unexpected(status.error());
    return Block{.offset = slot.span.offset, .data = std::string_view(memory, slot.span.bytes)};
  }
};

BlockSource::BlockSource(FileSystem& file_system, BlockSourceOptions options)
    : state_(std::make_unique<State>(State{.file_system = file_system, .options = options})) {
  RK_ASSERT(options.block_bytes > 0 && options.blocks_max > 0);
}
BlockSource::~BlockSource() = default;
BlockSource::BlockSource(BlockSource&&) noexcept = default;

void BlockSource::start(const SourceFile& file, std::function<std::optional<BlockSpan>()> take) {
  RK_ASSERT(state_->order.empty());
  state_->file = &file;
  state_->take = std::move(take);
  state_->start();
}

Result<std::optional<BlockSource::Block>> BlockSource::next() {
  State& state = *state_;
  // The caller is done with the block before; its memory is the next one's.
  if (state.delivered) state.order.pop_front();
  state.delivered = false;
  state.begin_more();
  if (state.order.empty()) return std::optional<Block>();
  Result<Block> block = state.end(state.order.front());
  if (!block) return std::unexpected(block.error());
  state.delivered = true;
  return std::optional<Block>(*block);
}

ReadWay BlockSource::way() const { return state_->way; }

std::function<std::optional<BlockSpan>()> every_block(std::uint64_t file_bytes, std::size_t block_bytes) {
  return [file_bytes, block_bytes, position = std::uint64_t{0}]() mutable -> std::optional<BlockSpan> {
    if (position == file_bytes) return std::nullopt;
    const BlockSpan span{
        .offset = position,
        .bytes = static_cast<std::size_t>(std::min<std::uint64_t>(block_bytes, file_bytes - position))};
    position += span.bytes;
    return span;
  };
}

}  // namespace rekindle
