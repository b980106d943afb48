#include "worker-sidecar/sidecar/shadow_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>

#include <cstring>
#include <filesystem>
#include <numeric>

#include "tests/support/temporary_folder.h"
#include "worker-sidecar/checkpoint/names.h"
#include "worker-sidecar/storage/files.h"

namespace rekindle::sidecar {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::uint64_t kAttempt = 4;
constexpr std::uint64_t kStateBytes = 4096;
const Layout kLayout{{whole_tensor("weights", Dtype::i32, {6, 2}), whole_tensor("scale", Dtype::f64, {})}};

// A shadow with two alternating slots and one for snapshots, of rows 2 to 6 of "weights" and of
// "scale"; the test plays the rank.
class ShadowFileTest : public ::testing::Test {
 protected:
  ShadowFileTest() {
    shadow = std::make_unique<ShadowFile>(make());
    EXPECT_EQ(::ftruncate(shadow->descriptor(), static_cast<off_t>(shadow->plan().file_bytes())), 0);
    std::filesystem::create_directory(job_folder + "/a4-s9-abc");
  }
  ShadowFile make(std::uint64_t incarnation = 7) {
    Result<ShadowPlan> plan = plan_shadow({.rank = 1,
                                           .incarnation = incarnation,
                                           .serial = 1,
                                           .snapshots = true,
                                           .shadow_every_steps = 1,
                                           .state_bytes = kStateBytes},
                                          kLayout, {{"weights", 2, 6}, {"scale", 0, 1}});
    return std::move(*ShadowFile::create(folder.path(), *std::move(plan)));
  }
  void put(const void* data, std::size_t bytes, std::uint64_t offset) {
    ASSERT_EQ(::pwrite(shadow->descriptor(), data, bytes, static_cast<off_t>(offset)), static_cast<ssize_t>(bytes));
  }
  void stamp(std::uint32_t slot, std::uint64_t step, std::uint64_t attempt = kAttempt) {
    const std::uint64_t words[2] = {step, attempt};
    put(words, sizeof words, shadow->plan().offset_of_slot(slot));
  }
  void fill(std::uint32_t slot, std::uint64_t step) {
    const std::uint64_t begin = shadow->plan().offset_of_slot(slot);
    std::int32_t rows[8];
    std::iota(rows, rows + 8, static_cast<std::int32_t>(step * 100));
    put(rows, sizeof rows, begin + shadow->plan().pieces[0].offset);
    const auto scale = static_cast<double>(step);
    put(&scale, sizeof scale, begin + shadow->plan().pieces[1].offset);
    stamp(slot, step);
  }
  WriteMessage order(std::uint64_t step, std::uint64_t begin_row = 2, std::uint64_t end_row = 6) const {
    return {.term = 1,
            .step = step,
            .path = "a4-s9-abc",
            .file = "rank-1.safetensors",
            .pieces = {{"weights", begin_row, end_row}, {"scale", 0, 1}}};
  }
  Result<WrittenFile> write(const WriteMessage& wanted) {
    return write_from_shadow(real_file_system(), job_folder, wanted, kAttempt, kLayout, *shadow, {});
  }
  std::string file_bytes(const std::string& name) {
    return *read_whole_file(real_file_system(), job_folder + "/a4-s9-abc/" + name, 1 << 20);
  }

  TemporaryFolder folder;
  TemporaryFolder storage;
  std::string job_folder = storage.path();
  std::unique_ptr<ShadowFile> shadow;
};

TEST_F(ShadowFileTest, KnowsWhichStepsAreWhole) {
  fill(0, 8);
  fill(1, 9);
  fill(2, 5);
  EXPECT_THAT(shadow->whole_steps(kAttempt), ElementsAre(5, 8, 9));
  stamp(0, 0);  // the rank has begun to overwrite it
  EXPECT_THAT(shadow->whole_steps(kAttempt), ElementsAre(5, 9));
}

TEST_F(ShadowFileTest, CopiesOfAnEarlierAttemptDoNotCount) {
  fill(0, 8);
  stamp(0, 8, kAttempt - 1);
  EXPECT_TRUE(shadow->whole_steps(kAttempt).empty());
  EXPECT_FALSE(write(order(8)));
}

TEST_F(ShadowFileTest, WritesADataFileFromTheCopyOfOneStep) {
  fill(0, 8);
  fill(1, 9);
  const Result<WrittenFile> written = write(order(9));
  ASSERT_TRUE(written) << written.error().message;
  ASSERT_EQ(written->entries.size(), 2u);
  EXPECT_EQ(written->entries[0].tensor, "weights");
  EXPECT_EQ(written->entries[0].begin_row, 2u);
  const std::string bytes = file_bytes("rank-1.safetensors");
  std::int32_t rows[8];
  std::memcpy(rows, bytes.data() + written->entries[0].begin_byte, sizeof rows);
  EXPECT_THAT(rows, ElementsAre(900, 901, 902, 903, 904, 905, 906, 907));
  double scale = 0;
  std::memcpy(&scale, bytes.data() + written->entries[1].begin_byte, sizeof scale);
  EXPECT_EQ(scale, 9.0);
}

TEST_F(ShadowFileTest, WritesPartOfAPiece) {
  fill(0, 8);
  const Result<WrittenFile> written = write(order(8, 3, 5));
  ASSERT_TRUE(written) << written.error().message;
  std::int32_t rows[4];
  std::memcpy(rows, file_bytes("rank-1.safetensors").data() + written->entries[0].begin_byte, sizeof rows);
  EXPECT_THAT(rows, ElementsAre(802, 803, 804, 805));
}

TEST_F(ShadowFileTest, ACopyThatTheRankHasBegunToOverwriteIsWorthNothing) {
  fill(0, 8);
  char bytes[16];
  ASSERT_TRUE(shadow->read(8, kAttempt, shadow->plan().pieces[0], 0, bytes));
  stamp(0, 0);
  const Status read = shadow->read(8, kAttempt, shadow->plan().pieces[0], 0, bytes);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::conflict);
  EXPECT_FALSE(write(order(8)));
  EXPECT_FALSE(std::filesystem::exists(job_folder + "/a4-s9-abc/rank-1.safetensors"));
}

TEST_F(ShadowFileTest, RowsThatAreNotKeptAreRefusedByName) {
  fill(0, 8);
  const Result<WrittenFile> written = write(order(8, 0, 6));
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().message, HasSubstr("does not keep rows 0 to 6 of \"weights\""));
}

TEST_F(ShadowFileTest, ATensorThatGrewSinceIsRefused) {
  fill(0, 8);
  const Layout grown{{whole_tensor("weights", Dtype::i32, {6, 4}), whole_tensor("scale", Dtype::f64, {})}};
  EXPECT_FALSE(write_from_shadow(real_file_system(), job_folder, order(8), kAttempt, grown, *shadow, {}));
}

TEST_F(ShadowFileTest, ATensorWithFewerRowsSinceIsRefused) {
  fill(0, 8);
  const Layout shorter{{whole_tensor("weights", Dtype::i32, {5, 2}), whole_tensor("scale", Dtype::f64, {})}};
  EXPECT_FALSE(write_from_shadow(real_file_system(), job_folder, order(8, 2, 5), kAttempt, shorter, *shadow, {}));
}

TEST_F(ShadowFileTest, AProcessThatShortensTheFileEndsNobody) {
  fill(0, 8);
  ASSERT_EQ(::ftruncate(shadow->descriptor(), 100), 0);
  EXPECT_FALSE(write(order(8)));
  EXPECT_FALSE(shadow->captured(8, kAttempt));
  EXPECT_TRUE(shadow->whole_steps(kAttempt).empty());
}

TEST_F(ShadowFileTest, KeepsTheSmallStateWithItsStep) {
  std::string payload("\x01\0s", 3);
  const std::uint64_t value_bytes = 2;
  payload.append(reinterpret_cast<const char*>(&value_bytes), sizeof value_bytes).append("ok");
  const SlotHeader header{.step = 8,
                          .attempt = kAttempt,
                          .bytes = static_cast<std::uint32_t>(payload.size()),
                          .entries = 1,
                          .checksum = XXH3_64bits(payload.data(), payload.size())};
  const std::uint64_t at = shadow->plan().offset_of_slot(0) + shadow->plan().state_offset;
  put(&header, sizeof header, at);
  put(payload.data(), payload.size(), at + sizeof header);
  fill(0, 8);
  const Result<CapturedState> captured = shadow->captured(8, kAttempt);
  ASSERT_TRUE(captured) << captured.error().message;
  EXPECT_THAT(captured->entries, ElementsAre(std::pair<std::string, std::string>("s", "ok")));
  EXPECT_FALSE(shadow->captured(9, kAttempt));
}

TEST_F(ShadowFileTest, IsFoundAgainByASidecarThatWasRestarted) {
  fill(1, 9);
  const Result<ShadowFile> again = ShadowFile::open(folder.path(), 1, 7);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->plan(), shadow->plan());
  EXPECT_THAT(again->whole_steps(kAttempt), ElementsAre(9));
}

TEST_F(ShadowFileTest, ThatOfAnEarlierProcessIsNotTaken) {
  EXPECT_FALSE(ShadowFile::open(folder.path(), 1, 8));
  ShadowFile::remove(folder.path(), 1);
  EXPECT_FALSE(ShadowFile::open(folder.path(), 1, 7));
}

}  // namespace
}  // namespace rekindle::sidecar
