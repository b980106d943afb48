// The power goes off at every point of an import and of an export (see storage/power_loss_test.cc):
// an import leaves a job that goes on from what it had or from the import, and an export leaves no
// file or the whole one. What was reported as done is there.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "common/base/format.h"
#include "tests/support/checkpoint_builder.h"
#include "tests/support/memory_file_system.h"
#include "tests/support/random_seed.h"
#include "tests/support/thoroughness.h"
#include "worker-sidecar/cli/checkpoint_export.h"
#include "worker-sidecar/cli/checkpoint_import.h"
#include "worker-sidecar/storage/attempt_store.h"
#include "worker-sidecar/storage/files.h"
#include "worker-sidecar/storage/scan.h"
#include "worker-sidecar/storage/verifier.h"

namespace rekindle::cli {
namespace {

const std::string kOldFolder = "/checkpoints/team-a.digits";
const std::string kOldCheckpoint = kOldFolder + "/a1-s100-x";

template <typename Verb>
int run_verb(const Verb& verb) {
  std::ostringstream out;
  std::ostringstream err;
  Progress progress(err, false, [] { return Instant(); });
  const int code = verb(CommandStreams{out, err, false, progress});
  EXPECT_EQ(code, kExitOk) << err.str();
  return code;
}

void sync_folder(MemoryFileSystem& disk, const std::string& path) {
  const int folder = disk.open(path, 0, 0);
  ASSERT_EQ(disk.fsync(folder), 0);
  ASSERT_EQ(disk.close(folder), 0);
}

// A job with a checkpoint of step 100, and a model of somebody else in /model; all of it certain.
struct Story {
  MemoryFileSystem disk;
  RankMemory before = make_memory(1, small_layout());
  RankMemory model = make_memory(2, small_layout(), {});
  std::size_t begins = 0;
  std::size_t ends = 0;
  std::size_t syncs = 0;
};

void prepare(Story& story) {
  for (const char* const folder : {"/checkpoints", "/model"}) ASSERT_EQ(story.disk.mkdir(folder, 0770), 0);
  sync_folder(story.disk, "/");
  ASSERT_TRUE(open_job_folder(story.disk, {.root = "/checkpoints", .job = make_job(), .nonce = "n0"}));
  ASSERT_TRUE(claim_attempt(story.disk, kOldFolder, {}, "n1"));
  ASSERT_TRUE(save_checkpoint(story.disk, kOldFolder, make_job(), {1, 100, "x"}, story.before));
  std::vector<MemoryPiece> pieces;
  for (std::size_t i = 0; i < story.model.layout.tensors.size(); ++i) {
    const TensorDescription& tensor = story.model.layout.tensors[i];
    pieces.push_back({{tensor.name, tensor.dtype, tensor.shape}, story.model.tensor_bytes_held[i].data()});
  }
  ASSERT_TRUE(write_data_file(story.disk, "/model", "all.safetensors", pieces));
  story.begins = story.disk.operations().size();
  story.syncs = story.disk.syncs();
}

void import_into(Story& story, const std::string& job) {
  const ImportQuestion question{.files = {"/model/all.safetensors"}, .root = "/checkpoints", .job = job, .step = 7};
  ASSERT_EQ(run_verb([&](CommandStreams streams) {
              return import_checkpoint(story.disk, question, {.time = "2026-01-02T03:04:05Z", .nonce = "i"}, streams);
            }),
            0);
  story.ends = story.disk.operations().size();
  story.syncs = story.disk.syncs() - story.syncs;
}

// What is wrong with what was found; empty: nothing.
std::string judge_import(const Story& story, MemoryFileSystem& found, std::size_t at, const JobIdentity& job) {
  const bool done = at >= story.ends;
  const Result<JobFolder> folder = open_job_folder(found, {.root = "/checkpoints", .job = job, .nonce = "n2"});
  if (!folder) return "the job cannot start: " + folder.error().message;
  const Result<FolderScan> scan = scan_job_folder(found, folder->path);
  if (!scan) return scan.error().message;
  for (const FoundFolder& each : scan->folders) {
    if (!each.manifest) continue;
    const Verification verification = verify_checkpoint(found, folder->path, each.path, job);
    if (!verification.fine())
      return format("{} is published and not whole: {}", each.path, verification.findings.front().message);
  }
  const CandidateOrder order = order_candidates(*scan, job);
  const bool had_one = folder->path == kOldFolder;
  if (order.usable.empty()) return done || had_one ? "nothing is left to restore" : "";
  const Candidate& newest = order.usable.front();
  if (done && newest.step != 7) return format("the import was reported, and step {} is the newest", newest.step);
  const RankMemory& expected = newest.step == 7 ? story.model : story.before;
  const Result<RankMemory> loaded = load_checkpoint(found, folder->path, newest.path, expected.layout, expected.states);
  if (!loaded) return loaded.error().message;
  if (!(*loaded == expected)) return newest.path + " restores something else";
  const Result<AttemptRecord> next =
      claim_attempt(found, folder->path, {.parent = ParentPoint{newest.attempt, newest.step, newest.path}}, "n3");
  if (!next) return next.error().message;
  const Result<std::string> saved =
      save_checkpoint(found, folder->path, job, {next->attempt, newest.step + 1, "z"}, story.before, next->parent);
  return saved ? "" : saved.error().message;
}

struct Findings {
  std::size_t states = 0;
  std::string wrong;  // the first
};

template <typename Judge>
Findings lose_power_everywhere(const Story& story, std::uint64_t seed, const Judge& judge) {
  Findings findings;
  findings.states =
      for_each_power_loss(story.disk, story.begins, story.ends, seed, [&](MemoryFileSystem&& found, std::size_t at) {
        findings.wrong = judge(found, at);
        if (findings.wrong.empty()) return true;
        findings.wrong += format(" (power lost before operation {} of {} to {})", at, story.begins, story.ends);
        return false;
      });
  return findings;
}

Findings lose_power_during_import(const Story& story, std::uint64_t seed, const JobIdentity& job) {
  return lose_power_everywhere(
      story, seed, [&](MemoryFileSystem& found, std::size_t at) { return judge_import(story, found, at, job); });
}

void lose_power_during_an_import(std::uint64_t seed) {
  Story story;
  ASSERT_NO_FATAL_FAILURE(prepare(story));
  ASSERT_NO_FATAL_FAILURE(import_into(story, "team-a.digits"));
  const Findings findings = lose_power_during_import(story, seed, make_job());
  EXPECT_EQ(findings.wrong, "");
  EXPECT_GT(findings.states, 500u);
}

TEST(PowerLossOfCommands, AnImportLeavesTheJobWhatItHadOrTheImport) {
  test::for_each_seed({.fixed = {1}}, lose_power_during_an_import);
}

void lose_power_during_an_import_for_a_new_job(std::uint64_t seed) {
  Story story;
  ASSERT_NO_FATAL_FAILURE(prepare(story));
  ASSERT_NO_FATAL_FAILURE(import_into(story, "team-a.new"));
  const Findings findings = lose_power_during_import(story, seed, make_job("new"));
  EXPECT_EQ(findings.wrong, "");
  EXPECT_GT(findings.states, 500u);
}

TEST(PowerLossOfCommands, AnImportForANewJobLeavesNothingInItsWay) {
  test::for_each_seed({.fixed = {1}}, lose_power_during_an_import_for_a_new_job);
}

void lose_power_without_each_fsync_of_an_import(std::uint64_t seed) {
  Story whole;
  ASSERT_NO_FATAL_FAILURE(prepare(whole));
  ASSERT_NO_FATAL_FAILURE(import_into(whole, "team-a.digits"));
  // First of all the storage is tried out, with a file that nobody needs any more. Last of all
  // comes the attempt's record, without which the manifest counts as well.
  constexpr std::size_t kSyncsOfProbe = 2;
  constexpr std::size_t kSyncsOfRecord = 2;
  EXPECT_GE(whole.syncs, kSyncsOfProbe + 5 + kSyncsOfRecord);
  Sample which(3);
  for (std::size_t k = kSyncsOfProbe + 1; k <= whole.syncs - kSyncsOfRecord; ++k) {
    if (!which.takes()) continue;
    Story story;
    ASSERT_NO_FATAL_FAILURE(prepare(story));
    story.disk.lie_at_sync(k);
    ASSERT_NO_FATAL_FAILURE(import_into(story, "team-a.digits"));
    EXPECT_NE(lose_power_during_import(story, seed, make_job()).wrong, "")
        << "without its fsync number " << k << " of " << whole.syncs;
  }
}

TEST(PowerLossOfCommands, EveryFsyncOfAnImportThatItsCheckpointNeedsIsFound) {
  test::for_each_seed({.fixed = {1}}, lose_power_without_each_fsync_of_an_import);
}

struct Export {
  const char* name;
  ExportQuestion question;
};

class PowerLossOfAnExport : public testing::TestWithParam<Export> {
 protected:
  static void export_from(Story& story) {
    ASSERT_EQ(story.disk.mkdir("/out", 0770), 0);
    sync_folder(story.disk, "/");
    story.begins = story.disk.operations().size();
    story.syncs = story.disk.syncs();
    ASSERT_EQ(run_verb([&](CommandStreams streams) {
                return export_checkpoint(story.disk, GetParam().question, "e", streams);
              }),
              0);
    story.ends = story.disk.operations().size();
    story.syncs = story.disk.syncs() - story.syncs;
  }
  // Files below /out by their path, without those under a temporary name.
  static std::map<std::string, std::string> exported(MemoryFileSystem& disk) {
    std::map<std::string, std::string> files;
    for (const std::string& path : disk.files()) {
      if (path.starts_with("/out/") && !path.contains("/.")) files[path] = *disk.content(path);
    }
    return files;
  }
  static Findings lose_power(Story& story, std::uint64_t seed) {
    const std::map<std::string, std::string> whole = exported(story.disk);
    EXPECT_FALSE(whole.empty());
    return lose_power_everywhere(story, seed, [&](MemoryFileSystem& found, std::size_t at) -> std::string {
      const std::map<std::string, std::string> there = exported(found);
      for (const auto& [path, content] : there) {
        if (content != whole.at(path)) return path + " is not whole";
      }
      return at >= story.ends && there.size() != whole.size() ? "the export was reported, and a file is missing" : "";
    });
  }
};

TEST_P(PowerLossOfAnExport, LeavesNoFileOrTheWholeOne) {
  test::for_each_seed({.fixed = {1}}, [](std::uint64_t seed) {
    Story story;
    ASSERT_NO_FATAL_FAILURE(prepare(story));
    ASSERT_NO_FATAL_FAILURE(export_from(story));
    const Findings findings = lose_power(story, seed);
    EXPECT_EQ(findings.wrong, "");
    EXPECT_GT(findings.states, 20u);
  });
}

TEST_P(PowerLossOfAnExport, IsHurtByEveryFsyncThatIsMissing) {
  test::for_each_seed({.fixed = {1}}, [](std::uint64_t seed) {
    Story whole;
    ASSERT_NO_FATAL_FAILURE(prepare(whole));
    ASSERT_NO_FATAL_FAILURE(export_from(whole));
    EXPECT_GE(whole.syncs, 2u);
    for (std::size_t k = 1; k <= whole.syncs; ++k) {
      Story story;
      ASSERT_NO_FATAL_FAILURE(prepare(story));
      // One more is the one of /out itself, before the export.
      story.disk.lie_at_sync(k + 1);
      ASSERT_NO_FATAL_FAILURE(export_from(story));
      EXPECT_NE(lose_power(story, seed).wrong, "") << "without its fsync number " << k << " of " << whole.syncs;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Formats, PowerLossOfAnExport,
                         testing::Values(Export{"safetensors",
                                                {.directory = kOldCheckpoint, .target = "/out/model.safetensors"}},
                                         Export{"merged",
                                                {.directory = kOldCheckpoint,
                                                 .target = "/out",
                                                 .format = ExportFormat::mindspore,
                                                 .mindspore = {.epoch = 1}}},
                                         Export{"tft",
                                                {.directory = kOldCheckpoint,
                                                 .target = "/out",
                                                 .format = ExportFormat::mindspore,
                                                 .mindspore = {.layout = MindSporeLayout::tft, .epoch = 1}}}),
                         [](const auto& each) { return std::string(each.param.name); });

}  // namespace
}  // namespace rekindle::cli
