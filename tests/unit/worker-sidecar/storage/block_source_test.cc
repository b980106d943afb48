#include "worker-sidecar/storage/block_source.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <deque>
#include <vector>

#include "common/base/format.h"
#include "tests/support/checkpoint_builder.h"
#include "tests/support/faulty_file_system.h"
#include "tests/support/temporary_folder.h"

namespace rekindle {
namespace {

constexpr std::size_t kSourceBlockBytes = 64u << 10;

// A queue that does each read when it is waited for, the newest first, and says of the first ones
// what the test wants.
class OddReadQueue final : public ReadQueue {
 public:
  OddReadQueue(FileSystem& file_system, std::deque<std::int64_t>& results, std::size_t& under_way_max)
      : file_system_(file_system), results_(results), under_way_max_(under_way_max) {}

  int begin(int descriptor, void* data, std::size_t bytes, std::uint64_t offset, std::uint64_t tag) override {
    under_way_.push_back({descriptor, data, bytes, offset, tag});
    under_way_max_ = std::max(under_way_max_, under_way_.size());
    return 0;
  }

  TransferEnd wait() override {
    const Read read = under_way_.back();
    under_way_.pop_back();
    std::size_t bytes = read.bytes;
    if (!results_.empty()) {
      const std::int64_t result = results_.front();
      results_.pop_front();
      if (result < 0) return {read.tag, result};
      bytes = static_cast<std::size_t>(result);
    }
    return {read.tag, bytes == 0 ? 0 : file_system_.pread(read.descriptor, read.data, bytes, read.offset)};
  }

 private:
  struct Read {
    int descriptor;
    void* data;
    std::size_t bytes;
    std::uint64_t offset;
    std::uint64_t tag;
  };
  FileSystem& file_system_;
  std::deque<std::int64_t>& results_;
  std::size_t& under_way_max_;
  std::vector<Read> under_way_;
};

class OddReads final : public FaultyFileSystem {
 public:
  explicit OddReads(std::deque<std::int64_t> results = {}, Breakage breakage = {})
      : FaultyFileSystem(breakage), results_(std::move(results)) {}
  std::unique_ptr<ReadQueue> make_read_queue(unsigned) override {
    return std::make_unique<OddReadQueue>(real_file_system(), results_, under_way_max_);
  }
  // Through the page cache, so that the test needs no storage that can do otherwise.
  int open(const std::string& path, int flags, mode_t mode) override {
    return FaultyFileSystem::open(path, flags & ~O_DIRECT, mode);
  }
  void will_read(int, std::uint64_t offset, std::uint64_t bytes) override {
    hinted_ = std::max(hinted_, offset + bytes);
  }

  std::size_t under_way_max() const { return under_way_max_; }  // reads under way at once
  std::uint64_t hinted() const { return hinted_; }

 private:
  std::deque<std::int64_t> results_;
  std::size_t under_way_max_ = 0;
  std::uint64_t hinted_ = 0;
};

struct Drawn {
  Status status;
  std::string bytes;
  ReadWay way = ReadWay::plain;
};

Drawn draw(FileSystem& file_system, const SourceFile& file, ReadWay way_max,
           std::function<std::optional<BlockSpan>()> take) {
  Drawn drawn;
  BlockSource source(file_system, {.block_bytes = kSourceBlockBytes, .way_max = way_max});
  source.start(file, std::move(take));
  while (true) {
    const Result<std::optional<BlockSource::Block>> block = source.next();
    if (!block) drawn.status = std::unexpected(block.error());
    if (!block || !*block) break;
    drawn.bytes.append((*block)->data);
  }
  drawn.way = source.way();
  return drawn;
}

Drawn draw_file(FileSystem& file_system, const std::string& data, ReadWay way_max, std::size_t bytes_expected = 0) {
  const TemporaryFolder folder;
  write_bytes(folder.at("f"), data);
  const Result<SourceFile> file = SourceFile::open(file_system, folder.at("f"), way_max);
  if (!file) return {.status = std::unexpected(file.error()), .bytes = {}};
  return draw(file_system, *file, way_max, every_block(std::max(bytes_expected, data.size()), kSourceBlockBytes));
}

TEST(BlockSource, EveryWayReadsTheSameBytes) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, kSourceBlockBytes - 1, kSourceBlockBytes,
                                  kSourceBlockBytes + 1, 16 * kSourceBlockBytes, 40 * kSourceBlockBytes + 4097}) {
    const std::string data = make_bytes(bytes, 7);
    for (const ReadWay way : {ReadWay::plain, ReadWay::direct, ReadWay::queued}) {
      SCOPED_TRACE(format("{} bytes, {}", bytes, to_string(way)));
      const Drawn drawn = draw_file(real_file_system(), data, way);
      ASSERT_TRUE(drawn.status) << drawn.status.error().message;
      EXPECT_TRUE(drawn.bytes == data);
      EXPECT_LE(drawn.way, way);
    }
  }
}

TEST(BlockSource, BlocksThatComeInAnyOrderAreGivenInTheirs) {
  OddReads odd;
  const std::string data = make_bytes(40 * kSourceBlockBytes + 5, 8);
  const Drawn drawn = draw_file(odd, data, ReadWay::queued);
  ASSERT_TRUE(drawn.status);
  EXPECT_EQ(drawn.way, ReadWay::queued);
  EXPECT_EQ(odd.under_way_max(), BlockSourceOptions::kBlocksMax);
  EXPECT_TRUE(drawn.bytes == data);
}

TEST(BlockSource, OnlyTheSpansThatAreTakenAreRead) {
  OddReads odd;
  const TemporaryFolder folder;
  const std::string data = make_bytes(40 * kSourceBlockBytes, 9);
  write_bytes(folder.at("f"), data);
  const Result<SourceFile> file = SourceFile::open(odd, folder.at("f"), ReadWay::queued);
  ASSERT_TRUE(file.has_value());
  std::deque<BlockSpan> spans{{3 * kSourceBlockBytes, kSourceBlockBytes},
                              {7 * kSourceBlockBytes, 10},
                              {39 * kSourceBlockBytes, kSourceBlockBytes}};
  const Drawn drawn = draw(odd, *file, ReadWay::queued, [&]() -> std::optional<BlockSpan> {
    if (spans.empty()) return std::nullopt;
    const BlockSpan span = spans.front();
    spans.pop_front();
    return span;
  });
  ASSERT_TRUE(drawn.status);
  EXPECT_TRUE(drawn.bytes == data.substr(3 * kSourceBlockBytes, kSourceBlockBytes) +
                                 data.substr(7 * kSourceBlockBytes, 10) + data.substr(39 * kSourceBlockBytes));
}

TEST(BlockSource, WhatIsReadByHalfOrNotAtAllIsCarriedOn) {
  OddReads odd({4096, 0, -EINTR, -EAGAIN, 12288});
  const std::string data = make_bytes(40 * kSourceBlockBytes + 5, 10);
  const Drawn drawn = draw_file(odd, data, ReadWay::queued);
  ASSERT_TRUE(drawn.status) << drawn.status.error().message;
  EXPECT_TRUE(drawn.bytes == data);
}

TEST(BlockSource, StorageThatDoesNoDirectReadsAfterAllGivesThemThroughTheCache) {
  OddReads odd({-EINVAL});
  const std::string data = make_bytes(40 * kSourceBlockBytes, 11);
  const Drawn drawn = draw_file(odd, data, ReadWay::queued);
  ASSERT_TRUE(drawn.status) << drawn.status.error().message;
  EXPECT_EQ(drawn.way, ReadWay::plain);
  EXPECT_TRUE(drawn.bytes == data);
}

TEST(BlockSource, AReadThatFailsNamesTheFileAndEndsIt) {
  OddReads odd({static_cast<std::int64_t>(kSourceBlockBytes), -EIO});
  const Drawn drawn = draw_file(odd, make_bytes(40 * kSourceBlockBytes, 12), ReadWay::queued);
  ASSERT_FALSE(drawn.status);
  EXPECT_EQ(drawn.status.error().code, ErrorCode::io);
  EXPECT_NE(drawn.status.error().message.find("reading /"), std::string::npos) << drawn.status.error().message;
}

TEST(BlockSource, AFileThatShrinksMeanwhileIsAClearError) {
  for (const ReadWay way : {ReadWay::plain, ReadWay::direct, ReadWay::queued}) {
    SCOPED_TRACE(to_string(way));
    const TemporaryFolder folder;
    const std::string data = make_bytes(40 * kSourceBlockBytes, 13);
    write_bytes(folder.at("f"), data);
    const Result<SourceFile> file = SourceFile::open(real_file_system(), folder.at("f"), way);
    ASSERT_TRUE(file.has_value());
    write_bytes(folder.at("f"), data.substr(0, 20 * kSourceBlockBytes + 100));
    const Drawn drawn = draw(real_file_system(), *file, way, every_block(data.size(), kSourceBlockBytes));
    ASSERT_FALSE(drawn.status);
    EXPECT_EQ(drawn.status.error().code, ErrorCode::corrupt);
    EXPECT_NE(drawn.status.error().message.find("ends at byte 1310820"), std::string::npos)
        << drawn.status.error().message;
  }
}

TEST(BlockSource, ThePageCacheIsToldWhatComesNext) {
  OddReads odd;
  const TemporaryFolder folder;
  const std::string data = make_bytes(40 * kSourceBlockBytes, 14);
  write_bytes(folder.at("f"), data);
  const Result<SourceFile> file = SourceFile::open(odd, folder.at("f"), ReadWay::plain);
  ASSERT_TRUE(file.has_value());
  BlockSource source(odd, {.block_bytes = kSourceBlockBytes, .way_max = ReadWay::plain});
  source.start(*file, every_block(data.size(), kSourceBlockBytes));
  ASSERT_TRUE(source.next().has_value());
  EXPECT_EQ(odd.hinted(), BlockSourceOptions::kBlocksMax * kSourceBlockBytes);
}

TEST(BlockSource, AnAbandonedReadLeavesNothingUnderWay) {
  const TemporaryFolder folder;
  const std::string data = make_bytes(40 * kSourceBlockBytes, 15);
  write_bytes(folder.at("f"), data);
  const Result<SourceFile> file = SourceFile::open(real_file_system(), folder.at("f"), ReadWay::queued);
  ASSERT_TRUE(file.has_value());
  BlockSource source(real_file_system(), {.block_bytes = kSourceBlockBytes});
  source.start(*file, every_block(data.size(), kSourceBlockBytes));
  const Result<std::optional<BlockSource::Block>> block = source.next();
  ASSERT_TRUE(block.has_value() && *block);
  EXPECT_TRUE((*block)->data == std::string_view(data).substr(0, kSourceBlockBytes));
}

TEST(SourceFile, WhatIsNoPlainFileIsRefused) {
  const TemporaryFolder folder;
  const Result<SourceFile> file = SourceFile::open(real_file_system(), folder.path(), ReadWay::queued);
  ASSERT_FALSE(file);
  EXPECT_NE(file.error().message.find("is not a plain file"), std::string::npos) << file.error().message;
}

}  // namespace
}  // namespace rekindle
