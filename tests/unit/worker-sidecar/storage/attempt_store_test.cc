#include "worker-sidecar/storage/attempt_store.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <thread>

#include "common/base/format.h"
#include "tests/support/checkpoint_builder.h"
#include "tests/support/faulty_file_system.h"
#include "tests/support/temporary_folder.h"
#include "worker-sidecar/checkpoint/names.h"

namespace rekindle {
namespace {

class AttemptStore : public testing::Test {
 protected:
  AttemptStore()
      : folder_(open_job_folder(real_file_system(), {.root = root_.path(), .job = make_job(), .nonce = "n0"})->path) {}

  TemporaryFolder root_;
  const std::string folder_;
};

AttemptRecord make_record() {
  return {.job_uid = "5f1c", .pods = {{"digits-worker-0", "77"}}, .time = "2026-01-02T03:04:05Z"};
}

TEST_F(AttemptStore, NumbersBeginAtOneAndGrow) {
  EXPECT_EQ(claim_attempt(real_file_system(), folder_, make_record(), "n1")->attempt, 1u);
  AttemptRecord second = make_record();
  second.parent = ParentPoint{1, 184, "a1-s184-x"};
  EXPECT_EQ(claim_attempt(real_file_system(), folder_, second, "n2")->attempt, 2u);
  const auto listed = list_attempts(real_file_system(), folder_);
  ASSERT_EQ(listed->size(), 2u);
  EXPECT_EQ(listed->at(1).record->parent, second.parent);
  // No temporary file is left.
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_ + "/attempts"), {}), 2);
}

TEST_F(AttemptStore, ANumberThatAFolderSpeaksOfIsNotTakenAgain) {
  std::filesystem::create_directory(folder_ + "/a7-s1-x");
  write_bytes(folder_ + "/a7-s1-x/manifest.json", "{\"man");
  EXPECT_EQ(claim_attempt(real_file_system(), folder_, make_record(), "n1")->attempt, 8u);
}

// One such file or folder stopped every later attempt of the job.
TEST_F(AttemptStore, NumbersThatNoAttemptHadStopNoneThatFollows) {
  for (const std::string number : {"4294967295", "18446744073709551615", "999999999"})
    write_bytes(format("{}/attempts/{}.json", folder_, number), "");
  for (const std::string name : {"a18446744073709551615-s1-x", "a4294967295-s1-x", "a999999999-s1-x"})
    std::filesystem::create_directory(folder_ + "/" + name);
  EXPECT_EQ(claim_attempt(real_file_system(), folder_, make_record(), "n1")->attempt, 1u);
}

TEST_F(AttemptStore, ADamagedRecordKeepsItsNumber) {
  write_bytes(folder_ + "/attempts/1.json", "{\"att");
  EXPECT_EQ(claim_attempt(real_file_system(), folder_, make_record(), "n1")->attempt, 2u);
  EXPECT_EQ(read_bytes(folder_ + "/attempts/1.json"), "{\"att");
}

TEST_F(AttemptStore, BehindTheHighestNumberNoneIsClaimed) {
  AttemptRecord record = make_record();
  record.attempt = kAttemptMax;
  write_bytes(format("{}/attempts/{}.json", folder_, kAttemptMax), encode_attempt(record));
  const Result<AttemptRecord> claimed = claim_attempt(real_file_system(), folder_, make_record(), "n1");
  ASSERT_FALSE(claimed);
  EXPECT_NE(claimed.error().message.find("speaks of attempt 999999999"), std::string::npos) << claimed.error().message;
}

TEST_F(AttemptStore, ManyAtOnceGetDifferentNumbers) {
  std::vector<std::uint64_t> numbers(16);
  std::vector<std::thread> claimants;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    claimants.emplace_back([&, i] {
      const Result<AttemptRecord> record = claim_attempt(real_file_system(), folder_, make_record(), format("n{}", i));
      numbers[i] = record ? record->attempt : 0;
    });
  }
  for (std::thread& claimant : claimants) claimant.join();
  const std::set<std::uint64_t> different(numbers.begin(), numbers.end());
  EXPECT_EQ(different.size(), numbers.size());
  EXPECT_EQ(*different.begin(), 1u);
  EXPECT_EQ(*different.rbegin(), numbers.size());
}

TEST_F(AttemptStore, AClaimThatBreaksAnywhereIsWholeOrNotThere) {
  for (std::size_t k = 1;; ++k) {
    FaultyFileSystem broken({.at_call = k, .power_off = true});
    const Result<AttemptRecord> record = claim_attempt(broken, folder_, make_record(), format("n{}", k));
    const auto listed = list_attempts(real_file_system(), folder_);
    ASSERT_TRUE(listed.has_value());
    for (const FoundAttempt& found : *listed)
      EXPECT_TRUE(found.record.has_value()) << "call " << k << " left a broken record";
    if (broken.broken().empty()) {
      EXPECT_TRUE(record.has_value());
      break;
    }
  }
}

TEST_F(AttemptStore, ALinkWhoseAnswerWasLostIsRecognized) {
  // As an NFS server does when the reply is lost and the request is sent again.
  class LostReply : public FaultyFileSystem {
   public:
    LostReply() : FaultyFileSystem({}) {}
    int link(const std::string& from, const std::string& to) override {
      real_file_system().link(from, to);
      return -EEXIST;
    }
  } storage;
  EXPECT_EQ(claim_attempt(storage, folder_, make_record(), "n1")->attempt, 1u);
}

// Such as storage without coherent caches, where two jobs would believe that the number is theirs.
TEST_F(AttemptStore, ARecordThatReadsBackDifferentlyIsNoClaim) {
  class Forgetful : public FaultyFileSystem {
   public:
    Forgetful() : FaultyFileSystem({}) {}
    ssize_t pread(int descriptor, void* data, std::size_t bytes, std::uint64_t offset) override {
      const ssize_t count = FaultyFileSystem::pread(descriptor, data, bytes, offset);
      if (count > 0) static_cast<char*>(data)[0] = ' ';
      return count;
    }
  } storage;
  const Result<AttemptRecord> record = claim_attempt(storage, folder_, make_record(), "n1");
  ASSERT_FALSE(record);
  EXPECT_EQ(record.error().code, ErrorCode::corrupt);
}

// What a list holds in memory is what its readers ask for, whatever others have put there.
TEST_F(AttemptStore, TheListLeavesThePodsOut) {
  AttemptRecord record = make_record();
  record.pods.resize(100, {"digits-worker-0", "77"});
  ASSERT_TRUE(claim_attempt(real_file_system(), folder_, record, "n1"));
  const auto listed = list_attempts(real_file_system(), folder_);
  ASSERT_TRUE(listed->at(0).record);
  EXPECT_TRUE(listed->at(0).record->pods.empty());
  EXPECT_EQ(listed->at(0).record->time, record.time);
}

TEST_F(AttemptStore, OfMoreRecordsThanThereIsRoomForTheNewestAreListed) {
  AttemptRecord large = make_record();
  large.job_uid = std::string(60u << 10, 'x');
  for (large.attempt = 1; large.attempt <= 300; ++large.attempt)
    write_bytes(format("{}/attempts/{}.json", folder_, large.attempt), encode_attempt(large));
  const auto listed = list_attempts(real_file_system(), folder_);
  ASSERT_EQ(listed->size(), 300u);
  EXPECT_TRUE(listed->back().record);
  EXPECT_TRUE(listed->at(100).record);
  ASSERT_FALSE(listed->front().record);
  EXPECT_EQ(listed->front().record.error().code, ErrorCode::exhausted);
  EXPECT_NE(listed->front().record.error().message.find("/1.json is not read"), std::string::npos);
}

TEST_F(AttemptStore, ARecordThatIsTooLargeForOneIsNotRead) {
  AttemptRecord large = make_record();
  large.attempt = 1;
  large.pods.resize(10'000, {"digits-worker-0", "77"});
  write_bytes(folder_ + "/attempts/1.json", encode_attempt(large));
  const auto listed = list_attempts(real_file_system(), folder_);
  ASSERT_FALSE(listed->at(0).record);
  EXPECT_NE(listed->at(0).record.error().message.find("at most 65536 are read"), std::string::npos);
}

TEST_F(AttemptStore, ADamagedRecordIsListedWithItsError) {
  write_bytes(folder_ + "/attempts/3.json", "{\"att");
  const auto listed = list_attempts(real_file_system(), folder_);
  ASSERT_EQ(listed->size(), 1u);
  EXPECT_EQ(listed->at(0).record.error().code, ErrorCode::corrupt);
}

}  // namespace
}  // namespace rekindle
