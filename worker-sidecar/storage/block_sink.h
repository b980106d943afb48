// The bytes of one new file on their way to the disk. They are collected in blocks; while one is
// filled, earlier ones are being written, past the page cache where the storage can (a cache that
// holds a whole checkpoint takes memory from training and is written out at a fraction of the
// disk's speed).
//
// Every block is copied once, and what is hashed is the copy: what is on the disk has the hash that
// was reported, also when the source changes meanwhile (which the caller's pin then finds). One
// file, one thread. At most kBlocksMax blocks of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/enum_names.h"
#include "common/base/error.h"
#include "worker-sidecar/storage/files.h"
#include "worker-sidecar/storage/waiter.h"

namespace rekindle {

// How the bytes of a file went to the disk.
enum class WriteWay : std::uint8_t {
  // through the page cache
  plain,
  // past it, one block at a time
  direct,
  // past it, several blocks at a time (io_uring)
  queued,
};
constexpr auto enum_names(WriteWay) {
  return std::to_array<EnumName<WriteWay>>(
      {{WriteWay::plain, "plain"}, {WriteWay::direct, "direct"}, {WriteWay::queued, "queued"}});
}

struct BlockOptions {
  std::size_t block_bytes = 4u << 20;
  // a test or a person may request less
  WriteWay way_max = WriteWay::queued;
  // each byte once, in order, as it is written
  std::function<void(const char*, std::size_t)> on_bytes;
  // called for each block, and all through the pauses of a capped write
  std::function<Status()> may_go_on;
  // 0: as fast as the storage takes them
  std::uint64_t bytes_per_second_max = 0;
  Waiter* waiter = nullptr;  // null: the kernel's clock
};

class BlockSink {
 public:
  static constexpr std::size_t kBlocksMax = 8;

  // `file` is open for writing at `path`, empty, and stays the caller's until the sink is gone.
  // Reserves the space.
  static Result<BlockSink> open(FileSystem& file_system, const OpenFile& file, std::string path,
                                std::uint64_t file_bytes, BlockOptions options);
  ~BlockSink();
  BlockSink(BlockSink&&) noexcept;

  Status append(const void* data, std::size_t bytes);

  // Everything has been written when it returns; nothing is durable before an fsync of the file.
  Status finish();

  std::uint64_t bytes_taken() const;
  WriteWay way() const;

 private:
  struct State;
  explicit BlockSink(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace rekindle
