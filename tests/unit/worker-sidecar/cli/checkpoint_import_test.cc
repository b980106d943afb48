#include "worker-sidecar/cli/checkpoint_import.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <sstream>

#include "common/base/format.h"
#include "common/base/json_fields.h"
#include "tests/support/faulty_file_system.h"
#include "tests/unit/worker-sidecar/cli/run_checkpoint.h"
#include "tests/unit/worker-sidecar/cli/saved_job.h"
#include "worker-sidecar/checkpoint/names.h"
#include "worker-sidecar/storage/scan.h"

namespace rekindle::cli {
namespace {

class CheckpointImport : public SavedJob {
 protected:
  CheckpointImport() {
    // What others would give us: this job's own tensors of step 100, in both formats.
    std::filesystem::create_directory(root_.at("model"));
    EXPECT_EQ(run({"export", folder_ + "/a1-s100-x", root_.at("model/all.safetensors")}).code, 0);
    EXPECT_EQ(run({"export", folder_ + "/a1-s100-x", root_.at("model"), "--format", "mindspore", "--prefix", "m",
                   "--epoch", "1"})
                  .code,
              0);
  }
  Ran run_import(const std::vector<std::string>& files, std::vector<std::string> more = {"--step", "7"}) {
    std::vector<std::string> arguments{"import", "--root", root_.path(), "--job", "team-a.digits"};
    for (const std::string& file : files) arguments.push_back(root_.at("model/" + file));
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }
  CandidateOrder order() { return order_candidates(*scan_job_folder(real_file_system(), folder_), make_job()); }
  void write_safetensors(const std::string& name, const std::vector<std::pair<DataEntry, std::string>>& tensors) {
    std::vector<MemoryPiece> pieces;
    for (const auto& [entry, bytes] : tensors) pieces.push_back({entry, bytes.data()});
    std::filesystem::remove(root_.at("model/" + name));
    ASSERT_TRUE(write_data_file(real_file_system(), root_.at("model"), name, pieces));
  }
  int import_on(FileSystem& files, const std::string& job, std::size_t call) {
    std::ostringstream out;
    std::ostringstream err;
    Progress progress(err, false, [] { return Instant(); });
    const ImportQuestion question{
        .files = {root_.at("model/all.safetensors")}, .root = root_.path(), .job = job, .step = 7};
    return import_checkpoint(files, question, {.time = "now", .nonce = format("n{}", call)},
                             {out, err, false, progress});
  }
  void undo_all_but_first_attempt() {
    for (const std::string& name : names_in(folder_)) {
      const std::optional<FolderName> folder = parse_folder_name(name);
      if ((folder && folder->attempt > 1) || name.starts_with('.'))
        std::filesystem::remove_all(format("{}/{}", folder_, name));
    }
    for (const std::string& name : names_in(folder_ + "/attempts")) {
      if (name != "1.json") std::filesystem::remove(format("{}/attempts/{}", folder_, name));
    }
  }
  // The job is as it was: nothing new, nothing temporary.
  void expect_untouched() {
    EXPECT_EQ(names_in(folder_), (std::vector<std::string>{"a1-s100-x", "a1-s184-x", "attempts", "job.json"}));
    EXPECT_EQ(names_in(folder_ + "/attempts"), (std::vector<std::string>{"1.json"}));
    EXPECT_EQ(order().usable.front().path, "a1-s184-x");
  }
};

TEST_F(CheckpointImport, TheNextStartRestoresIt) {
  const Ran ran = run_import({"all.safetensors"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.out.find("the next start of the job goes on after step 7"), std::string::npos) << ran.out;
  const CandidateOrder now = order();
  ASSERT_EQ(now.usable.size(), 1u) << "what was there before does not belong to this line";
  EXPECT_EQ(now.usable.front().attempt, 2u);
  EXPECT_EQ(now.usable.front().step, 7u);
  EXPECT_TRUE(now.notes.empty()) << now.notes.front();
  const auto loaded = load_checkpoint(real_file_system(), folder_, now.usable.front().path, small_layout(), {});
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(loaded->tensor_bytes_held, make_memory(100, small_layout()).tensor_bytes_held);
  const auto next = claim_attempt(real_file_system(), folder_, {}, "later");
  EXPECT_EQ(next->attempt, 3u);
}

TEST_F(CheckpointImport, MindSporesFilesSayTheirStep) {
  const Ran ran = run_import({"m-1_100_breakpoint.ckpt"}, {"-o", "json"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const Json json = Json::parse(ran.out);
  EXPECT_EQ(json.at("step"), 100);
  EXPECT_EQ(json.at("tensors"), 5);
  EXPECT_EQ(json.at("left_out"), Json::parse(R"(["epoch_num","step_num"])"));
  const auto loaded =
      load_checkpoint(real_file_system(), folder_, json.at("checkpoint").get<std::string>(), small_layout(), {});
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(loaded->tensor_bytes_held, make_memory(100, small_layout()).tensor_bytes_held);
}

TEST_F(CheckpointImport, AShardedModelIsOne) {
  write_safetensors("model-1.safetensors", {{{"a", Dtype::u8, {2}}, "aa"}, {{"b", Dtype::u8, {2}}, "bb"}});
  write_safetensors("model-2.safetensors", {{{"c", Dtype::u8, {2}}, "cc"}});
  const std::string index = root_.at("model/model.safetensors.index.json");
  write_bytes(
      index,
      R"({"metadata":{},"weight_map":{"a":"model-1.safetensors","b":"model-1.safetensors","c":"model-2.safetensors"}})");
  const Ran ran = run_import({"model.safetensors.index.json"}, {"--step", "7", "-o", "json"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(Json::parse(ran.out).at("tensors"), 3);
}

TEST_F(CheckpointImport, AnIndexThatDoesNotFitItsFilesIsRefused) {
  write_safetensors("model-1.safetensors", {{{"a", Dtype::u8, {2}}, "aa"}, {{"b", Dtype::u8, {2}}, "bb"}});
  for (const auto& [index, words] : std::initializer_list<std::pair<const char*, const char*>>{
           {R"({"weight_map":{"a":"model-1.safetensors"}})", "has \"b\", which the index does not place there"},
           {R"({"weight_map":{"a":"model-1.safetensors","b":"model-1.safetensors","c":"model-1.safetensors"}})",
            "does not have \"c\""},
           {R"({"weight_map":{"a":"../model/model-1.safetensors"}})", "no plain name of a file beside it"},
           {R"({"weight_map":{"a":7}})", "no plain name of a file beside it"},
           {R"({"weight_map":{}})", "the files hold no tensors"},
           {"{}", "weight_map"},
           {"[]", "must be a JSON object"},
           {"{", "index.json"}}) {
    write_bytes(root_.at("model/model.safetensors.index.json"), index);
    const Ran ran = run_import({"model.safetensors.index.json"});
    EXPECT_NE(ran.code, 0);
    EXPECT_NE(ran.err.find(words), std::string::npos) << ran.err;
  }
  expect_untouched();
}

TEST_F(CheckpointImport, BadInputIsNamedAndLeavesNothing) {
  write_bytes(root_.at("model/cut.ckpt"), read_bytes(root_.at("model/m-1_100_breakpoint.ckpt")).substr(0, 200));
  write_bytes(root_.at("model/cut.safetensors"), read_bytes(root_.at("model/all.safetensors")).substr(0, 300));
  write_bytes(root_.at("model/text"), "some text that is no model at all");
  std::filesystem::create_directory(root_.at("model/folder"));
  ASSERT_EQ(::mkfifo(root_.at("model/pipe").c_str(), 0600), 0);
  for (const auto& [files, words] : std::initializer_list<std::pair<std::vector<std::string>, const char*>>{
           {{"cut.ckpt"}, "cut.ckpt: it is damaged at byte "},
           {{"cut.safetensors"}, "cut.safetensors"},
           {{"text"}, "text"},
           {{"folder"}, "folder is not a plain file"},
           {{"pipe"}, "pipe is not a plain file"},
           {{"missing"}, "missing"},
           {{"all.safetensors", "m-1_100_breakpoint.ckpt"}, "\"b1\" is in "}}) {
    const Ran ran = run_import(files);
    EXPECT_NE(ran.code, 0) << files.front();
    EXPECT_NE(ran.err.find("nothing was imported: "), std::string::npos) << ran.err;
    EXPECT_NE(ran.err.find(words), std::string::npos) << ran.err;
  }
  expect_untouched();
}

TEST_F(CheckpointImport, RowsThatEndInsideAByteAreRefusedWithWhatToDo) {
  // What others may write: two rows of two elements, 3 bytes in all.
  write_safetensors("sixes.safetensors", {{{"w", Dtype::f6_e2m3, {2, 2}}, "abc"}});
  const Ran ran = run_import({"sixes.safetensors"});
  EXPECT_NE(ran.code, 0);
  EXPECT_NE(ran.err.find("sixes.safetensors: tensor \"w\" is F6_E2M3, of which only 4 elements together are whole "
                         "bytes: in its shape the last dimension is 2 and has "
                         "to be a multiple of 4"),
            std::string::npos)
      << ran.err;
  expect_untouched();
}

TEST_F(CheckpointImport, AChecksumThatDoesNotFitIsDamage) {
  std::string bytes =
      format("{}crc_num{}", read_bytes(root_.at("model/m-1_100_breakpoint.ckpt")), std::string(10, '\1'));
  write_bytes(root_.at("model/crc.ckpt"), bytes);
  const Ran ran = run_import({"crc.ckpt"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_NE(ran.err.find("do not have the checksum that it was saved with"), std::string::npos) << ran.err;
  expect_untouched();
}

TEST_F(CheckpointImport, WithoutAStepItAsksForOne) {
  const Ran ran = run_import({"all.safetensors"}, {});
  EXPECT_EQ(ran.code, 2);
  EXPECT_NE(ran.err.find("give --step, from 1"), std::string::npos) << ran.err;
  expect_untouched();
}

TEST_F(CheckpointImport, AWrongCommandLineIsTwo) {
  EXPECT_EQ(run_import({"all.safetensors"}, {"--step", "0"}).code, 2);
  EXPECT_EQ(run_import({}).code, 2);
  EXPECT_EQ(
      run({"import", root_.at("model/all.safetensors"), "--root", root_.path(), "--job", "digits", "--step", "1"}).code,
      2);
  EXPECT_EQ(
      run({"import", root_.at("model/all.safetensors"), "--root", root_.at("nowhere"), "--job", "a.b", "--step", "1"})
          .code,
      2);
  expect_untouched();
}

TEST_F(CheckpointImport, ANewJobGetsItsFolder) {
  EXPECT_EQ(
      run({"import", root_.at("model/all.safetensors"), "--root", root_.path(), "--job", "team-b.new", "--step", "1"})
          .code,
      0);
  EXPECT_EQ(run({"verify", root_.at("team-b.new")}).code, 0);
}

// Each call of the file system in turn fails.
TEST_F(CheckpointImport, WhateverFailsNothingIsLeftOrAllIsThere) {
  int refusals = 0;
  for (std::size_t call = 1;; ++call) {
    FaultyFileSystem files({.at_call = call, .error_number = ENOSPC});
    const int code = import_on(files, "team-b.new", call);
    if (code == 0) {
      EXPECT_EQ(run({"verify", root_.at("team-b.new")}).code, 0) << "call " << call << ", " << files.broken();
    } else {
      ++refusals;
      EXPECT_FALSE(std::filesystem::exists(root_.at("team-b.new"))) << "call " << call << ", " << files.broken();
    }
    std::filesystem::remove_all(root_.at("team-b.new"));
    if (files.broken().empty()) break;
  }
  EXPECT_GT(refusals, 20);
}

// The program ends at each call in turn. What was there before can be restored until the import
// can.
TEST_F(CheckpointImport, WhereverItEndsTheJobHasACheckpointToGoOnFrom) {
  std::size_t before = 0;
  std::size_t after = 0;
  for (std::size_t call = 1;; ++call) {
    FaultyFileSystem files({.at_call = call, .power_off = true});
    import_on(files, "team-a.digits", call);
    const CandidateOrder now = order();
    ASSERT_FALSE(now.usable.empty()) << "call " << call << ", " << files.broken();
    const std::string next = now.usable.front().path;
    EXPECT_EQ(run({"verify", format("{}/{}", folder_, next)}).code, 0) << "call " << call << ", " << files.broken();
    ++(next == "a1-s184-x" ? before : after);
    undo_all_but_first_attempt();
    if (files.broken().empty()) break;
  }
  EXPECT_GT(before, 20u);
  EXPECT_GT(after, 5u);
}

// A start of the job as the sidecar makes it: looks, picks, claims.
Result<AttemptRecord> start_job(FileSystem& files, const std::string& folder, const std::string& nonce) {
  const Result<FolderScan> scan = scan_job_folder(files, folder);
  if (!scan) return std::unexpected(scan.error());
  const Candidate newest = order_candidates(*scan, make_job()).usable.front();
  return claim_attempt(files, folder, {.parent = ParentPoint{newest.attempt, newest.step, newest.path}}, nonce);
}

// Does something else right before the k-th call.
class InterruptedFileSystem : public FaultyFileSystem {
 public:
  InterruptedFileSystem(std::size_t at_call, std::function<void()> meanwhile)
      : FaultyFileSystem({}), at_call_(at_call), meanwhile_(std::move(meanwhile)) {}

 private:
  void before_call(std::size_t call) override {
    if (call == at_call_) meanwhile_();
  }
  const std::size_t at_call_;
  const std::function<void()> meanwhile_;
};

TEST_F(CheckpointImport, AStartOfTheJobAtAnyMomentGoesOnUndisturbedOrWithTheImport) {
  std::size_t refused = 0;
  std::size_t taken = 0;
  for (std::size_t call = 1;; ++call) {
    std::optional<Result<AttemptRecord>> started;
    InterruptedFileSystem files(call,
                                [&] { started = start_job(real_file_system(), folder_, format("start{}", call)); });
    const int code = import_on(files, "team-a.digits", call);
    if (!started) break;
    ASSERT_TRUE(*started) << (*started).error().message;
    const AttemptRecord& job = **started;
    const bool took_it = job.parent->path.starts_with("a2-s7-");
    const CandidateOrder now = order();
    ASSERT_FALSE(now.usable.empty()) << "call " << call;
    if (code == 0) {
      EXPECT_EQ(now.usable.front().step, 7u) << "call " << call;
    } else {
      ++refused;
      EXPECT_FALSE(took_it) << "call " << call << ": what the job restored was taken away";
      EXPECT_EQ(now.usable.front().path, "a1-s184-x") << "call " << call;
      const Result<std::string> saved = save_checkpoint(
          real_file_system(), folder_, make_job(), {job.attempt, 185, "s"}, make_memory(1, small_layout()), job.parent);
      EXPECT_TRUE(saved) << "call " << call << ": " << saved.error().message;
    }
    if (took_it) ++taken;
    undo_all_but_first_attempt();
  }
  EXPECT_GT(refused, 20u);
  EXPECT_GT(taken, 5u);
}

// Before the start has looked it is taken; while the start loads what it has picked, left behind;
// behind the claim it is of a later attempt, so the next start takes it.
TEST_F(CheckpointImport, AnImportAtAnyMomentOfAStartIsOfAnAttemptOfItsOwn) {
  std::size_t taken = 0;
  std::size_t left = 0;
  std::size_t later = 0;
  for (std::size_t call = 1;; ++call) {
    std::optional<int> imported;
    InterruptedFileSystem files(call, [&] { imported = import_on(real_file_system(), "team-a.digits", call); });
    const Result<AttemptRecord> started = start_job(files, folder_, "start");
    if (!imported) break;
    ASSERT_TRUE(started) << started.error().message;
    EXPECT_EQ(*imported, 0);
    const CandidateOrder now = order();
    ASSERT_FALSE(now.usable.empty());
    const std::string next = now.usable.front().path;
    if (started->attempt == 2) {
      ++later;
      EXPECT_TRUE(next.starts_with("a3-s7-")) << "call " << call << ": " << next;
    } else {
      ++(started->parent->step == 7 ? taken : left);
      EXPECT_EQ(started->attempt, 3u) << "call " << call;
      EXPECT_EQ(next, started->parent->path)
          << "call " << call << ": the next start restores something else than this one";
    }
    undo_all_but_first_attempt();
  }
  EXPECT_GT(taken, 0u);
  EXPECT_GT(left, 0u);
  EXPECT_GT(later, 0u);
}

}  // namespace
}  // namespace rekindle::cli
