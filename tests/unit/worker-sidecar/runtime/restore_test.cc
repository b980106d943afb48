// rk_restore with a sidecar: offers are loaded and verified, the job decides, the memory and the
// slot hold what was taken.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "common/base/format.h"
#include "tests/support/checkpoint_builder.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/worker-sidecar/runtime/rank.h"

namespace rekindle::runtime {
namespace {

using ::testing::HasSubstr;
using testing::Rank;
using testing::ScriptedSidecar;

class Restoring : public ::testing::Test {
 protected:
  Restoring() : rank(sidecar.socket_path()) {
    rank.limits = testing::kQuick;
    job_folder = open_job_folder(real_file_system(), {.root = root.path(), .job = make_job(), .nonce = "abc"})->path;
    sidecar.job_folder = job_folder;
  }
  // The rank's thread ends before the rank does, also when a test is over before its restore is.
  ~Restoring() override {
    sidecar.die();
    if (restored.valid()) restored.wait();
  }
  static Layout layout() {
    return {
        {whole_tensor("weights", Dtype::f32, {4}), whole_tensor("statistics", Dtype::f32, {4}, WrittenIn::anywhere)}};
  }
  // A checkpoint of `step` whose bytes come from `seed`.
  OfferMessage save(std::uint64_t step, std::uint64_t seed, const Layout& saved = layout(),
                    std::uint32_t world_size = 1) {
    memory = make_memory(seed, saved, {{"counter", 8}});
    const std::string path =
        *save_checkpoint(real_file_system(), job_folder, make_job(),
                         {.attempt = 1, .step = step, .nonce = format("n{}", seed)}, memory, {}, world_size);
    return {.path = path, .step = step, .manifest_hash = read_manifest(real_file_system(), job_folder, path)->hash};
  }
  void damage(const OfferMessage& offer) {
    const std::string file = format("{}/{}/rank-0.safetensors", job_folder, offer.path);
    std::string bytes = read_bytes(file);
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    write_bytes(file, bytes);
  }
  // The rank, up to the point at which it waits for an offer.
  void open_and_register() {
    restored = std::async(std::launch::async, [&] {
      if (Done done = rank.open(); !done) throw std::runtime_error(done.error().message);
      if (rank.register_all() != RK_OK) throw std::runtime_error(last_error());
      const rk_status status = rank.session->restore(rank.position);
      return Failure{status, status == RK_OK ? "" : last_error()};
    });
    sidecar.welcome();
    sidecar.expect<RegisteredMessage>("registered");
  }
  LoadedMessage answer_to(const OfferMessage& offer) {
    sidecar.send(offer);
    return sidecar.expect<LoadedMessage>("loaded");
  }
  void take(const OfferMessage& offer) {
    sidecar.send(
        TakeMessage{.attempt = 2, .path = offer.path, .step = offer.step, .manifest_hash = offer.manifest_hash});
  }
  template <typename Value>
  static std::string bytes_of(const Value& value) {
    return std::string(reinterpret_cast<const char*>(&value), sizeof value);
  }

  std::future<Failure> restored;
  TemporaryFolder root;
  ScriptedSidecar sidecar;
  Rank rank;
  std::string job_folder;
  RankMemory memory;
};

TEST_F(Restoring, AnOfferThatTheWholeJobTookFillsMemoryAndSlot) {
  const OfferMessage offer = save(184, 1);
  open_and_register();
  EXPECT_EQ(sidecar.control.word().phase, RankPhase::restoring);
  EXPECT_FALSE(is_clean(sidecar.control.word()));
  const LoadedMessage loaded = answer_to(offer);
  EXPECT_TRUE(loaded.ok) << loaded.error.message;
  EXPECT_EQ(loaded.path, offer.path);
  EXPECT_EQ(loaded.step, 184u);
  EXPECT_FALSE(loaded.state_missing);
  take(offer);
  const Failure failure = restored.get();
  ASSERT_EQ(failure.status, RK_OK) << failure.message;
  EXPECT_EQ(rank.position.step, 184u);
  EXPECT_EQ(rank.position.attempt, 2u);
  EXPECT_EQ(rank.position.path, format("{}/{}", job_folder, offer.path));
  EXPECT_EQ(rank.position.flags, 0u);
  EXPECT_EQ(bytes_of(rank.weights), memory.tensor_bytes_held[0]);
  EXPECT_EQ(bytes_of(rank.statistics), memory.tensor_bytes_held[1]);
  EXPECT_EQ(bytes_of(rank.counter), memory.state_bytes_held[0]);
  EXPECT_EQ(sidecar.control.word().step, 184u);
  EXPECT_EQ(sidecar.control->attempt.load(), 2u);
  const auto slot = sidecar.control.slot(sidecar.control.word().slot);
  EXPECT_EQ(slot.step, 184u);
  EXPECT_EQ(slot.attempt, 2u);
  EXPECT_EQ(slot.values[1].second, memory.state_bytes_held[0]);
  EXPECT_EQ(rank.session->step_begin(185), RK_OK);
}

TEST_F(Restoring, ADamagedCheckpointIsRefusedAndTheNextOneTaken) {
  const OfferMessage newer = save(20, 2);
  const OfferMessage older = save(10, 1);
  damage(newer);
  open_and_register();
  const LoadedMessage refused = answer_to(newer);
  EXPECT_FALSE(refused.ok);
  EXPECT_EQ(refused.error.code, ErrorCode::corrupt);
  EXPECT_THAT(refused.error.message, HasSubstr("rank-0.safetensors"));
  EXPECT_TRUE(answer_to(older).ok);
  take(older);
  EXPECT_EQ(restored.get().status, RK_OK);
  EXPECT_EQ(rank.position.step, 10u);
  EXPECT_EQ(bytes_of(rank.weights), memory.tensor_bytes_held[0]);
}

// What the job makes of it is checkpoint/restore_policy.h; the rank says what it has met.
TEST_F(Restoring, AMissingFileIsToldAsOneThatMayComeBack) {
  const OfferMessage offer = save(20, 2);
  const std::string file = format("{}/{}/rank-0.safetensors", job_folder, offer.path);
  std::filesystem::rename(file, file + ".moved");
  open_and_register();
  const LoadedMessage missing = answer_to(offer);
  EXPECT_FALSE(missing.ok);
  EXPECT_EQ(missing.error.code, ErrorCode::not_found);
  EXPECT_EQ(missing.error.retry, Retry::yes);
  std::filesystem::rename(file + ".moved", file);
  EXPECT_TRUE(answer_to(offer).ok);
  take(offer);
  EXPECT_EQ(restored.get().status, RK_OK);
}

TEST_F(Restoring, AFifoInPlaceOfADataFileIsDamage) {
  const OfferMessage newer = save(20, 2);
  const OfferMessage older = save(10, 1);
  const std::string file = format("{}/{}/rank-0.safetensors", job_folder, newer.path);
  std::filesystem::remove(file);
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  open_and_register();
  const LoadedMessage refused = answer_to(newer);
  EXPECT_FALSE(refused.ok);
  EXPECT_EQ(refused.error.code, ErrorCode::corrupt);
  EXPECT_EQ(refused.error.retry, Retry::no);
  EXPECT_TRUE(answer_to(older).ok);
  take(older);
  EXPECT_EQ(restored.get().status, RK_OK);
}

TEST_F(Restoring, AnotherManifestThanTheOneOfferedIsRefused) {
  OfferMessage offer = save(20, 2);
  offer.manifest_hash = std::string(32, '0');
  open_and_register();
  const LoadedMessage refused = answer_to(offer);
  EXPECT_FALSE(refused.ok);
  EXPECT_THAT(refused.error.message, HasSubstr("was to be restored"));
}

TEST_F(Restoring, ALayoutThatDoesNotFitListsTheDifferences) {
  const OfferMessage offer =
      save(20, 2, {{whole_tensor("weights", Dtype::f32, {8}), whole_tensor("old", Dtype::u8, {3})}});
  open_and_register();
  const LoadedMessage refused = answer_to(offer);
  EXPECT_FALSE(refused.ok);
  EXPECT_EQ(refused.error.code, ErrorCode::invalid_input);
  sidecar.send(RefusedMessage{{ErrorCode::refused, "no checkpoint fits every rank", Retry::no}});
  const Failure failure = restored.get();
  EXPECT_EQ(failure.status, RK_ERROR_MISMATCH);
  for (const char* name : {"weights", "statistics", "old"}) EXPECT_THAT(failure.message, HasSubstr(name));
  EXPECT_EQ(rank.session->step_begin(1), RK_ERROR_STATE);
  EXPECT_THAT(last_error(), HasSubstr("after rk_restore or rk_rebuild has failed"));
  EXPECT_EQ(rank.session->close(), 1);
}

TEST_F(Restoring, SmallStateOfAnotherNumberOfRanksIsMissingAndLeftUntouched) {
  const OfferMessage offer = save(20, 2, layout(), 2);
  open_and_register();
  rank.counter = 77;
  EXPECT_TRUE(answer_to(offer).state_missing);
  take(offer);
  ASSERT_EQ(restored.get().status, RK_OK);
  EXPECT_EQ(rank.position.flags, static_cast<std::uint32_t>(RK_STATE_MISSING));
  EXPECT_EQ(rank.counter, 77u);
  EXPECT_EQ(bytes_of(rank.weights), memory.tensor_bytes_held[0]);
  rank.counter = 20;  // derived by the program
  ASSERT_EQ(rank.session->step_begin(21), RK_OK);
  EXPECT_EQ(sidecar.control.slot(sidecar.control.word().slot).values[1].second, bytes_of(std::uint64_t{20}));
}

TEST_F(Restoring, MemoryThatHoldsPartsOfARefusedCheckpointDoesNotBeginAtStepZero) {
  const OfferMessage offer = save(20, 2);
  damage(offer);
  open_and_register();
  EXPECT_FALSE(answer_to(offer).ok);
  const LoadedMessage nothing = answer_to(OfferMessage{});
  EXPECT_FALSE(nothing.ok);
  EXPECT_THAT(nothing.error.message, HasSubstr("cannot begin at step 0"));
}

TEST_F(Restoring, AnOrderToTakeWhatWasNotLoadedIsAnError) {
  const OfferMessage offer = save(20, 2);
  open_and_register();
  EXPECT_TRUE(answer_to(offer).ok);
  take({.path = "a1-s21-other", .step = 21, .manifest_hash = offer.manifest_hash});
  const Failure failure = restored.get();
  EXPECT_EQ(failure.status, RK_ERROR_INTERNAL);
  EXPECT_THAT(failure.message, HasSubstr("a1-s21-other"));
}

TEST_F(Restoring, ASidecarThatStaysAwayEndsTheWait) {
  open_and_register();
  sidecar.die();
  const Failure failure = restored.get();
  EXPECT_EQ(failure.status, RK_ERROR_UNAVAILABLE);
  EXPECT_THAT(failure.message, HasSubstr("went away while the job was restoring"));
}

TEST_F(Restoring, AManifestThatIsNotThereYetIsToldAtOnceAsOneThatMayAppear) {
  const OfferMessage offer = save(20, 2);
  const std::string manifest = format("{}/{}/manifest.json", job_folder, offer.path);
  std::filesystem::rename(manifest, manifest + ".hidden");
  open_and_register();
  const LoadedMessage missing = answer_to(offer);
  EXPECT_FALSE(missing.ok);
  EXPECT_EQ(missing.error.code, ErrorCode::not_found);
  EXPECT_EQ(missing.error.retry, Retry::yes);
  std::filesystem::rename(manifest + ".hidden", manifest);
  EXPECT_TRUE(answer_to(offer).ok);
  take(offer);
  EXPECT_EQ(restored.get().status, RK_OK);
}

}  // namespace
}  // namespace rekindle::runtime
