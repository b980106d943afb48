#include "worker-sidecar/storage/file_writer.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "common/base/format.h"
#include "tests/support/checkpoint_builder.h"
#include "tests/support/faulty_file_system.h"
#include "tests/support/manual_waiter.h"
#include "tests/support/temporary_folder.h"
#include "worker-sidecar/checkpoint/hash.h"
#include "worker-sidecar/storage/files.h"

namespace rekindle {
namespace {

const std::uint32_t kNumbers[] = {1, 2};
const char kFlags[] = {7, 8, 9};

std::vector<MemoryPiece> make_pieces() {
  return {{{"flags", Dtype::u8, {3}}, kFlags}, {{"w[2:4]", Dtype::u32, {2}}, kNumbers}};
}

TEST(WriteDataFile, GoldenBytes) {
  const TemporaryFolder folder;
  const Result<WrittenDataFile> written =
      write_data_file(real_file_system(), folder.path(), "rank-0.safetensors", make_pieces());
  ASSERT_TRUE(written.has_value()) << written.error().message;
  const std::string bytes = read_bytes(folder.at("rank-0.safetensors"));
  const std::string json =
      R"({"flags":{"data_offsets":[8,11],"dtype":"U8","shape":[3]},"w[2:4]":{"data_offsets":[0,8],"dtype":"U32","shape":[2]}})";
  std::string expected = std::string(1, static_cast<char>((json.size() + 7) / 8 * 8)) + std::string(7, '\0') + json;
  expected.resize((expected.size() + 7) / 8 * 8, ' ');
  expected += std::string("\1\0\0\0\2\0\0\0\7\10\11", 11);
  EXPECT_EQ(bytes, expected);
  EXPECT_EQ(written->bytes, bytes.size());
  EXPECT_EQ(written->hash, hash_of(bytes));
  EXPECT_EQ(written->chunks, (std::vector<std::string>{chunk_hash_of(bytes)}));
  // The answer is in the order of what was given.
  EXPECT_EQ(written->entries[0].key, "flags");
  EXPECT_EQ(bytes.substr(written->entries[0].begin_byte, 3), std::string(kFlags, 3));
  EXPECT_EQ(info_of(real_file_system(), folder.at("rank-0.safetensors"))->mode, 0660u);
}

TEST(WriteDataFile, ChunksHaveHashesOfTheirOwn) {
  const TemporaryFolder folder;
  const std::string data = make_bytes(2 * kHashChunkBytes + 5, 1);
  const std::vector<MemoryPiece> pieces{{{"w", Dtype::u8, {data.size()}}, data.data()}};
  const Result<WrittenDataFile> written =
      write_data_file(real_file_system(), folder.path(), "f", pieces, {.block_bytes = 1'000'003});
  ASSERT_TRUE(written.has_value());
  const std::string bytes = read_bytes(folder.at("f"));
  ASSERT_EQ(written->chunks.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_EQ(written->chunks[i], chunk_hash_of(std::string_view(bytes).substr(i * kHashChunkBytes, kHashChunkBytes)));
  EXPECT_EQ(written->hash, hash_of(bytes));
}

TEST(WriteDataFile, AnExistingFileIsNeverOverwritten) {
  const TemporaryFolder folder;
  write_bytes(folder.at("f"), "precious");
  const Result<WrittenDataFile> written = write_data_file(real_file_system(), folder.path(), "f", make_pieces());
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, ErrorCode::already_exists);
  EXPECT_EQ(read_bytes(folder.at("f")), "precious");
}

TEST(WriteDataFile, APinThatIsLostStopsItAtEveryChunkAndLeavesNothing) {
  for (int lost_at = 1;; ++lost_at) {
    const TemporaryFolder folder;
    int asked = 0;
    const WriteOptions options{.block_bytes = 4, .may_go_on = [&]() -> Status {
                                 return ++asked == lost_at ? Status(fail(ErrorCode::conflict, "the rank was released"))
                                                           : Status();
                               }};
    const Result<WrittenDataFile> written =
        write_data_file(real_file_system(), folder.path(), "f", make_pieces(), options);
    if (asked < lost_at) {
      EXPECT_TRUE(written.has_value());
      EXPECT_GT(lost_at, 5);
      break;
    }
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().message, "the rank was released");
    EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  }
}

TEST(WriteDataFile, InterruptedAndShortWritesAreCarriedOn) {
  std::string expected;
  for (std::size_t k = 0;; ++k) {
    const TemporaryFolder folder;
    FaultyFileSystem odd({.at_call = k, .error_number = EINTR, .short_write = true});
    const Result<WrittenDataFile> written = write_data_file(odd, folder.path(), "f", make_pieces(), {.block_bytes = 5});
    if (k == 0) expected = read_bytes(folder.at("f"));
    if (k > 0 && odd.broken().empty()) break;
    if (odd.broken() == "write" || k == 0) {
      ASSERT_TRUE(written.has_value()) << k << written.error().message;
      EXPECT_EQ(read_bytes(folder.at("f")), expected);
      EXPECT_EQ(written->hash, hash_of(expected));
    }
  }
}

TEST(WriteDataFile, EveryFailingCallIsReportedAndTheSpaceGivenBack) {
  for (std::size_t k = 1;; ++k) {
    const TemporaryFolder folder;
    FaultyFileSystem broken({.at_call = k, .error_number = k % 2 == 0 ? ENOSPC : EIO});
    const Result<WrittenDataFile> written =
        write_data_file(broken, folder.path(), "f", make_pieces(), {.block_bytes = 5});
    if (broken.broken().empty()) {
      EXPECT_GT(k, 10u);
      break;
    }
    // A mode that cannot be set, and a read-only descriptor of a folder that cannot be closed at
    // the very end, harm nobody.
    const bool harmless = broken.broken() == "fchmod" || (broken.broken() == "close" && broken.calls() == k);
    ASSERT_EQ(written.has_value(), harmless) << "call " << k << " " << broken.broken();
    if (harmless) continue;
    EXPECT_NE(written.error().message.find(folder.path()), std::string::npos) << written.error().message;
    EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << "call " << k << " " << broken.broken();
  }
}

TEST(WriteDataFile, AFailedSyncOrCloseIsNeverTakenForSuccess) {
  for (const std::string call : {"fsync", "close"}) {
    bool seen = false;
    for (std::size_t k = 1; k < 100 && !seen; ++k) {
      const TemporaryFolder folder;
      FaultyFileSystem broken({.at_call = k});
      const Result<WrittenDataFile> written = write_data_file(broken, folder.path(), "f", make_pieces());
      if (broken.broken() != call) continue;
      seen = true;
      EXPECT_FALSE(written.has_value()) << call;
    }
    EXPECT_TRUE(seen) << call;
  }
}

struct WriteFault {
  int error_number;
  std::string_view advice;  // part of what the message tells a person to do
  ErrorCode code;
};
constexpr WriteFault kWriteFaults[] = {{ENOSPC, "The storage is full: free space", ErrorCode::exhausted},
                                       {EDQUOT, "The quota is used up: raise it", ErrorCode::exhausted},
                                       {EIO, "look at the node's kernel log", ErrorCode::io},
                                       {EROFS, "mounted read-only", ErrorCode::refused},
                                       {ESTALE, "mount it again", ErrorCode::io}};

TEST(WriteDataFile, WhateverFailsWhereverItFailsSaysWhatToDoAndGivesTheSpaceBack) {
  const std::string data = make_bytes((1u << 20) + 4097, 3);
  const std::vector<MemoryPiece> pieces{{{"w", Dtype::u8, {data.size()}}, data.data()}};
  for (const WriteWay way : {WriteWay::plain, WriteWay::direct}) {
    for (const WriteFault& cause : kWriteFaults) {
      for (std::size_t k = 1;; ++k) {
        const TemporaryFolder folder;
        write_bytes(folder.at("before"), "precious");
        FaultyFileSystem broken({.at_call = k, .error_number = cause.error_number});
        const Result<WrittenDataFile> written =
            write_data_file(broken, folder.path(), "f", pieces, {.block_bytes = 512u << 10, .way_max = way});
        if (broken.broken().empty()) break;
        SCOPED_TRACE(format("{}: {} fails with errno {}", to_string(way), broken.broken(), cause.error_number));
        EXPECT_EQ(read_bytes(folder.at("before")), "precious");
        if (written) {
          // Nothing was lost: the file is whole.
          EXPECT_EQ(hash_of(read_bytes(folder.at("f"))), written->hash);
          continue;
        }
        EXPECT_EQ(written.error().code, cause.code) << written.error().message;
        EXPECT_NE(written.error().message.find(cause.advice), std::string::npos) << written.error().message;
        std::filesystem::remove(folder.at("before"));
        EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
      }
    }
  }
}

// Storage that takes a while for each write, and more and more of it.
class SlowFileSystem final : public FaultyFileSystem {
 public:
  explicit SlowFileSystem(ManualWaiter& waiter) : FaultyFileSystem({}), waiter_(waiter) {}
  ssize_t pwrite(int descriptor, const void* data, std::size_t bytes, std::uint64_t offset) override {
    waiter_.advance(std::chrono::seconds(20));
    return FaultyFileSystem::pwrite(descriptor, data, bytes, offset);
  }

 private:
  ManualWaiter& waiter_;
};

TEST(WriteDataFile, AStallEndsTheWriteAtTheNextBlockAndGivesTheSpaceBack) {
  const TemporaryFolder folder;
  ManualWaiter waiter;
  SlowFileSystem slow(waiter);
  const std::string data = make_bytes(1u << 20, 4);
  const std::vector<MemoryPiece> pieces{{{"w", Dtype::u8, {data.size()}}, data.data()}};
  const WriteOptions options{.block_bytes = 64u << 10, .way_max = WriteWay::plain, .may_go_on = [&]() -> Status {
                               if (waiter.now() < std::chrono::seconds(60)) return {};
                               return fail(ErrorCode::deadline_exceeded, "the save was given 60 s");
                             }};
  const Result<WrittenDataFile> written = write_data_file(slow, folder.path(), "f", pieces, options);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().message, "the save was given 60 s");
  EXPECT_EQ(waiter.now(), std::chrono::seconds(60)) << "it was asked after each block, not only at the end";
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(WriteDataFile, ACappedWriteTakesAsLongAsItsBytesAreWorth) {
  const TemporaryFolder folder;
  ManualWaiter waiter;
  const std::string data = make_bytes(1u << 20, 5);
  const std::vector<MemoryPiece> pieces{{{"w", Dtype::u8, {data.size()}}, data.data()}};
  const Result<WrittenDataFile> written =
      write_data_file(real_file_system(), folder.path(), "f", pieces,
                      {.block_bytes = 64u << 10, .bytes_per_second_max = 256u << 10, .waiter = &waiter});
  ASSERT_TRUE(written.has_value()) << written.error().message;
  EXPECT_NEAR(to_seconds(waiter.now()), static_cast<double>(written->bytes) / (256u << 10), 1e-6);
  EXPECT_EQ(hash_of(read_bytes(folder.at("f"))), written->hash);
}

TEST(WriteDataFile, SlowStorageIsNotSlowedDownFurtherByACap) {
  const TemporaryFolder folder;
  ManualWaiter waiter;
  SlowFileSystem slow(waiter);
  const std::string data = make_bytes(1u << 20, 6);
  const std::vector<MemoryPiece> pieces{{{"w", Dtype::u8, {data.size()}}, data.data()}};
  ASSERT_TRUE(write_data_file(
      slow, folder.path(), "f", pieces,
      {.block_bytes = 64u << 10, .way_max = WriteWay::plain, .bytes_per_second_max = 64u << 10, .waiter = &waiter}));
  EXPECT_EQ(waiter.now(), std::chrono::seconds(17 * 20 + 1))
      << "17 blocks of 20 s, and the second in which the first was earned";
}

TEST(WriteDataFile, WhoeverMayStopACappedWriteIsAskedAllThroughItsPauses) {
  const TemporaryFolder folder;
  ManualWaiter waiter;
  const WriteOptions options{.may_go_on = [&]() -> Status {
                               if (waiter.now() < std::chrono::seconds(3)) return {};
                               return fail(ErrorCode::conflict, "the rank was released");
                             },
                             .bytes_per_second_max = 1,
                             .waiter = &waiter};
  const Result<WrittenDataFile> written =
      write_data_file(real_file_system(), folder.path(), "f", make_pieces(), options);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().message, "the rank was released");
  EXPECT_EQ(waiter.now(), std::chrono::seconds(3)) << "minutes before all of it would have been earned";
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(DataFileWriter, MissingBytesAreNoticed) {
  const TemporaryFolder folder;
  {
    Result<DataFileWriter> writer =
        DataFileWriter::create(real_file_system(), folder.path(), "f", {{"w", Dtype::u8, {4}}});
    ASSERT_TRUE(writer.has_value());
    ASSERT_TRUE(writer->append("abc", 3));
    EXPECT_FALSE(writer->finish());
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace rekindle
