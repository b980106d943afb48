#include "worker-sidecar/storage/block_sink.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <deque>

#include "common/base/format.h"
#include "tests/support/checkpoint_builder.h"
#include "tests/support/faulty_file_system.h"
#include "tests/support/temporary_folder.h"

namespace rekindle {
namespace {

constexpr std::size_t kBlockBytes = 64u << 10;

// A queue that does each write when it is waited for, the newest first, and says of the first ones
// what the test wants.
class OddQueue final : public WriteQueue {
 public:
  OddQueue(FileSystem& file_system, std::deque<std::int64_t>& results) : file_system_(file_system), results_(results) {}

  int begin(int descriptor, const void* data, std::size_t bytes, std::uint64_t offset, std::uint64_t tag) override {
    under_way_.push_back({descriptor, data, bytes, offset, tag});
    return 0;
  }

  TransferEnd wait() override {
    const Write write = under_way_.back();
    under_way_.pop_back();
    std::size_t bytes = write.bytes;
    if (!results_.empty()) {
      const std::int64_t result = results_.front();
      results_.pop_front();
      if (result < 0) return {write.tag, result};
      bytes = static_cast<std::size_t>(result);
    }
    return {write.tag, bytes == 0 ? 0 : file_system_.pwrite(write.descriptor, write.data, bytes, write.offset)};
  }

 private:
  struct Write {
    int descriptor;
    const void* data;
    std::size_t bytes;
    std::uint64_t offset;
    std::uint64_t tag;
  };
  FileSystem& file_system_;
  std::deque<std::int64_t>& results_;
  std::vector<Write> under_way_;
};

class OddFileSystem final : public FaultyFileSystem {
 public:
  explicit OddFileSystem(std::deque<std::int64_t> results = {}) : FaultyFileSystem({}), results_(std::move(results)) {}
  std::unique_ptr<WriteQueue> make_write_queue(unsigned) override {
    return std::make_unique<OddQueue>(real_file_system(), results_);
  }
  // Through the page cache, so that the test needs no storage that can do otherwise.
  int open(const std::string& path, int flags, mode_t mode) override {
    return FaultyFileSystem::open(path, flags & ~O_DIRECT, mode);
  }

 private:
  std::deque<std::int64_t> results_;
};

struct Sunk {
  Status status;
  std::string bytes;   // of the file
  std::string hashed;  // as on_bytes had them
  WriteWay way = WriteWay::plain;
};

Sunk sink_bytes(FileSystem& file_system, const std::string& data, WriteWay way_max) {
  const TemporaryFolder folder;
  const std::string path = folder.at("f");
  Sunk sunk;
  {
    OpenFile file(file_system, file_system.open(path, O_WRONLY | O_CREAT | O_EXCL, 0600));
    Result<BlockSink> sink = BlockSink::open(
        file_system, file, path, data.size(),
        {.block_bytes = kBlockBytes, .way_max = way_max, .on_bytes = [&](const char* from, std::size_t bytes) {
           sunk.hashed.append(from, bytes);
         }});
    if (!sink) {
      sunk.status = std::unexpected(sink.error());
      return sunk;
    }
    std::size_t position = 0;
    for (std::size_t part = 1; sunk.status && position < data.size(); part = part * 3 + 1) {
      const std::size_t bytes = std::min(part, data.size() - position);
      sunk.status = sink->append(data.data() + position, bytes);
      position += bytes;
    }
    if (sunk.status) sunk.status = sink->finish();
    sunk.way = sink->way();
  }
  if (sunk.status) sunk.bytes = read_bytes(path);
  return sunk;
}

TEST(BlockSink, EveryWayWritesTheSameBytes) {
  for (const std::size_t bytes :
       {std::size_t{1}, kBlockBytes - 1, kBlockBytes, kBlockBytes + 1, 16 * kBlockBytes, 40 * kBlockBytes + 4097}) {
    const std::string data = make_bytes(bytes, 7);
    for (const WriteWay way : {WriteWay::plain, WriteWay::direct, WriteWay::queued}) {
      SCOPED_TRACE(format("{} bytes, {}", bytes, to_string(way)));
      const Sunk sunk = sink_bytes(real_file_system(), data, way);
      ASSERT_TRUE(sunk.status) << sunk.status.error().message;
      EXPECT_TRUE(sunk.bytes == data);
      EXPECT_TRUE(sunk.hashed == data);
      EXPECT_LE(sunk.way, way);
    }
  }
}

TEST(BlockSink, WritesThatEndInAnyOrderFindTheirPlace) {
  OddFileSystem odd;
  const std::string data = make_bytes(40 * kBlockBytes, 8);
  const Sunk sunk = sink_bytes(odd, data, WriteWay::queued);
  ASSERT_TRUE(sunk.status);
  EXPECT_EQ(sunk.way, WriteWay::queued);
  EXPECT_TRUE(sunk.bytes == data);
}

TEST(BlockSink, WhatIsWrittenByHalfOrNotAtAllIsCarriedOn) {
  OddFileSystem odd({4096, 0, -EINTR, -EAGAIN, 12288});
  const std::string data = make_bytes(40 * kBlockBytes, 9);
  const Sunk sunk = sink_bytes(odd, data, WriteWay::queued);
  ASSERT_TRUE(sunk.status) << sunk.status.error().message;
  EXPECT_TRUE(sunk.bytes == data);
}

TEST(BlockSink, StorageThatTakesNoDirectWritesAfterAllGetsThemThroughTheCache) {
  OddFileSystem odd({-EINVAL});
  const std::string data = make_bytes(40 * kBlockBytes, 10);
  const Sunk sunk = sink_bytes(odd, data, WriteWay::queued);
  ASSERT_TRUE(sunk.status) << sunk.status.error().message;
  EXPECT_EQ(sunk.way, WriteWay::plain);
  EXPECT_TRUE(sunk.bytes == data);
}

TEST(BlockSink, AWriteThatFailedLateIsToldByFinish) {
  std::deque<std::int64_t> results(7, static_cast<std::int64_t>(kBlockBytes));
  results.push_back(-EIO);
  OddFileSystem odd(results);
  const Sunk sunk = sink_bytes(odd, make_bytes(16 * kBlockBytes, 11), WriteWay::queued);
  ASSERT_FALSE(sunk.status);
  EXPECT_NE(sunk.status.error().message.find("writing"), std::string::npos) << sunk.status.error().message;
}

TEST(BlockSink, AFullDiskIsKnownBeforeTheFirstByte) {
  for (const int number : {ENOSPC, EDQUOT, EFBIG}) {
    // The second call after the file is there: it is opened for direct writes, then its space is
    // reserved.
    FaultyFileSystem full({.at_call = 3, .error_number = number});
    const Sunk sunk = sink_bytes(full, make_bytes(16 * kBlockBytes, 12), WriteWay::direct);
    ASSERT_EQ(full.broken(), "allocate");
    ASSERT_FALSE(sunk.status) << strerror(number);
    EXPECT_NE(sunk.status.error().message.find("reserving"), std::string::npos) << sunk.status.error().message;
    EXPECT_EQ(sunk.hashed, "");
  }
}

TEST(BlockSink, StorageThatCannotReserveIsWrittenAllTheSame) {
  FaultyFileSystem odd({.at_call = 3, .error_number = EOPNOTSUPP});
  const std::string data = make_bytes(16 * kBlockBytes, 13);
  const Sunk sunk = sink_bytes(odd, data, WriteWay::direct);
  ASSERT_TRUE(sunk.status);
  EXPECT_TRUE(sunk.bytes == data);
}

}  // namespace
}  // namespace rekindle
