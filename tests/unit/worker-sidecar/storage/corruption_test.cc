// A thousand times something about the newest checkpoint is not as it was written. What restores is
// always one of the checkpoints that were really made, with every byte and under its own step; and
// since an older one is there, something always restores.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "common/base/assert.h"
#include "common/base/format.h"
#include "common/base/json_fields.h"
#include "common/base/prng.h"
#include "tests/support/checkpoint_builder.h"
#include "tests/support/memory_file_system.h"
#include "tests/support/random_seed.h"
#include "tests/support/thoroughness.h"
#include "worker-sidecar/checkpoint/hash.h"
#include "worker-sidecar/storage/attempt_store.h"
#include "worker-sidecar/storage/scan.h"

namespace rekindle {
namespace {

const std::string kRoot = "/checkpoints";
const std::string kOlder = "a1-s100-x";
const std::string kNewest = "a2-s101-y";

// Attempt 1 saved step 100 and went on to 110, which attempt 2 never saw; attempt 2 saved step 101.
// Another job has checkpoints of the same steps.
Layout twin_layout() {
  Layout layout = small_layout();
  layout.tensors.push_back(whole_tensor("b2", Dtype::f32, {5}));  // of the size of b1
  return layout;
}

struct Disk {
  MemoryFileSystem files;
  std::string job = kRoot + "/team-a.digits";
  std::string other = kRoot + "/team-a.other";
  std::map<std::uint64_t, RankMemory> memory{
      {100, make_memory(1, twin_layout())}, {101, make_memory(2, twin_layout())}, {110, make_memory(3, twin_layout())}};
};

Disk make_disk() {
  Disk disk;
  RK_ASSERT(disk.files.mkdir(kRoot, 0770) == 0);
  for (const char* name : {"digits", "other"}) {
    const JobIdentity job = make_job(name);
    const std::string folder = open_job_folder(disk.files, {.root = kRoot, .job = job, .nonce = "n0"})->path;
    const RankMemory others = make_memory(9, twin_layout());
    const bool ours = job.name == "digits";
    const ParentPoint parent{1, 100, kOlder};
    RK_ASSERT(claim_attempt(disk.files, folder, {}, "n1").has_value());
    RK_ASSERT(save_checkpoint(disk.files, folder, job, {1, 100, "x"}, ours ? disk.memory.at(100) : others).has_value());
    RK_ASSERT(save_checkpoint(disk.files, folder, job, {1, 110, "w"}, ours ? disk.memory.at(110) : others).has_value());
    RK_ASSERT(claim_attempt(disk.files, folder, {.parent = parent}, "n2").has_value());
    RK_ASSERT(save_checkpoint(disk.files, folder, job, {2, 101, "y"}, ours ? disk.memory.at(101) : others, parent)
                  .has_value());
  }
  return disk;
}

std::vector<std::string> files_below(const Disk& disk, const std::string& folder) {
  std::vector<std::string> files;
  for (const std::string& path : disk.files.files()) {
    if (path.starts_with(folder + "/")) files.push_back(path);
  }
  return files;
}

std::string& one_of(Prng& prng, Disk& disk, const std::string& folder) {
  const std::vector<std::string> files = files_below(disk, folder);
  return *disk.files.content(files[prng.below(files.size())]);
}

void copy_folder(Disk& disk, const std::string& from, const std::string& to) {
  disk.files.mkdir(to, 0770);
  for (const std::string& path : files_below(disk, from)) {
    const std::string text = *disk.files.content(path);
    const int file = disk.files.open(to + path.substr(from.size()), O_CREAT | O_WRONLY, 0660);
    RK_ASSERT(file >= 0);
    disk.files.pwrite(file, text.data(), text.size(), 0);
    disk.files.close(file);
  }
}

// Every number and text of a document, in order.
void for_each_leaf(Json& value, const std::function<void(Json&)>& visit) {
  if (!value.is_structured()) return visit(value);
  for (auto& each : value) for_each_leaf(each, visit);
}

void change_one_value(Prng& prng, Json& manifest) {
  std::vector<Json*> leaves;
  for_each_leaf(manifest, [&](Json& leaf) { leaves.push_back(&leaf); });
  Json& leaf = *leaves[prng.below(leaves.size())];
  if (leaf.is_number()) {
    const std::uint64_t value = leaf.get<std::uint64_t>();
    const std::uint64_t changes[] = {
        value + 1, value - std::min<std::uint64_t>(value, 1), value + 8, value * 2, 0, prng.below(1000)};
    leaf = changes[prng.below(std::size(changes))];
  } else if (leaf.is_string()) {
    std::string text = leaf.get<std::string>();
    const Json& another = *leaves[prng.below(leaves.size())];
    if (another.is_string() && prng.below(2) == 0) {
      text = another.get<std::string>();
    } else if (!text.empty()) {
      text[prng.below(text.size())] = static_cast<char>('0' + prng.below(75));
    }
    leaf = text;
  } else {
    leaf = nullptr;
  }
}

// The manifest as somebody leaves it who edits it and computes its hash anew.
void edit_and_seal(Prng& prng, std::string& text) {
  Json sealed = *parse_json(text, "manifest");
  change_one_value(prng, sealed["manifest"]);
  sealed["hash"] = hash_of(dump_json(sealed["manifest"]));
  text = dump_json(sealed);
}

// The same with two tensors of one size: one's place is said to be the other's.
void swap_and_seal(bool with_keys, std::string& text) {
  Json sealed = *parse_json(text, "manifest");
  std::vector<Json*> twins;
  for (Json& tensor : sealed["manifest"]["tensors"]) {
    if (tensor["name"] == "b1" || tensor["name"] == "b2") twins.push_back(&tensor["pieces"]);
  }
  RK_ASSERT(twins.size() == 2 && twins[0]->size() == 1 && twins[1]->size() == 1);
  std::swap(*twins[0], *twins[1]);
  if (!with_keys) std::swap((*twins[0])[0]["key"], (*twins[1])[0]["key"]);
  sealed["hash"] = hash_of(dump_json(sealed["manifest"]));
  text = dump_json(sealed);
}

struct Harm {
  const char* name;
  std::function<void(Prng&, Disk&)> act;
};

const std::vector<Harm>& harms() {
  static const std::vector<Harm> all = {
      {"a bit is flipped",
       [](Prng& prng, Disk& disk) {
         std::string& text = one_of(prng, disk, format("{}/{}", disk.job, kNewest));
         text[prng.below(text.size())] ^= static_cast<char>(1u << prng.below(8));
       }},
      {"a file is cut short",
       [](Prng& prng, Disk& disk) {
         std::string& text = one_of(prng, disk, format("{}/{}", disk.job, kNewest));
         text.resize(prng.below(text.size()));
       }},
      {"a file is longer",
       [](Prng& prng, Disk& disk) {
         one_of(prng, disk, format("{}/{}", disk.job, kNewest))
             .append(1 + prng.below(64), static_cast<char>(prng.next()));
       }},
      {"a part is zero",
       [](Prng& prng, Disk& disk) {
         std::string& text = one_of(prng, disk, format("{}/{}", disk.job, kNewest));
         const std::size_t begin = prng.below(text.size());
         const std::size_t bytes = 1 + prng.below(text.size() - begin);
         text.replace(begin, bytes, bytes, '\0');
       }},
      {"two of its files are swapped",
       [](Prng& prng, Disk& disk) {
         std::swap(one_of(prng, disk, format("{}/{}", disk.job, kNewest)),
                   one_of(prng, disk, format("{}/{}", disk.job, kNewest)));
       }},
      {"a file comes from an older checkpoint",
       [](Prng& prng, Disk& disk) {
         const std::vector<std::string> files = files_below(disk, format("{}/{}", disk.job, kNewest));
         const std::string path = files[prng.below(files.size())];
         *disk.files.content(path) =
             *disk.files.content(format("{}/{}{}", disk.job, kOlder, path.substr(path.rfind('/'))));
       }},
      {"a file comes from another job",
       [](Prng& prng, Disk& disk) {
         const std::vector<std::string> files = files_below(disk, format("{}/{}", disk.job, kNewest));
         const std::string path = files[prng.below(files.size())];
         *disk.files.content(path) =
             *disk.files.content(format("{}/{}{}", disk.other, kNewest, path.substr(path.rfind('/'))));
       }},
      {"a file is missing",
       [](Prng& prng, Disk& disk) {
         const std::vector<std::string> files = files_below(disk, format("{}/{}", disk.job, kNewest));
         disk.files.unlink(files[prng.below(files.size())]);
       }},
      {"the manifest is edited",
       [](Prng& prng, Disk& disk) {
         std::string& text = *disk.files.content(format("{}/{}/manifest.json", disk.job, kNewest));
         Json sealed = *parse_json(text, "manifest");
         change_one_value(prng, sealed["manifest"]);
         text = dump_json(sealed);
       }},
      {"the manifest is edited and sealed again",
       [](Prng& prng, Disk& disk) {
         edit_and_seal(prng, *disk.files.content(format("{}/{}/manifest.json", disk.job, kNewest)));
       }},
      {"two tensors trade places",
       [](Prng& prng, Disk& disk) {
         swap_and_seal(prng.below(2) == 0, *disk.files.content(format("{}/{}/manifest.json", disk.job, kNewest)));
       }},
      {"a checkpoint of another job stands there",
       [](Prng& prng, Disk& disk) {
         copy_folder(disk, format("{}/{}", disk.other, kNewest), format("{}/a2-s{}-o", disk.job, 102 + prng.below(9)));
       }},
      {"the same, under its own step",
       [](Prng&, Disk& disk) { copy_folder(disk, format("{}/{}", disk.other, kNewest), disk.job + "/a2-s101-zz"); }},
      {"a checkpoint of an abandoned line is renamed",
       [](Prng& prng, Disk& disk) {
         copy_folder(disk, disk.job + "/a1-s110-w", format("{}/a2-s{}-v", disk.job, 102 + prng.below(9)));
       }},
  };
  return all;
}

// The newest that restores, as a restart looks for it. Its step, or nothing.
std::optional<std::uint64_t> restore(Disk& disk, RankMemory& memory) {
  const Result<FolderScan> scan = scan_job_folder(disk.files, disk.job);
  if (!scan) return std::nullopt;
  for (const Candidate& candidate : order_candidates(*scan, make_job()).usable) {
    Result<RankMemory> loaded = load_checkpoint(disk.files, disk.job, candidate.path, memory.layout, memory.states);
    if (!loaded) continue;
    memory = std::move(*loaded);
    return candidate.step;
  }
  return std::nullopt;
}

void restore_what_is_damaged(std::uint64_t seed) {
  constexpr std::uint64_t kRounds = rounds(1400, 140);
  Prng prng(seed);
  const Disk whole = make_disk();
  std::map<std::string, int> refused;
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    const Harm& harm = harms()[round % harms().size()];
    SCOPED_TRACE(format("{}, round {}", harm.name, round));
    Disk disk = whole;
    harm.act(prng, disk);
    RankMemory memory = make_memory(0, twin_layout());
    const std::optional<std::uint64_t> step = restore(disk, memory);
    ASSERT_TRUE(step) << "nothing restores although step 100 is untouched";
    ASSERT_TRUE(*step == 100 || *step == 101) << "step " << *step;
    const RankMemory& made = whole.memory.at(*step);
    ASSERT_TRUE(memory.tensor_bytes_held == made.tensor_bytes_held) << "step " << *step << " has other bytes";
    // Of a world of another size (an edited manifest may say so) no state is taken.
    const std::vector<std::string> untouched(1, std::string(24, '\xee'));
    ASSERT_TRUE(memory.state_bytes_held == made.state_bytes_held || memory.state_bytes_held == untouched)
        << "step " << *step << " has another state";
    refused[harm.name] += *step == 100 ? 1 : 0;
  }
  // What leaves the newest alone, or changes what no reader uses (the time, who asked), may restore
  // it.
  for (const char* name : {"a bit is flipped", "a file is cut short", "a file is longer", "the manifest is edited",
                           "two tensors trade places"})
    EXPECT_GT(refused[name], exhaustive() ? 60 : 0) << name;
}

TEST(Corruption, NeverRestoresAndNeverLosesTheOlderCheckpoint) {
  test::for_each_seed({.fixed = {1}}, restore_what_is_damaged);
}

}  // namespace
}  // namespace rekindle
