// rekindle-sidecar as pods run it: real processes, mutual TLS on loopback, an operator stand-in,
// ranks that train and die.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "operator_stand_in.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_process.h"

namespace rekindle::sidecar {
namespace {

namespace fs = std::filesystem;

constexpr const char* kJobUid = "0b1c-job";

// One pod: a folder with run, bin and tls volumes, a sidecar and its rank.
class Pod {
 public:
  Pod(const std::string& folder, const TestAuthority& authority, const OperatorStandIn& the_operator,
      const std::string& shared, std::uint32_t ordinal, std::uint32_t pods, const std::string& life)
      : folder_(folder) {
    for (const char* name : {"run", "bin", "tls"}) fs::create_directories(at(name));
    const LeafCertificate leaf{.common_name = "sidecar",
                               .names = {.uri = {std::string("rekindle://team/") + kJobUid}},
                               .validity = valid_around_now(),
                               .for_server = true,
                               .for_client = true};
    const TlsKeyPair pair = sign_certificate(authority.pair(), leaf).value();
    write_bytes(at("tls/tls.crt"), pair.certificate_pem);
    write_bytes(at("tls/tls.key"), pair.private_key_pem);
    write_bytes(at("tls/ca.crt"), authority.pem());
    environment_ = {{"REKINDLE_SOCKET", at("run/sidecar.sock")},
                    {"REKINDLE_CHECKPOINT_DIR", shared + "/checkpoints"},
                    {"REKINDLE_NAMESPACE", "team"},
                    {"REKINDLE_JOB", "digits"},
                    {"REKINDLE_JOB_UID", kJobUid},
                    {"REKINDLE_POD_ORDINAL", std::to_string(ordinal)},
                    {"REKINDLE_PODS", std::to_string(pods)},
                    {"REKINDLE_RANKS_PER_POD", "1"},
                    {"REKINDLE_WORLD_SIZE", std::to_string(pods)},
                    {"REKINDLE_RANK", std::to_string(ordinal)},
                    {"REKINDLE_DEADLINE_SECONDS", "20"},
                    {"REKINDLE_GRACE_SECONDS", "35"},
                    {"REKINDLE_OPERATOR", the_operator.address()},
                    {"REKINDLE_POD_NAME", "digits-worker-" + std::to_string(ordinal)},
                    {"REKINDLE_POD_UID", "pod-" + std::to_string(ordinal) + "-" + life},
                    {"REKINDLE_POD_ADDRESS", "127.0.0.1"},
                    {"REKINDLE_TLS_DIR", at("tls")},
                    {"REKINDLE_BIN_DIR", at("bin")},
                    {"REKINDLE_PEER_PORT", "0"},
                    {"REKINDLE_METRICS_PORT", "0"},
                    {"TEST_FOLDER", shared},
                    {"TEST_STEPS", "60"},
                    {"TEST_STEP_MICROSECONDS", "5000"}};
  }

  std::string at(const std::string& name) const { return folder_ + "/" + name; }
  TestProcess::Environment& environment() { return environment_; }
  void start_sidecar() {
    sidecar_ =
        std::make_unique<TestProcess>(std::vector<std::string>{REKINDLE_SIDECAR}, environment_, at("sidecar.log"));
  }
  void start_rank() {
    rank_ = std::make_unique<TestProcess>(std::vector<std::string>{REKINDLE_TEST_RANK}, environment_, at("rank.log"));
  }
  bool ready() {
    TestProcess probe({REKINDLE_SIDECAR, "ready"}, environment_, at("probe.log"));
    return probe.wait() == 0;
  }
  TestProcess& sidecar() { return *sidecar_; }
  TestProcess& rank() { return *rank_; }
  std::string logs() const {
    return "--- " + folder_ + "\n" + (sidecar_ ? sidecar_->output() : "") + (rank_ ? rank_->output() : "");
  }

 private:
  std::string folder_;
  TestProcess::Environment environment_;
  std::unique_ptr<TestProcess> sidecar_;
  std::unique_ptr<TestProcess> rank_;
};

class PodSidecar : public testing::Test {
 protected:
  void SetUp() override { fs::create_directory(shared_.at("checkpoints")); }

  // The pods of one life, sidecars started.
  std::vector<std::unique_ptr<Pod>> start_pods(std::uint32_t count, const std::string& life,
                                               const std::string& fault = "", std::uint32_t ranks_per_pod = 1) {
    if (!operator_) operator_ = std::make_unique<OperatorStandIn>(authority_, kJobUid, count);
    std::vector<std::unique_ptr<Pod>> pods;
    for (std::uint32_t ordinal = 0; ordinal < count; ++ordinal) {
      pods.push_back(std::make_unique<Pod>(pods_.at(life + std::to_string(ordinal)), authority_, *operator_,
                                           shared_.path(), ordinal, count, life));
      TestProcess::Environment& environment = pods.back()->environment();
      environment["REKINDLE_RANKS_PER_POD"] = std::to_string(ranks_per_pod);
      environment["REKINDLE_WORLD_SIZE"] = std::to_string(count * ranks_per_pod);
      if (!fault.empty()) environment["TEST_FAULT"] = fault;
      pods.back()->start_sidecar();
    }
    return pods;
  }
  static std::string logs(const std::vector<std::unique_ptr<Pod>>& pods) {
    std::string text;
    for (const auto& pod : pods) text += pod->logs();
    return text;
  }
  std::uint64_t number_in(const std::string& name) {
    std::ifstream file(shared_.at(name));
    std::uint64_t value = 0;
    file >> value;
    return value;
  }
  bool trains_to(std::uint64_t step, std::uint32_t ranks) {
    return eventually([&] {
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        if (number_in("step-" + std::to_string(rank)) < step) return false;
      }
      return true;
    });
  }
  static TestProcess hook(Pod& pod) { return {{pod.at("bin/rekindle-hook")}, pod.environment(), pod.at("hook.log")}; }

  TemporaryFolder shared_;  // what the checkpoint volume is to pods, and the results
  TemporaryFolder pods_;
  TestAuthority authority_;
  std::unique_ptr<OperatorStandIn> operator_;
};

TEST_F(PodSidecar, PutsTheProgramsOnTheSharedVolumeBeforeItIsReady) {
  auto pods = start_pods(1, "a");
  ASSERT_TRUE(eventually([&] { return pods[0]->ready(); })) << logs(pods);
  for (const char* name : {"rekindle-hook", "rekindle", "librekindle.so"}) {
    EXPECT_EQ(fs::status(pods[0]->at("bin/" + std::string(name))).permissions(), fs::perms(0755)) << name;
  }
}

TEST_F(PodSidecar, TheProbeSaysNoWhileNobodyAnswers) {
  auto pods = start_pods(1, "a");
  pods[0]->sidecar().signal(SIGKILL);
  pods[0]->sidecar().wait();
  EXPECT_FALSE(pods[0]->ready());
}

// Each wrote to a folder of its own, "durable" was said, and every step was lost at the restart.
TEST_F(PodSidecar, PodsThatDoNotShareTheirCheckpointFolderDoNotStart) {
  auto pods = start_pods(2, "a");
  fs::create_directory(pods[1]->at("own"));
  pods[1]->sidecar().signal(SIGKILL);
  pods[1]->sidecar().wait();
  pods[1]->environment()["REKINDLE_CHECKPOINT_DIR"] = pods[1]->at("own");
  pods[1]->start_sidecar();
  for (auto& pod : pods) pod->start_rank();
  EXPECT_NE(pods[1]->rank().wait(), 0) << logs(pods);
  EXPECT_TRUE(pods[1]->rank().output().contains("the pods do not share this folder")) << logs(pods);
}

TEST_F(PodSidecar, ARankThatIsKilledIsSavedByTheOthersAndTheNextLifeGoesOn) {
  std::uint64_t saved = 0;
  {
    auto pods = start_pods(2, "a", "1:20:computing");
    for (auto& pod : pods) pod->start_rank();
    ASSERT_TRUE(eventually([&] { return !operator_->breakpoint("durable").is_null(); })) << logs(pods);
    const auto breakpoint = operator_->breakpoint("durable");
    saved = breakpoint["step"];
    EXPECT_EQ(saved, 19u);
    EXPECT_EQ(breakpoint["cause"], "rank_died");
    // Its container has ended, so the kubelet ends the sidecar; it has nothing to wait for any
    // more.
    pods[1]->sidecar().signal(SIGTERM);
    EXPECT_EQ(pods[1]->sidecar().wait(), 0) << logs(pods);
    // The other pod is deleted: hook, then SIGTERM.
    TestProcess asked = hook(*pods[0]);
    EXPECT_EQ(asked.wait(), 0) << asked.output();
    pods[0]->rank().signal(SIGTERM);
    pods[0]->rank().wait();
    pods[0]->sidecar().signal(SIGTERM);
    EXPECT_EQ(pods[0]->sidecar().wait(), 0) << logs(pods);
  }
  operator_->forget_pods();
  auto pods = start_pods(2, "b");
  for (auto& pod : pods) pod->start_rank();
  for (auto& pod : pods) EXPECT_EQ(pod->rank().wait(), 0) << logs(pods);
  EXPECT_EQ(number_in("first-0-2"), saved + 1);
  EXPECT_EQ(number_in("first-1-2"), saved + 1);
  EXPECT_EQ(read_bytes(shared_.at("weights-0")), read_bytes(shared_.at("weights-1")));
}

TEST_F(PodSidecar, EveryPodOfTheNextLifeTellsWhatTheManifestSays) {
  {
    auto pods = start_pods(2, "a", "1:20:computing");
    for (auto& pod : pods) pod->start_rank();
    ASSERT_TRUE(eventually([&] { return !operator_->breakpoint("durable").is_null(); })) << logs(pods);
    for (auto& pod : pods) {
      pod->rank().signal(SIGKILL);
      pod->rank().wait();
      pod->sidecar().signal(SIGKILL);
      pod->sidecar().wait();
    }
  }
  const auto saved = operator_->breakpoint("durable");
  operator_->forget_pods();
  auto pods = start_pods(2, "b");
  for (auto& pod : pods) pod->start_rank();
  for (std::uint32_t ordinal = 0; ordinal < 2; ++ordinal) {
    ASSERT_TRUE(eventually([&] { return operator_->report_of(ordinal).value("attempt", 0) == 2; })) << logs(pods);
    const auto restored = operator_->report_of(ordinal)["restored"];
    EXPECT_EQ(restored["path"], saved["path"]) << restored;
    EXPECT_EQ(restored["manifest_hash"], saved["manifest_hash"]) << restored;
    EXPECT_EQ(restored["bytes"], saved["bytes"]) << restored;
    EXPECT_EQ(restored["ranks"], (nlohmann::json{{"expected", 2}, {"live", 1}})) << restored;
    EXPECT_EQ(restored["agreed_milliseconds"], saved["agreed_milliseconds"]) << restored;
  }
}

TEST_F(PodSidecar, TheHookReturnsWhenTheStepIsDurable) {
  auto pods = start_pods(2, "a");
  for (auto& pod : pods) pod->start_rank();
  ASSERT_TRUE(trains_to(10, 2)) << logs(pods);
  TestProcess asked = hook(*pods[1]);
  EXPECT_EQ(asked.wait(), 0) << asked.output() << logs(pods);
  EXPECT_TRUE(asked.output().contains("is durable in a1-s")) << asked.output();
  ASSERT_TRUE(eventually([&] { return !operator_->breakpoint("durable").is_null(); }));
  EXPECT_EQ(operator_->breakpoint("durable")["cause"], "hook");
  const std::string path = operator_->breakpoint("durable")["path"];
  EXPECT_TRUE(fs::exists(shared_.at("checkpoints/team.digits/" + path + "/manifest.json")));
}

TEST_F(PodSidecar, AnOrderOfTheOperatorIsCarriedOutOnceAndTrainingGoesOn) {
  auto pods = start_pods(2, "a");
  for (auto& pod : pods) pod->start_rank();
  ASSERT_TRUE(trains_to(5, 2)) << logs(pods);
  operator_->order({{"breakpoint", "digits-1-ab12"},
                    {"cause", "operator"},
                    {"detail", "asked by hand"},
                    {"seconds_left", 20},
                    {"after", "go_on"}});
  ASSERT_TRUE(eventually([&] { return !operator_->breakpoint("durable").is_null(); })) << logs(pods);
  EXPECT_EQ(operator_->breakpoint("durable")["id"], "digits-1-ab12");
  for (auto& pod : pods) EXPECT_EQ(pod->rank().wait(), 0) << logs(pods);
  const auto folders = std::distance(fs::directory_iterator(shared_.at("checkpoints/team.digits")), {});
  EXPECT_EQ(folders, 3) << "attempts, job.json and one checkpoint";
}

TEST_F(PodSidecar, AnOperatorThatWasStartedAnewDoesNotPartThePods) {
  auto pods = start_pods(2, "a");
  for (auto& pod : pods) pod->start_rank();
  ASSERT_TRUE(trains_to(5, 2)) << logs(pods);
  operator_->forget_addresses();
  // the answers without addresses have come long before
  ASSERT_TRUE(trains_to(40, 2)) << logs(pods);
  EXPECT_FALSE(logs(pods).contains("a peer is gone")) << logs(pods);
  for (auto& pod : pods) EXPECT_EQ(pod->rank().wait(), 0) << logs(pods);
}

TEST_F(PodSidecar, ASidecarThatIsKilledAndComesBackLosesNothing) {
  auto pods = start_pods(2, "a", "0:40:computing");
  for (auto& pod : pods) pod->start_rank();
  ASSERT_TRUE(trains_to(8, 2)) << logs(pods);
  pods[1]->sidecar().signal(SIGKILL);
  pods[1]->sidecar().wait();
  pods[1]->start_sidecar();
  ASSERT_TRUE(eventually([&] { return !operator_->breakpoint("durable").is_null(); })) << logs(pods);
  EXPECT_EQ(operator_->breakpoint("durable")["step"], 39u) << logs(pods);
}

TEST_F(PodSidecar, ASidecarThatComesBackTellsNothingAboutARestoreThatItDidNotSee) {
  auto pods = start_pods(2, "a");
  // they still train when it is back
  for (auto& pod : pods) pod->environment()["TEST_STEPS"] = "2000";
  for (auto& pod : pods) pod->start_rank();
  ASSERT_TRUE(eventually([&] { return operator_->report_of(1).contains("restored"); })) << logs(pods);
  pods[1]->sidecar().signal(SIGKILL);
  pods[1]->sidecar().wait();
  pods[1]->start_sidecar();
  EXPECT_TRUE(eventually([&] {
    return operator_->report_of(1).value("attempt", 0) == 1 && !operator_->report_of(1).contains("restored");
  })) << logs(pods);
}

TEST_F(PodSidecar, AFolderThatCannotBeUsedIsToldToTheRankAndTheOperator) {
  fs::remove(shared_.at("checkpoints"));
  auto pods = start_pods(1, "a");
  pods[0]->start_rank();
  EXPECT_NE(pods[0]->rank().wait(), 0);
  EXPECT_TRUE(pods[0]->rank().output().contains(shared_.at("checkpoints"))) << logs(pods);
  EXPECT_TRUE(eventually([&] { return operator_->problem("storage").contains(shared_.at("checkpoints")); }))
      << logs(pods);
}

TEST_F(PodSidecar, AFolderThatWasRepairedIsNotReportedAsBrokenAnyMore) {
  fs::remove(shared_.at("checkpoints"));
  auto pods = start_pods(1, "a");
  ASSERT_TRUE(eventually([&] { return !operator_->problem("storage").empty(); })) << logs(pods);
  fs::create_directory(shared_.at("checkpoints"));
  pods[0]->start_rank();
  EXPECT_TRUE(eventually([&] { return operator_->problem("storage").empty(); })) << logs(pods);
}

TEST_F(PodSidecar, TheHookOfAPodWhoseSidecarIsGoneSaysSoAndDoesNotHoldThePod) {
  auto pods = start_pods(1, "a");
  ASSERT_TRUE(eventually([&] { return pods[0]->ready(); })) << logs(pods);
  pods[0]->sidecar().signal(SIGKILL);
  pods[0]->sidecar().wait();
  TestProcess asked = hook(*pods[0]);
  EXPECT_EQ(asked.wait(), 1);
  EXPECT_TRUE(asked.output().contains("no sidecar answers")) << asked.output();
}

TEST_F(PodSidecar, TheHookBeforeTrainingBeganHasNothingToSave) {
  auto pods = start_pods(1, "a");
  ASSERT_TRUE(eventually([&] { return pods[0]->ready(); })) << logs(pods);
  TestProcess asked = hook(*pods[0]);
  EXPECT_EQ(asked.wait(), 0) << asked.output();
  EXPECT_TRUE(asked.output().contains("nothing to save")) << asked.output();
}

TEST_F(PodSidecar, TheLauncherInAPodEndsItsRanksAfterTheSaveAndTellsTheFirstFailure) {
  auto pods = start_pods(1, "a", "1:20:exit3", 2);
  ASSERT_TRUE(eventually([&] { return pods[0]->ready(); })) << logs(pods);
  TestProcess launcher({pods[0]->at("bin/rekindle"), "run", "-n", "2", "--", REKINDLE_TEST_RANK},
                       pods[0]->environment(), pods[0]->at("launcher.log"));
  EXPECT_EQ(launcher.wait(), 3) << launcher.output() << logs(pods);
  ASSERT_TRUE(eventually([&] { return !operator_->breakpoint("durable").is_null(); })) << logs(pods);
  EXPECT_EQ(operator_->breakpoint("durable")["step"], 19u);
}

TEST_F(PodSidecar, ALauncherWithAnotherNumberOfRanksThanThePodHasIsRefused) {
  auto pods = start_pods(1, "a");
  ASSERT_TRUE(eventually([&] { return pods[0]->ready(); })) << logs(pods);
  TestProcess launcher({pods[0]->at("bin/rekindle"), "run", "-n", "3", "--", REKINDLE_TEST_RANK},
                       pods[0]->environment(), pods[0]->at("launcher.log"));
  EXPECT_EQ(launcher.wait(), 2);
  EXPECT_TRUE(launcher.output().contains("rekindle.dev/ranks-per-pod: \"3\"")) << launcher.output();
}

TEST_F(PodSidecar, WhenNobodyIsLeftTheNewestCheckpointStandsAndTheReasonIsReported) {
  auto pods = start_pods(1, "a", "0:20:computing");
  pods[0]->start_rank();
  ASSERT_TRUE(eventually([&] { return !operator_->breakpoint("failed").is_null(); })) << logs(pods);
  EXPECT_NE(operator_->breakpoint("failed")["message"], "");
  pods[0]->sidecar().signal(SIGTERM);
  EXPECT_EQ(pods[0]->sidecar().wait(), 0) << logs(pods);
}

}  // namespace
}  // namespace rekindle::sidecar
