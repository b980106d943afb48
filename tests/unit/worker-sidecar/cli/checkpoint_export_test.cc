#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "tests/unit/worker-sidecar/cli/run_checkpoint.h"
#include "tests/unit/worker-sidecar/cli/saved_job.h"
#include "worker-sidecar/checkpoint/hash.h"
#include "worker-sidecar/checkpoint/safetensors.h"

namespace rekindle::cli {
namespace {

class CheckpointExport : public SavedJob {};

TEST(CheckpointExportHelp, NamesEachThingThatItNeedsOnce) {
  const std::string help = run({"export", "--help"}).out;
  const std::string what = "the file to write, which must not exist";
  const std::size_t first = help.find(what);
  ASSERT_NE(first, std::string::npos) << help;
  EXPECT_EQ(help.find(what, first + 1), std::string::npos) << help;
}

TEST_F(CheckpointExport, WritesWholeTensors) {
  const std::string target = root_.at("all.safetensors");
  const Ran ran = run({"export", folder_, target});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const std::string bytes = read_bytes(target);
  const auto header = data_header_bytes(bytes, bytes.size());
  ASSERT_TRUE(header.has_value());
  const auto entries = decode_data_header(bytes.substr(0, *header), bytes.size());
  ASSERT_TRUE(entries.has_value()) << entries.error().message;
  const RankMemory memory = make_memory(184, small_layout());
  ASSERT_EQ(entries->size(), memory.layout.tensors.size());
  for (std::size_t i = 0; i < memory.layout.tensors.size(); ++i) {
    const auto entry = std::ranges::find(*entries, memory.layout.tensors[i].name, &DataEntry::key);
    ASSERT_NE(entry, entries->end()) << memory.layout.tensors[i].name;
    EXPECT_EQ(entry->shape, memory.layout.tensors[i].shape);
    EXPECT_EQ(bytes.substr(entry->begin_byte, entry->end_byte - entry->begin_byte), memory.tensor_bytes_held[i]);
  }
}

TEST_F(CheckpointExport, TheTargetMayBeTheSecondWord) {
  EXPECT_EQ(run({"export", folder_, root_.at("one")}).code, 0);
  EXPECT_EQ(run({"export", folder_, root_.at("two")}).code, 0);
  EXPECT_EQ(read_bytes(root_.at("one")), read_bytes(root_.at("two")));
}

TEST_F(CheckpointExport, EqualTensorsGiveEqualBytesHoweverTheyWereCut) {
  RankMemory memory = make_memory(184, small_layout());
  std::ranges::reverse(memory.layout.tensors);
  std::ranges::reverse(memory.tensor_bytes_held);
  ASSERT_TRUE(save_checkpoint(real_file_system(), folder_, make_job(), {1, 200, "y"}, memory, {}, 5));
  ASSERT_EQ(run({"export", folder_ + "/a1-s184-x", root_.at("first")}).code, 0);
  ASSERT_EQ(run({"export", folder_ + "/a1-s200-y", root_.at("second")}).code, 0);
  EXPECT_EQ(hash_of(read_bytes(root_.at("first"))), hash_of(read_bytes(root_.at("second"))));
  EXPECT_EQ(read_bytes(root_.at("first")), read_bytes(root_.at("second")));
}

// Larger than a block in two dimensions, so that rows and parts of rows are read one after the
// other.
TEST_F(CheckpointExport, ALargeTensorComesInPortions) {
  const RankMemory memory = make_memory(5, {{whole_tensor("big", Dtype::u8, {2, 3, 7'000'001})}});
  save({1, 300, "x"}, memory);
  ASSERT_EQ(run({"export", folder_, root_.at("big")}).code, 0);
  const std::string bytes = read_bytes(root_.at("big"));
  EXPECT_TRUE(std::string_view(bytes).ends_with(memory.tensor_bytes_held[0]));
  EXPECT_EQ(run({"diff", folder_ + "/a1-s300-x", folder_ + "/a1-s300-x"}).code, 0);
}

// Elements narrower than a byte: cut by five writers, read in blocks that end where a byte does,
// and imported again.
TEST_F(CheckpointExport, PackedElementsComeThroughEverything) {
  const Layout layout{{whole_tensor("large", Dtype::f4, {2, 35'000'002}), whole_tensor("line", Dtype::f6_e2m3, {36}),
                       whole_tensor("nibbles", Dtype::f4, {22}), whole_tensor("table", Dtype::f6_e3m2, {7, 12}),
                       whole_tensor("phase", Dtype::c64, {5})}};
  const RankMemory memory = make_memory(9, layout, {});
  ASSERT_TRUE(save_checkpoint(real_file_system(), folder_, make_job(), {1, 300, "x"}, memory, {}, 5));
  ASSERT_TRUE(save_checkpoint(real_file_system(), folder_, make_job(), {1, 301, "x"}, memory, {}, 2));
  const Ran compared = run({"diff", folder_ + "/a1-s300-x", folder_ + "/a1-s301-x"});
  EXPECT_EQ(compared.code, 0) << compared.out << compared.err;
  const Ran shown = run({"show", folder_ + "/a1-s300-x"});
  EXPECT_NE(shown.out.find("F6_E3M2"), std::string::npos) << shown.out;
  ASSERT_EQ(run({"export", folder_ + "/a1-s300-x", root_.at("all.safetensors")}).code, 0);
  const Ran imported =
      run({"import", root_.at("all.safetensors"), "--root", root_.path(), "--job", "team-b.packed", "--step", "1"});
  ASSERT_EQ(imported.code, 0) << imported.err;
  ASSERT_EQ(run({"export", root_.at("team-b.packed"), root_.at("again.safetensors")}).code, 0);
  const std::string bytes = read_bytes(root_.at("all.safetensors"));
  EXPECT_TRUE(bytes == read_bytes(root_.at("again.safetensors")));
  const std::uint64_t header = data_header_bytes(bytes, bytes.size()).value();
  const std::vector<DataEntry> entries = decode_data_header(bytes.substr(0, header), bytes.size()).value();
  ASSERT_EQ(entries.size(), layout.tensors.size());
  for (const DataEntry& entry : entries) {
    const auto tensor = std::ranges::find(layout.tensors, entry.key, &TensorDescription::name);
    EXPECT_TRUE(bytes.substr(entry.begin_byte, entry.end_byte - entry.begin_byte) ==
                memory.tensor_bytes_held[tensor - layout.tensors.begin()])
        << entry.key;
  }
}

TEST_F(CheckpointExport, RefusesDamageAndNeverOverwrites) {
  write_bytes(root_.at("precious"), "mine");
  const Ran taken = run({"export", folder_, root_.at("precious")});
  EXPECT_EQ(taken.code, 2);
  EXPECT_NE(taken.err.find("is there already and stays as it is"), std::string::npos) << taken.err;
  EXPECT_EQ(read_bytes(root_.at("precious")), "mine");
  flip("a1-s184-x/rank-0.safetensors", 100);
  const Ran ran = run({"export", folder_, root_.at("new")});
  EXPECT_EQ(ran.code, 1);
  EXPECT_NE(ran.err.find("nothing was exported: a1-s184-x is damaged"), std::string::npos) << ran.err;
  EXPECT_EQ(names_in(root_.path()), (std::vector<std::string>{"precious", "team-a.digits"}));
}

}  // namespace
}  // namespace rekindle::cli
