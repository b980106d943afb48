// With a sidecar: a checkpoint of every kind of registered memory and state, back in a rank.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/format.h"
#include "tests/unit/worker-sidecar/runtime/every_kind.h"

namespace rekindle::runtime {
namespace {

using testing::EveryKind;
using ::testing::HasSubstr;

// What a checkpoint of two ranks holds of them; `cursors` are rank 0's and rank 1's.
class RestoringEveryKind : public EveryKind {
 protected:
  using EveryKind::EveryKind;

  OfferMessage save(const std::string& loader_bytes, const std::vector<std::string>& cursors,
                    bool lost_rank_0 = false) {
    RankMemory memory =
        make_memory(1, {{whole_tensor("view", Dtype::f32, {3, 2}), whole_tensor("there", Dtype::u8, {17})}}, {});
    memory.tensor_bytes_held[0] = bytes_of(std::array<float, 6>{10, 13, 11, 14, 12, 15});
    memory.tensor_bytes_held[1] = "restored bytes...";
    const std::string path =
        *create_checkpoint_folder(real_file_system(), job_folder, {.attempt = 1, .step = 20, .nonce = "abc"});
    Manifest manifest{.kind = CheckpointKind::breakpoint,
                      .job = make_job(),
                      .attempt = 1,
                      .step = 20,
                      .term = 1,
                      .world_size = 2,
                      .live_ranks = 2};
    const std::vector<WriterPlan> plan = split_for_writers(memory.layout, {0});
    std::vector<MemoryPiece> pieces;
    for (std::size_t i = 0; i < memory.layout.tensors.size(); ++i) {
      const TensorDescription& tensor = memory.layout.tensors[i];
      pieces.push_back(
          {.entry = entry_of_piece(tensor, 0, row_count(tensor)), .data = memory.tensor_bytes_held[i].data()});
    }
    const Result<WrittenDataFile> written =
        write_data_file(real_file_system(), format("{}/{}", job_folder, path), plan[0].file, pieces);
    WrittenFile report{
        .file = plan[0].file, .bytes = written->bytes, .hash = written->hash, .chunks = written->chunks, .entries = {}};
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      report.entries.push_back({.key = written->entries[i].key,
                                .tensor = memory.layout.tensors[i].name,
                                .begin_row = 0,
                                .end_row = row_count(memory.layout.tensors[i]),
                                .begin_byte = written->entries[i].begin_byte,
                                .end_byte = written->entries[i].end_byte});
    }
    EXPECT_TRUE(add_tensors(manifest, {{&memory.layout, report}}));
    std::vector<MemoryPiece> states;
    std::vector<ManifestState> entries;
    for (std::uint32_t number = lost_rank_0 ? 1 : 0; number < cursors.size(); ++number) {
      for (const auto& [name, bytes] :
           {std::pair<std::string, const std::string&>{"loader", loader_bytes}, {"rekindle.cursor", cursors[number]}}) {
        states.push_back(
            {.entry = entry_of_state(number, {.name = name, .bytes = bytes.size()}), .data = bytes.data()});
        entries.push_back({.rank = number,
                           .name = name,
                           .file = "state-0.safetensors",
                           .key = states.back().entry.key,
                           .bytes = bytes.size()});
      }
    }
    if (lost_rank_0) manifest.inexact_ranks = {0};
    const Result<WrittenDataFile> kept =
        write_data_file(real_file_system(), format("{}/{}", job_folder, path), "state-0.safetensors", states);
    for (std::size_t i = 0; i < entries.size(); ++i) {
      entries[i].begin_byte = kept->entries[i].begin_byte;
      entries[i].end_byte = kept->entries[i].end_byte;
    }
    add_states(manifest,
               {.name = "state-0.safetensors", .bytes = kept->bytes, .hash = kept->hash, .chunks = kept->chunks},
               entries);
    const Result<std::string> hash = publish_manifest(real_file_system(), job_folder, path, manifest, "abc");
    EXPECT_TRUE(hash) << hash.error().message;
    return {.path = path, .step = 20, .manifest_hash = *hash};
  }
  LoadedMessage answer_to(const OfferMessage& offer) {
    sidecar.send(offer);
    return sidecar.expect<LoadedMessage>("loaded");
  }
  Failure take(const OfferMessage& offer) {
    sidecar.send(
        TakeMessage{.attempt = 2, .path = offer.path, .step = offer.step, .manifest_hash = offer.manifest_hash});
    return restored.get();
  }
};

TEST_F(RestoringEveryKind, PutsEachValueWhereItBelongsOnceTheJobHasTaken) {
  const OfferMessage offer = save("the loader's state", {cursor_bytes(3, 4096), cursor_bytes(3, 4096)});
  open_and_register();
  const LoadedMessage loaded = answer_to(offer);
  EXPECT_TRUE(loaded.ok) << loaded.error.message;
  EXPECT_EQ(loader.loaded, "never loaded") << "another rank may still refuse the checkpoint";
  EXPECT_EQ(cursor.epoch, 2u);
  ASSERT_EQ(take(offer).status, RK_OK);
  EXPECT_EQ(matrix, (std::array<float, 6>{10, 11, 12, 13, 14, 15})) << "scattered into the view's memory";
  EXPECT_EQ(device.bytes().substr(0, 17), "restored bytes...");
  // Two ranks saved it and one restores: small state is not this rank's, the cursor is everybody's.
  EXPECT_TRUE(loaded.state_missing);
  EXPECT_EQ(loader.loaded, "never loaded");
  EXPECT_EQ(cursor.epoch, 3u);
  EXPECT_EQ(cursor.samples, 4096u);
}

TEST_F(RestoringEveryKind, RanksThatReadTheirDataDifferentlyFarAreRefusedWithBothNumbers) {
  const OfferMessage offer = save("x", {cursor_bytes(3, 4096), cursor_bytes(3, 4224)});
  open_and_register();
  const LoadedMessage loaded = answer_to(offer);
  EXPECT_FALSE(loaded.ok);
  EXPECT_EQ(loaded.error.code, ErrorCode::corrupt);
  EXPECT_THAT(loaded.error.message,
              HasSubstr("rank 0 was at sample 4096 of epoch 3, rank 1 was at sample 4224 of epoch 3"));
}

TEST_F(RestoringEveryKind, ADeviceThatTakesNothingFailsTheRestoreWithTheTensor) {
  const OfferMessage offer = save("x", {cursor_bytes(3, 1), cursor_bytes(3, 1)});
  device.copy_answer = 702;
  open_and_register();
  EXPECT_THAT(answer_to(offer).error.message,
              HasSubstr("tensor 'there' cannot be copied to its device: rk_memory.copy_in returned 702"));
}

// The same job with the same number of ranks; this is its rank 0.
class RestoringRankZeroOfTwo : public RestoringEveryKind {
 protected:
  RestoringRankZeroOfTwo() : RestoringEveryKind(2) {}
};

TEST_F(RestoringRankZeroOfTwo, LoadsItsStateWithExactlyTheBytesThatWereSaved) {
  const OfferMessage offer = save("the loader's state", {cursor_bytes(3, 4096), cursor_bytes(3, 4096)});
  open_and_register();
  EXPECT_FALSE(answer_to(offer).state_missing);
  EXPECT_EQ(loader.loaded, "never loaded");
  ASSERT_EQ(take(offer).status, RK_OK);
  EXPECT_EQ(loader.loaded, "the loader's state");
  EXPECT_EQ(cursor.samples, 4096u);
}

TEST_F(RestoringRankZeroOfTwo, AnEmptyStateIsLoadedAsOne) {
  const OfferMessage offer = save("", {cursor_bytes(3, 1), cursor_bytes(3, 1)});
  open_and_register();
  EXPECT_TRUE(answer_to(offer).ok);
  ASSERT_EQ(take(offer).status, RK_OK);
  EXPECT_EQ(loader.loaded, "");
}

TEST_F(RestoringRankZeroOfTwo, ThatLostItsStateTakesTheCursorFromTheOtherRank) {
  const OfferMessage offer = save("x", {cursor_bytes(9, 9), cursor_bytes(3, 4096)}, true);
  open_and_register();
  EXPECT_TRUE(answer_to(offer).state_missing);
  ASSERT_EQ(take(offer).status, RK_OK);
  EXPECT_EQ(rank.position.flags, std::uint32_t{RK_STATE_MISSING});
  EXPECT_EQ(loader.loaded, "never loaded");
  EXPECT_EQ(cursor.epoch, 3u);
}

TEST_F(RestoringRankZeroOfTwo, AStateLargerThanWhatIsRegisteredNowIsADifference) {
  const OfferMessage offer = save(std::string(65, 'x'), {cursor_bytes(3, 1), cursor_bytes(3, 1)});
  open_and_register();
  EXPECT_THAT(answer_to(offer).error.message,
              HasSubstr("state \"loader\" has at most 64 bytes here and 65 in the checkpoint"));
}

TEST_F(RestoringRankZeroOfTwo, ALoadFunctionThatRefusesFailsTheRestoreWithItsName) {
  const OfferMessage offer = save("of another program", {cursor_bytes(3, 1), cursor_bytes(3, 1)});
  loader.load_answer = 4;
  open_and_register();
  EXPECT_TRUE(answer_to(offer).ok);
  const Failure failure = take(offer);
  EXPECT_EQ(failure.status, RK_ERROR_MISMATCH);
  EXPECT_THAT(failure.message, HasSubstr("the load function of state 'loader' returned 4 for the 18 bytes"));
  EXPECT_EQ(rank.session->close(), 1);
}

}  // namespace
}  // namespace rekindle::runtime
