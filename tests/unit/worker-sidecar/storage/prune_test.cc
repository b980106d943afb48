#include "worker-sidecar/storage/prune.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "common/base/format.h"
#include "tests/support/checkpoint_builder.h"
#include "tests/support/faulty_file_system.h"
#include "tests/support/temporary_folder.h"
#include "worker-sidecar/storage/attempt_store.h"
#include "worker-sidecar/storage/folder.h"
#include "worker-sidecar/storage/scan.h"

namespace rekindle {
namespace {

class Prune : public testing::Test {
 protected:
  Prune()
      : folder_(open_job_folder(real_file_system(), {.root = root_.path(), .job = make_job(), .nonce = "n0"})->path) {
    EXPECT_TRUE(claim_attempt(real_file_system(), folder_, {}, "n1"));
    for (const std::uint64_t step : {10, 20, 30}) {
      EXPECT_TRUE(
          save_checkpoint(real_file_system(), folder_, make_job(), {1, step, "x"}, make_memory(step, small_layout())));
    }
  }
  std::vector<std::string> usable() {
    std::vector<std::string> paths;
    for (const Candidate& candidate :
         order_candidates(scan_job_folder(real_file_system(), folder_).value(), make_job()).usable)
      paths.push_back(candidate.path);
    return paths;
  }

  TemporaryFolder root_;
  const std::string folder_;
};

TEST_F(Prune, RemovesTheOldestWithEverythingInIt) {
  const Result<PruneReport> report =
      prune_checkpoints(real_file_system(), folder_, make_job(), {.keep = 2, .own_attempt = 1});
  ASSERT_TRUE(report.has_value());
  ASSERT_EQ(report->removed.size(), 1u);
  EXPECT_EQ(report->removed[0].path, "a1-s10-x");
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/a1-s10-x"));
  EXPECT_EQ(usable(), (std::vector<std::string>{"a1-s30-x", "a1-s20-x"}));
}

TEST_F(Prune, KilledAnywhereItLeavesWholeCheckpointsOrNone) {
  for (std::size_t k = 1;; ++k) {
    FaultyFileSystem broken({.at_call = k, .power_off = true});
    const Result<PruneReport> report = prune_checkpoints(broken, folder_, make_job(), {.keep = 1, .own_attempt = 1});
    for (const std::string& path : usable()) {
      const Result<RankMemory> loaded =
          load_checkpoint(real_file_system(), folder_, path, small_layout(), {{"sampler", 24}});
      ASSERT_TRUE(loaded.has_value()) << "call " << k << ": " << loaded.error().message;
    }
    ASSERT_EQ(usable().front(), "a1-s30-x");
    if (broken.broken().empty()) break;
  }
  EXPECT_EQ(usable(), (std::vector<std::string>{"a1-s30-x"}));
}

TEST_F(Prune, WhatCannotBeRemovedIsReportedAndTheRestGoes) {
  class StubbornFolder : public FaultyFileSystem {
   public:
    StubbornFolder() : FaultyFileSystem({}) {}
    int rmdir_in(int folder, const std::string& name) override {
      return name.ends_with("s20-x") ? -EBUSY : real_file_system().rmdir_in(folder, name);
    }
  } storage;
  const Result<PruneReport> report = prune_checkpoints(storage, folder_, make_job(), {.keep = 1, .own_attempt = 1});
  ASSERT_TRUE(report.has_value());
  EXPECT_EQ(report->removed.size(), 1u);
  EXPECT_EQ(report->failures.size(), 1u);
  EXPECT_EQ(usable(), (std::vector<std::string>{"a1-s30-x"}));
}

TEST_F(Prune, ALinkNamedLikeACheckpointIsNotFollowed) {
  const TemporaryFolder elsewhere;
  write_bytes(elsewhere.at("thesis"), "the only copy");
  ASSERT_TRUE(claim_attempt(real_file_system(), folder_, {}, "n2"));
  ASSERT_TRUE(save_checkpoint(real_file_system(), folder_, make_job(), {2, 40, "x"}, make_memory(40, small_layout())));
  std::filesystem::create_directory_symlink(elsewhere.path(), folder_ + "/a1-s1-x");
  const Result<PruneReport> report =
      prune_checkpoints(real_file_system(), folder_, make_job(), {.keep = 1, .own_attempt = 2});
  ASSERT_TRUE(report.has_value());
  EXPECT_EQ(read_bytes(elsewhere.at("thesis")), "the only copy");
  EXPECT_TRUE(std::filesystem::is_symlink(folder_ + "/a1-s1-x"));
}

// Each link counted as a checkpoint once, and the folder that all of them lead to was the oldest.
TEST_F(Prune, LinksToTheNewestCheckpointDoNotPushItOut) {
  for (const char* name : {"/a1-s30-0", "/a1-s30-1", "/a1-s30-2"})
    std::filesystem::create_directory_symlink("a1-s30-x", folder_ + name);
  ASSERT_TRUE(prune_checkpoints(real_file_system(), folder_, make_job(), {.keep = 3, .own_attempt = 1}));
  EXPECT_EQ(usable(), (std::vector<std::string>{"a1-s30-x", "a1-s20-x", "a1-s10-x"}));
}

TEST_F(Prune, AJobWithLinksAloneIsNotBegunAnew) {
  const TemporaryFolder elsewhere;
  std::filesystem::rename(folder_ + "/a1-s30-x", elsewhere.at("a1-s30-x"));
  for (const char* name : {"/a1-s10-x", "/a1-s20-x"}) std::filesystem::remove_all(folder_ + name);
  std::filesystem::create_directory_symlink(elsewhere.at("a1-s30-x"), folder_ + "/a1-s30-x");
  const CandidateOrder order = order_candidates(scan_job_folder(real_file_system(), folder_).value(), make_job());
  EXPECT_TRUE(order.usable.empty());
  EXPECT_FALSE(may_start_afresh(order, folder_));
}

TEST_F(Prune, ALinkInsideACheckpointGoesAndWhatItLeadsToStays) {
  const TemporaryFolder elsewhere;
  write_bytes(elsewhere.at("thesis"), "the only copy");
  std::filesystem::create_directory_symlink(elsewhere.path(), folder_ + "/a1-s10-x/notes");
  std::filesystem::create_symlink(elsewhere.at("thesis"), folder_ + "/a1-s10-x/thesis");
  ASSERT_TRUE(remove_checkpoint_folder(real_file_system(), folder_, "a1-s10-x"));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/a1-s10-x"));
  EXPECT_EQ(read_bytes(elsewhere.at("thesis")), "the only copy");
}

// Somebody turns the folder into a link in the middle of its removal.
TEST_F(Prune, AFolderThatBecomesALinkMeanwhileIsNotFollowed) {
  for (std::size_t at_call = 1;; ++at_call) {
    class Swapped : public FaultyFileSystem {
     public:
      Swapped(std::size_t at_call, std::function<void()> swap)
          : FaultyFileSystem({}), at_call_(at_call), swap_(std::move(swap)) {}

     private:
      void before_call(std::size_t call) override {
        if (call == at_call_) swap_();
      }
      std::size_t at_call_;
      std::function<void()> swap_;
    };
    const TemporaryFolder elsewhere;
    for (const char* name : {"manifest.json", "rank-0.safetensors", "thesis"}) write_bytes(elsewhere.at(name), "mine");
    const std::string path = folder_ + "/a1-s10-x";
    const std::string aside = root_.at(format("aside-{}", at_call));
    bool swapped = false;
    Swapped storage(at_call, [&] {
      if (!std::filesystem::exists(path)) return;
      std::filesystem::rename(path, aside);
      std::filesystem::create_directory_symlink(elsewhere.path(), path);
      swapped = true;
    });
    static_cast<void>(remove_checkpoint_folder(storage, folder_, "a1-s10-x"));
    for (const char* name : {"manifest.json", "rank-0.safetensors", "thesis"})
      ASSERT_EQ(read_bytes(elsewhere.at(name)), "mine") << name << ", swapped before call " << at_call;
    if (!swapped) break;
    std::filesystem::remove(path);
    ASSERT_TRUE(
        save_checkpoint(real_file_system(), folder_, make_job(), {1, 10, "x"}, make_memory(10, small_layout())));
  }
}

TEST_F(Prune, AnUnreadableFolderTouchesNothing) {
  EXPECT_FALSE(prune_checkpoints(real_file_system(), folder_ + "/missing", make_job(), {.keep = 1, .own_attempt = 1}));
  EXPECT_EQ(usable().size(), 3u);
}

}  // namespace
}  // namespace rekindle
