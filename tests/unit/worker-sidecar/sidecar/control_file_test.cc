#include "worker-sidecar/sidecar/control_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <cstring>
#include <filesystem>
#include <string>

#include "tests/support/temporary_folder.h"

namespace rekindle::sidecar {
namespace {

constexpr std::uint32_t kRank = 3;
constexpr std::uint32_t kWorld = 4;

std::string payload_of(const std::vector<std::pair<std::string, std::string>>& entries) {
  std::string payload;
  for (const auto& [name, value] : entries) {
    const auto name_bytes = static_cast<std::uint16_t>(name.size());
    const auto value_bytes = static_cast<std::uint64_t>(value.size());
    payload.append(reinterpret_cast<const char*>(&name_bytes), sizeof name_bytes).append(name);
    payload.append(reinterpret_cast<const char*>(&value_bytes), sizeof value_bytes).append(value);
  }
  return payload;
}

SlotHeader header_of(std::uint64_t step, const std::string& payload, std::uint32_t entries) {
  return {.step = step,
          .attempt = 1,
          .bytes = static_cast<std::uint32_t>(payload.size()),
          .entries = entries,
          .checksum = XXH3_64bits(payload.data(), payload.size())};
}

class ControlFileTest : public testing::Test {
 protected:
  ControlFile create() {
    Result<ControlFile> file = ControlFile::create(
        folder_.path(), {.rank = kRank, .world_size = kWorld, .incarnation = 77, .state_bytes_max = 5000});
    EXPECT_TRUE(file) << file.error().message;
    return std::move(*file);
  }
  // What the rank's side sees of the same file.
  ControlBlock& rank_side(const ControlFile& file) {
    void* memory = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file.descriptor(), 0);
    return *static_cast<ControlBlock*>(memory);
  }
  void put_slot(const ControlFile& file, int slot, const SlotHeader& header, const std::string& payload) {
    const off_t at = 4096 + static_cast<off_t>(slot) * file.slot_bytes();
    ASSERT_EQ(::pwrite(file.descriptor(), &header, sizeof header, at), static_cast<ssize_t>(sizeof header));
    ASSERT_EQ(::pwrite(file.descriptor(), payload.data(), payload.size(), at + 32),
              static_cast<ssize_t>(payload.size()));
  }
  TemporaryFolder folder_;
};

TEST_F(ControlFileTest, IsAllocatedBeforehandAndClosedToOthers) {
  const ControlFile file = create();
  struct stat about{};
  ASSERT_EQ(::fstat(file.descriptor(), &about), 0);
  EXPECT_EQ(about.st_size, 4096 + 2 * 8192);
  EXPECT_GE(about.st_blocks * 512, about.st_size);
  EXPECT_EQ(about.st_mode & 0777, 0600);
}

TEST_F(ControlFileTest, ANewProcessGetsAFreshFileAndTheOldOneKeepsItsOwn) {
  const ControlFile first = create();
  rank_side(first).word = encode_word({.step = 9, .phase = RankPhase::between});
  const ControlFile second = create();
  EXPECT_EQ(second.word().step, 0u);
  EXPECT_EQ(first.word().step, 9u);
}

TEST_F(ControlFileTest, ALinkInTheFoldersWayIsNotFollowed) {
  const std::string victim = folder_.path() + "/victim";
  std::filesystem::create_directory(victim);
  std::filesystem::create_symlink(victim + "/file", folder_.path() + "/rank-3.control");
  const ControlFile file = create();
  EXPECT_FALSE(std::filesystem::exists(victim + "/file"));
}

TEST_F(ControlFileTest, ASidecarThatComesBackFindsWordHoldAndNumber) {
  std::uint32_t number = 0;
  {
    ControlFile file = create();
    rank_side(file).word = encode_word({.step = 184, .phase = RankPhase::computing, .slot = 1});
    number = file.hold();
  }
  Result<ControlFile> again = ControlFile::open(folder_.path(), kRank, kWorld);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->word(), (RankStatus{.step = 184, .phase = RankPhase::computing, .slot = 1}));
  EXPECT_TRUE(again->held());
  EXPECT_EQ(again->hold_number(), number);
  EXPECT_GT(again->hold(), number);
}

TEST_F(ControlFileTest, WhatIsNoControlBlockOfThisRankIsRefused) {
  {
    const ControlFile file = create();
  }
  EXPECT_EQ(ControlFile::open(folder_.path(), kRank, kWorld + 1).error().code, ErrorCode::corrupt);
  EXPECT_EQ(ControlFile::open(folder_.path(), kRank + 1, kWorld).error().code, ErrorCode::not_found);
  ASSERT_EQ(::truncate((folder_.path() + "/rank-3.control").c_str(), 100), 0);
  EXPECT_EQ(ControlFile::open(folder_.path(), kRank, kWorld).error().code, ErrorCode::corrupt);
}

TEST_F(ControlFileTest, HoldPermitAndReleaseAreWhatTheRankReads) {
  ControlFile file = create();
  ControlBlock& seen = rank_side(file);
  const std::uint32_t wake_word = seen.wake_word;
  EXPECT_EQ(file.hold(), seen.hold);
  file.permit(12);
  EXPECT_EQ(seen.permit, 12u);
  file.release(GateOrder::stop);
  EXPECT_EQ(seen.hold, 0u);
  EXPECT_EQ(seen.permit, 0u);
  EXPECT_EQ(seen.order, static_cast<std::uint32_t>(GateOrder::stop));
  EXPECT_EQ(seen.wake_word, wake_word + 3);
}

TEST_F(ControlFileTest, AnOrderToRebuildStandsUntilTheRankHasCarriedItOut) {
  ControlFile file = create();
  ControlBlock& seen = rank_side(file);
  const auto order = [&] { return static_cast<GateOrder>(seen.order.load()); };
  const RebuildOrder rebuild{.term = 65536, .step = 184, .path = "a1-s184-x", .manifest_hash = "hash"};
  file.hold();
  ASSERT_TRUE(file.release_to_rebuild(rebuild));
  EXPECT_EQ(seen.hold, 0u);
  EXPECT_EQ(order(), GateOrder::rebuild);
  EXPECT_EQ(read_rebuild_order(seen), rebuild);
  file.hold();
  file.release(GateOrder::go_on);
  EXPECT_EQ(order(), GateOrder::rebuild) << "a breakpoint in between does not take it away";
  EXPECT_FALSE(file.settle_rebuild());
  seen.rebuilt = rebuild.term;
  EXPECT_TRUE(file.settle_rebuild());
  EXPECT_EQ(order(), GateOrder::go_on);
  file.hold();
  ASSERT_TRUE(file.release_to_rebuild(rebuild)) << "the same once more, since its answer was lost";
  EXPECT_EQ(order(), GateOrder::go_on);
  file.hold();
  file.release(GateOrder::stop);
  EXPECT_EQ(order(), GateOrder::stop);
}

TEST_F(ControlFileTest, ASidecarThatComesBackFindsTheOrderToRebuild) {
  {
    ControlFile file = create();
    file.hold();
    ASSERT_TRUE(file.release_to_rebuild({.term = 65536, .step = 184, .path = "a1-s184-x", .manifest_hash = "hash"}));
  }
  Result<ControlFile> again = ControlFile::open(folder_.path(), kRank, kWorld);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(again->rebuild_term(), 65536u);
  EXPECT_FALSE(again->settle_rebuild());
  again->hold();
  again->release(GateOrder::go_on);
  EXPECT_EQ(static_cast<GateOrder>(rank_side(*again).order.load()), GateOrder::rebuild);
}

TEST_F(ControlFileTest, TheStateOfAStepComesFromWhicheverSlotHasIt) {
  const ControlFile file = create();
  rank_side(file).word = encode_word({.step = 184, .phase = RankPhase::between, .slot = 1});
  const std::string payload = payload_of({{"sampler", "abcdefgh"}, {"empty", ""}});
  put_slot(file, 0, header_of(183, payload_of({{"sampler", "old"}}), 1), payload_of({{"sampler", "old"}}));
  put_slot(file, 1, header_of(184, payload, 2), payload);
  const Result<CapturedState> state = file.captured(184, 1);
  ASSERT_TRUE(state) << state.error().message;
  EXPECT_EQ(state->entries, (std::vector<std::pair<std::string, std::string>>{{"sampler", "abcdefgh"}, {"empty", ""}}));
  EXPECT_EQ(file.captured(183, 1)->entries.front().second, "old");
  EXPECT_EQ(file.captured(184, 2).error().code, ErrorCode::not_found);
}

// A late registration captures the committed step once more, into the other slot.
TEST_F(ControlFileTest, OfTwoCapturesOfTheCommittedStepTheOneThatTheWordNamesCounts) {
  const ControlFile file = create();
  const std::string before = payload_of({{"sampler", "abc"}});
  const std::string after = payload_of({{"sampler", "abc"}, {"late", "xyz"}});
  put_slot(file, 0, header_of(184, before, 1), before);
  put_slot(file, 1, header_of(184, after, 2), after);
  rank_side(file).word = encode_word({.step = 184, .phase = RankPhase::between, .slot = 1});
  const Result<CapturedState> state = file.captured(184, 1);
  ASSERT_TRUE(state) << state.error().message;
  EXPECT_EQ(state->entries.size(), 2u);
}

TEST_F(ControlFileTest, TheCaptureThatTheWordNamesHasNoReplacement) {
  const ControlFile file = create();
  const std::string before = payload_of({{"sampler", "abc"}});
  SlotHeader broken = header_of(184, before, 1);
  broken.checksum ^= 1;
  put_slot(file, 0, header_of(184, before, 1), before);
  put_slot(file, 1, broken, before);
  rank_side(file).word = encode_word({.step = 184, .phase = RankPhase::between, .slot = 1});
  EXPECT_EQ(file.captured(184, 1).error().code, ErrorCode::corrupt);
}

TEST_F(ControlFileTest, EveryFlippedByteOfASlotIsRefused) {
  const ControlFile file = create();
  rank_side(file).word = encode_word({.step = 184, .phase = RankPhase::between, .slot = 0});
  const std::string payload = payload_of({{"sampler", "abcdefgh"}});
  for (std::size_t at = 0; at < payload.size(); ++at) {
    std::string changed = payload;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    put_slot(file, 0, header_of(184, payload, 1), changed);
    EXPECT_EQ(file.captured(184, 1).error().code, ErrorCode::corrupt) << "byte " << at;
  }
}

TEST_F(ControlFileTest, LengthsThatLeadOutOfTheSlotAreRefused) {
  std::string payload = payload_of({{"sampler", "abcdefgh"}});
  const std::uint64_t huge = ~std::uint64_t{0};
  std::memcpy(payload.data() + 2 + 7, &huge, sizeof huge);
  EXPECT_EQ(decode_slot_payload(header_of(1, payload, 1), payload).error().code, ErrorCode::corrupt);
  EXPECT_EQ(decode_slot_payload(header_of(1, payload, 9), payload).error().code, ErrorCode::corrupt);
  SlotHeader header = header_of(1, payload, 1);
  header.bytes = 1u << 30;
  EXPECT_EQ(decode_slot_payload(header, payload).error().code, ErrorCode::corrupt);
}

TEST_F(ControlFileTest, ARankThatShortensTheFileDoesNotEndTheReader) {
  const ControlFile file = create();
  ASSERT_EQ(::ftruncate(file.descriptor(), 4096), 0);
  EXPECT_EQ(file.captured(1, 1).error().code, ErrorCode::corrupt);
}

TEST(ControlFileOnAFullVolume, SaysWhatToChange) {
  // Room for nothing: a memory volume of one page, in a mount namespace of this test's own. Needs
  // root.
  if (::geteuid() != 0) GTEST_SKIP() << "only root can mount";
  TemporaryFolder folder;
  const std::string command = "unshare --mount sh -c 'mount -t tmpfs -o size=8k none " + folder.path() +
                              " && exec \"$@\"' x " + std::string(REKINDLE_FULL_VOLUME_PROBE) + " " + folder.path();
  FILE* output = ::popen(command.c_str(), "r");
  ASSERT_NE(output, nullptr);
  char line[1024] = "";
  ASSERT_NE(std::fgets(line, sizeof line, output), nullptr);
  EXPECT_EQ(::pclose(output), 0);
  EXPECT_NE(std::strstr(line, "is full"), nullptr) << line;
  EXPECT_NE(std::strstr(line, "sizeLimit"), nullptr) << line;
}

}  // namespace
}  // namespace rekindle::sidecar
