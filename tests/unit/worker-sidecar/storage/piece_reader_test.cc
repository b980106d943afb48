#include "worker-sidecar/storage/piece_reader.h"

#include <gtest/gtest.h>

#include <fstream>
#include <mutex>
#include <set>
#include <thread>

#include "common/base/format.h"
#include "tests/support/checkpoint_builder.h"
#include "tests/support/faulty_file_system.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/thoroughness.h"

namespace rekindle {
namespace {

class ReadPlan : public testing::Test {
 protected:
  ReadPlan()
      : folder_(open_job_folder(real_file_system(), {.root = root_.path(), .job = make_job(), .nonce = "n0"})->path) {
    const Result<std::string> saved = save_checkpoint(real_file_system(), folder_, make_job(), {1, 184, "x"}, memory_);
    EXPECT_TRUE(saved.has_value()) << saved.error().message;
  }
  Result<RankMemory> load(FileSystem& file_system = real_file_system()) {
    return load_checkpoint(file_system, folder_, "a1-s184-x", memory_.layout, memory_.states);
  }
  std::string path_of(const std::string& file) const { return format("{}/a1-s184-x/{}", folder_, file); }

  TemporaryFolder root_;
  const std::string folder_;
  const RankMemory memory_ = make_memory(7, small_layout());
};

TEST_F(ReadPlan, GivesBackEveryByte) {
  const Result<RankMemory> loaded = load();
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  EXPECT_EQ(*loaded, memory_);
}

TEST_F(ReadPlan, EveryFlippedByteOfEveryFileIsRefused) {
  Sample which(10);
  for (const char* file : {"rank-0.safetensors", "rank-1.safetensors", "state-0.safetensors", "manifest.json"}) {
    const std::string bytes = read_bytes(path_of(file));
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      if (!which.takes()) continue;
      std::string damaged = bytes;
      damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
      write_bytes(path_of(file), damaged);
      ASSERT_FALSE(load()) << file << " byte " << i;
    }
    write_bytes(path_of(file), bytes);
  }
  EXPECT_TRUE(load());
}

TEST_F(ReadPlan, EveryTruncationOfEveryFileIsRefused) {
  Sample which(10);
  for (const char* file : {"rank-0.safetensors", "rank-1.safetensors", "state-0.safetensors", "manifest.json"}) {
    const std::string bytes = read_bytes(path_of(file));
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      if (!which.takes()) continue;
      write_bytes(path_of(file), bytes.substr(0, i));
      ASSERT_FALSE(load()) << file << " cut to " << i;
    }
    write_bytes(path_of(file), bytes + "x");
    ASSERT_FALSE(load()) << file << " grew";
    write_bytes(path_of(file), bytes);
  }
}

TEST_F(ReadPlan, SwappedFilesAreRefused) {
  const std::string first = read_bytes(path_of("rank-0.safetensors"));
  write_bytes(path_of("rank-0.safetensors"), read_bytes(path_of("rank-1.safetensors")));
  write_bytes(path_of("rank-1.safetensors"), first);
  EXPECT_FALSE(load());
}

TEST_F(ReadPlan, ShortReadsAndInterruptionsAreCarriedOn) {
  for (std::size_t k = 1;; ++k) {
    for (const bool short_read : {true, false}) {
      FaultyFileSystem odd({.at_call = k, .error_number = EINTR, .short_write = short_read});
      const Result<RankMemory> loaded = load(odd);
      if (odd.broken().empty()) return;
      if (odd.broken() == "pread") {
        ASSERT_TRUE(loaded.has_value()) << k << " " << loaded.error().message;
        EXPECT_EQ(*loaded, memory_);
      }
    }
  }
}

TEST_F(ReadPlan, AReadErrorIsReportedWithItsFile) {
  for (std::size_t k = 1;; ++k) {
    FaultyFileSystem broken({.at_call = k});
    const Result<RankMemory> loaded = load(broken);
    if (broken.broken().empty()) break;
    if (broken.broken() == "close") continue;
    ASSERT_FALSE(loaded) << k << " " << broken.broken();
    EXPECT_NE(loaded.error().message.find(folder_), std::string::npos) << loaded.error().message;
  }
}

TEST_F(ReadPlan, AFileThatIsGoneIsRefused) {
  real_file_system().unlink(path_of("rank-1.safetensors"));
  EXPECT_EQ(load().error().code, ErrorCode::not_found);
}

// How many bytes of files whose names hold a text were read, in how many calls, and from how many
// threads.
class CountingFileSystem final : public FaultyFileSystem {
 public:
  explicit CountingFileSystem(std::string name) : FaultyFileSystem({}), name_(std::move(name)) {}
  int open(const std::string& path, int flags, mode_t mode) override {
    const int descriptor = real_file_system().open(path, flags, mode);
    const std::lock_guard held(mutex_);
    if (path.find(name_) != std::string::npos) counted_.insert(descriptor);
    return descriptor;
  }
  int close(int descriptor) override {
    const std::lock_guard held(mutex_);
    counted_.erase(descriptor);
    return real_file_system().close(descriptor);
  }
  ssize_t pread(int descriptor, void* data, std::size_t bytes, std::uint64_t offset) override {
    const ssize_t read = real_file_system().pread(descriptor, data, bytes, offset);
    const std::lock_guard held(mutex_);
    threads_.insert(std::this_thread::get_id());
    if (counted_.contains(descriptor) && read > 0) {
      bytes_ += static_cast<std::uint64_t>(read);
      ++calls_;
    }
    return read;
  }
  int fstat(int descriptor, FileInfo& info) override { return real_file_system().fstat(descriptor, info); }

  std::uint64_t bytes() const { return bytes_; }
  std::size_t calls() const { return calls_; }
  std::size_t threads() const { return threads_.size(); }

 private:
  const std::string name_;
  std::mutex mutex_;
  std::set<int> counted_;
  std::set<std::thread::id> threads_;
  std::uint64_t bytes_ = 0;
  std::size_t calls_ = 0;
};

// A checkpoint of one rank: a tensor of 32 MiB in chunks of 4 MiB, cut by rows of 1 MiB.
class ReadPartOfPlan : public testing::Test {
 protected:
  static constexpr std::uint64_t kRowBytes = 1u << 20;
  static constexpr std::uint64_t kRows = 32;

  ReadPartOfPlan()
      : folder_(open_job_folder(real_file_system(), {.root = root_.path(), .job = make_job(), .nonce = "n0"})->path) {
    const Result<std::string> saved =
        save_checkpoint(real_file_system(), folder_, make_job(), {1, 184, "x"}, memory_, {}, 1);
    EXPECT_TRUE(saved.has_value()) << saved.error().message;
  }

  // Rows [begin, end) of the tensor, by a rank of another world.
  struct Loaded {
    Status status;
    std::string rows;
    ReadReport report;
  };
  Loaded load(FileSystem& file_system, std::uint64_t begin, std::uint64_t end, ReadOptions options = {},
              const std::function<Status()>& may_go_on = {}) {
    SealedManifest sealed = *read_manifest(real_file_system(), folder_, "a1-s184-x");
    if (without_chunks_) {
      for (ManifestFile& file : sealed.manifest.files) file.chunks.clear();
    }
    const TensorDescription part{.name = "w",
                                 .dtype = Dtype::u8,
                                 .shape = {end - begin, kRowBytes},
                                 .global_shape = {kRows, kRowBytes},
                                 .offset = {begin, 0}};
    const Result<RestorePlan> plan = plan_restore(sealed.manifest, {0, 2, {{part}}, {}});
    EXPECT_TRUE(plan.has_value()) << plan.error().message;
    Loaded loaded;
    loaded.rows.resize((end - begin) * kRowBytes);
    const Destination destination{loaded.rows.data(), loaded.rows.size()};
    options.report = &loaded.report;
    loaded.status = read_plan(file_system, folder_ + "/a1-s184-x", sealed.manifest, *plan, {{&destination, 1}, {}},
                              may_go_on, options);
    return loaded;
  }
  std::string rows(std::uint64_t begin, std::uint64_t end) const {
    return memory_.tensor_bytes_held[0].substr(begin * kRowBytes, (end - begin) * kRowBytes);
  }
  void flip_byte(std::uint64_t offset) {
    std::fstream file(folder_ + "/a1-s184-x/rank-0.safetensors", std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(offset));
    const int byte = file.get();
    file.seekp(static_cast<std::streamoff>(offset));
    file.put(static_cast<char>(byte ^ 1));
  }

  TemporaryFolder root_;
  const std::string folder_;
  const RankMemory memory_ = make_memory(7, {{whole_tensor("w", Dtype::u8, {kRows, kRowBytes})}}, {});
  bool without_chunks_ = false;
};

TEST_F(ReadPartOfPlan, OnlyTheChunksWithSomethingNeededAreRead) {
  CountingFileSystem counting("rank-0");
  const Loaded loaded = load(counting, 14, 18, {.way_max = ReadWay::plain});
  ASSERT_TRUE(loaded.status) << loaded.status.error().message;
  EXPECT_TRUE(loaded.rows == rows(14, 18));
  // Four rows lie in two chunks, behind a header of less than a chunk; one chunk is the header's,
  // which is read once more to be compared.
  EXPECT_EQ(loaded.report.bytes, 3 * kHashChunkBytes);
  EXPECT_GE(counting.bytes(), 3 * kHashChunkBytes);
  EXPECT_LT(counting.bytes(), 3 * kHashChunkBytes + 4096);
}

TEST_F(ReadPartOfPlan, AFlippedByteInANeededChunkIsFoundAndOneElsewhereIsNotLookedAt) {
  const auto flip = [&](std::uint64_t row) { flip_byte(row * kRowBytes + kRowBytes / 2); };
  flip(26);
  EXPECT_TRUE(load(real_file_system(), 14, 18).status) << "row 26 is not needed";
  flip(19);
  const Loaded loaded = load(real_file_system(), 14, 18);
  ASSERT_FALSE(loaded.status) << "row 19 shares a chunk with row 17: nothing of it is taken on trust";
  EXPECT_EQ(loaded.status.error().code, ErrorCode::corrupt);
  EXPECT_NE(loaded.status.error().message.find("rank-0.safetensors"), std::string::npos)
      << loaded.status.error().message;
  EXPECT_NE(loaded.status.error().message.find("in bytes 16777216 to 20971520"), std::string::npos)
      << loaded.status.error().message;
}

TEST_F(ReadPartOfPlan, ADamagedHeaderIsFoundThoughNoDataOfItsChunkIsNeeded) {
  flip_byte(20);
  EXPECT_FALSE(load(real_file_system(), 14, 18).status);
}

TEST_F(ReadPartOfPlan, WithoutHashesOfChunksTheWholeFileIsReadAndVerified) {
  without_chunks_ = true;
  CountingFileSystem counting("rank-0");
  const Loaded loaded = load(counting, 14, 18, {.way_max = ReadWay::plain});
  ASSERT_TRUE(loaded.status) << loaded.status.error().message;
  EXPECT_TRUE(loaded.rows == rows(14, 18));
  EXPECT_GT(counting.bytes(), kRows * kRowBytes);
  flip_byte(30 * kRowBytes);
  EXPECT_FALSE(load(real_file_system(), 14, 18).status);
}

TEST_F(ReadPartOfPlan, SeveralThreadsReadTheSameBytesAsOne) {
  for (const ReadWay way : {ReadWay::plain, ReadWay::direct, ReadWay::queued}) {
    for (const unsigned threads : {1u, 4u}) {
      SCOPED_TRACE(format("{}, {}", to_string(way), threads));
      const Loaded loaded = load(real_file_system(), 0, kRows, {.way_max = way, .threads_max = threads});
      ASSERT_TRUE(loaded.status) << loaded.status.error().message;
      EXPECT_TRUE(loaded.rows == rows(0, kRows));
    }
  }
}

TEST_F(ReadPartOfPlan, DamageThatAnotherThreadFindsFailsTheCall) {
  for (const std::uint64_t row : {std::uint64_t{1}, std::uint64_t{15}, std::uint64_t{31}}) {
    flip_byte(row * kRowBytes);
    const Loaded loaded = load(real_file_system(), 0, kRows, {.threads_max = 4});
    ASSERT_FALSE(loaded.status) << row;
    EXPECT_EQ(loaded.status.error().code, ErrorCode::corrupt);
    flip_byte(row * kRowBytes);
  }
}

TEST_F(ReadPartOfPlan, RanksThatShareANodeReadThroughThePageCacheAndOnTheirOwnThread) {
  CountingFileSystem counting("rank-0");
  const Loaded loaded = load(counting, 0, kRows, {.ranks_here = 8});
  ASSERT_TRUE(loaded.status) << loaded.status.error().message;
  EXPECT_EQ(loaded.report.way, ReadWay::plain);
  EXPECT_EQ(counting.threads(), 1u);
}

TEST_F(ReadPartOfPlan, ItStopsWhenItMayNotGoOn) {
  int asked = 0;
  const Loaded loaded = load(real_file_system(), 0, kRows, {.threads_max = 1}, [&]() -> Status {
    return ++asked == 3 ? Status(fail(ErrorCode::conflict, "the offer was taken back")) : Status();
  });
  ASSERT_FALSE(loaded.status);
  EXPECT_EQ(loaded.status.error().message, "the offer was taken back");
  EXPECT_EQ(asked, 3);
}

// A matrix of four rows of 8 MiB: half of each row is one or two chunks of its own.
class ReadColumnsOfPlan : public testing::Test {
 protected:
  static constexpr std::uint64_t kRowBytes = 8u << 20;
  static constexpr std::uint64_t kRows = 4;

  ReadColumnsOfPlan()
      : job_folder_(
            open_job_folder(real_file_system(), {.root = root_.path(), .job = make_job(), .nonce = "n0"})->path) {
    EXPECT_TRUE(save_checkpoint(real_file_system(), job_folder_, make_job(), {1, 184, "x"}, memory_, {}, 1));
    manifest_ = read_manifest(real_file_system(), job_folder_, "a1-s184-x")->manifest;
  }

  Result<RestorePlan> plan(std::uint64_t begin, std::uint64_t end) const {
    const TensorDescription part{.name = "w",
                                 .dtype = Dtype::u8,
                                 .shape = {kRows, end - begin},
                                 .global_shape = {kRows, kRowBytes},
                                 .offset = {0, begin}};
    return plan_restore(manifest_, {0, 2, {{part}}, {}});
  }
  std::string columns(std::uint64_t begin, std::uint64_t end) const {
    std::string bytes;
    for (std::uint64_t row = 0; row < kRows; ++row)
      bytes += memory_.tensor_bytes_held[0].substr(row * kRowBytes + begin, end - begin);
    return bytes;
  }

  TemporaryFolder root_;
  const std::string job_folder_;
  const std::string folder_ = job_folder_ + "/a1-s184-x";
  const RankMemory memory_ = make_memory(7, {{whole_tensor("w", Dtype::u8, {kRows, kRowBytes})}}, {});
  Manifest manifest_;
};

TEST_F(ReadColumnsOfPlan, ChunksBetweenTheRowsOfAColumnAreNotRead) {
  std::string bytes(kRows * 1000, '\xee');
  const Destination destination{bytes.data(), bytes.size()};
  ReadReport report;
  ASSERT_TRUE(read_plan(real_file_system(), folder_, manifest_, *plan(6'000'000, 6'001'000), {{&destination, 1}, {}},
                        {}, {.report = &report}));
  EXPECT_TRUE(bytes == columns(6'000'000, 6'001'000));
  EXPECT_EQ(report.bytes, (kRows + 1) * kHashChunkBytes) << "a chunk for each row and the header's";
}

TEST_F(ReadColumnsOfPlan, WithoutHashesLargeGapsAreLeftOut) {
  CountingFileSystem counting("rank-0");
  std::string bytes(kRows * 1000, '\xee');
  const Destination destination{bytes.data(), bytes.size()};
  ASSERT_TRUE(read_plan_unverified(counting, folder_, *plan(6'000'000, 6'001'000), {{&destination, 1}, {}}));
  EXPECT_TRUE(bytes == columns(6'000'000, 6'001'000));
  EXPECT_EQ(counting.bytes(), kRows * 1000);
}

TEST_F(ReadPlan, WithoutHashesRowsWithSmallGapsAreReadTogether) {
  constexpr std::uint64_t kRows = 100'000;
  const RankMemory narrow = make_memory(3, {{whole_tensor("a", Dtype::u16, {kRows, 64})}});
  ASSERT_TRUE(save_checkpoint(real_file_system(), folder_, make_job(), {1, 185, "x"}, narrow, {}, 1));
  const TensorDescription half{
      .name = "a", .dtype = Dtype::u16, .shape = {kRows, 32}, .global_shape = {kRows, 64}, .offset = {0, 32}};
  const Result<RestorePlan> plan =
      plan_restore(read_manifest(real_file_system(), folder_, "a1-s185-x")->manifest, {0, 2, {{half}}, {}});
  ASSERT_TRUE(plan);
  CountingFileSystem counting("rank-0");
  std::string bytes(kRows * 64, '\xee');
  const Destination destination{bytes.data(), bytes.size()};
  ASSERT_TRUE(read_plan_unverified(counting, folder_ + "/a1-s185-x", *plan, {{&destination, 1}, {}}));
  EXPECT_LE(counting.calls(), 4u) << "12.8 MB in blocks of 4 MiB";
  std::string expected;
  for (std::uint64_t row = 0; row < kRows; ++row) expected += narrow.tensor_bytes_held[0].substr(row * 128 + 64, 64);
  EXPECT_TRUE(bytes == expected);
}

TEST_F(ReadPlan, RangesAcrossManyChunksArriveWhole) {
  const RankMemory large =
      make_memory(3, {{whole_tensor("a", Dtype::u8, {3'000'001}), whole_tensor("b", Dtype::f32, {1'500, 1'000}),
                       whole_tensor("c", Dtype::u8, {9})}});
  ASSERT_TRUE(save_checkpoint(real_file_system(), folder_, make_job(), {1, 185, "x"}, large, {}, 3));
  const Result<RankMemory> loaded =
      load_checkpoint(real_file_system(), folder_, "a1-s185-x", large.layout, large.states, 2, 3);
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  EXPECT_TRUE(*loaded == large);
}

}  // namespace
}  // namespace rekindle
