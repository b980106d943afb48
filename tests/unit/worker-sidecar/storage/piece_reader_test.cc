#include "worker-sidecar/storage/piece_reader.h"

#include <gtest/gtest.h>

#include "tests/support/checkpoint_builder.h"
#include "tests/support/faulty_file_system.h"
#include "tests/support/temporary_folder.h"

namespace rekindle {
namespace {

class ReadPlan : public testing::Test {
 protected:
  ReadPlan() : folder_(open_job_folder(real_file_system(), {.root = root_.path(), .job = make_job(), .nonce = "n0"})->path) {
    const Result<std::string> saved = save_checkpoint(real_file_system(), folder_, make_job(), {1, 184, "x"}, memory_);
    EXPECT_TRUE(saved.has_value()) << saved.error().message;
  }
  Result<RankMemory> load(FileSystem& file_system = real_file_system()) {
    return load_checkpoint(file_system, folder_, "a1-s184-x", memory_.layout, memory_.states);
  }
  std::string path_of(const std::string& file) const { return folder_ + "/a1-s184-x/" + file; }

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
  for (const char* file : {"rank-0.safetensors", "rank-1.safetensors", "state-0.safetensors", "manifest.json"}) {
    const std::string bytes = read_bytes(path_of(file));
    for (std::size_t i = 0; i < bytes.size(); ++i) {
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
  for (const char* file : {"rank-0.safetensors", "rank-1.safetensors", "state-0.safetensors", "manifest.json"}) {
    const std::string bytes = read_bytes(path_of(file));
    for (std::size_t i = 0; i < bytes.size(); ++i) {
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

TEST_F(ReadPlan, RangesAcrossManyChunksArriveWhole) {
  const RankMemory large = make_memory(3, {{whole_tensor("a", Dtype::u8, {3'000'001}), whole_tensor("b", Dtype::f32, {1'500, 1'000}), whole_tensor("c", Dtype::u8, {9})}});
  ASSERT_TRUE(save_checkpoint(real_file_system(), folder_, make_job(), {1, 185, "x"}, large, {}, 3));
  const Result<RankMemory> loaded = load_checkpoint(real_file_system(), folder_, "a1-s185-x", large.layout, large.states, 2, 3);
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  EXPECT_TRUE(*loaded == large);
}

}  // namespace
}  // namespace rekindle
