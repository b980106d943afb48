#include "operator/admission/pod_admission.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "tests/unit/operator/admission/fixtures.h"

namespace rekindle::op {
namespace {

struct Story {
  Json pod = read_golden("pod.yaml");
  Job job = stored_job(read_golden("job.yaml"), make_settings());
  AdmissionSettings settings = make_settings();

  AdmissionAnswer admit() const { return admit_pod(pod, kOwner, &job, settings); }
  Json injected() const { return patched(pod, admit()); }
  bool stays_gated() const { return injected()["spec"]["schedulingGates"] == pod["spec"]["schedulingGates"]; }
  std::string why_gated() const {
    return injected()["metadata"].value("annotations", Json::object()).value("rekindle.dev/not-injected", "");
  }
};

TEST(ProtectedOwner, OnlyAMarkedPodOfAVolcanoJobIsOurs) {
  const Json pod = read_golden("pod.yaml");
  ASSERT_TRUE(protected_owner(pod, "team-a"));
  EXPECT_EQ(protected_owner(pod, "team-a")->job_name, "digits");
  EXPECT_EQ(protected_owner(pod, "")->namespace_name, "team-a");
  Json unmarked = pod;
  unmarked["metadata"]["labels"].erase("rekindle.dev/protected");
  EXPECT_FALSE(protected_owner(unmarked, "team-a"));
  Json strangers = pod;
  strangers["metadata"]["ownerReferences"][0]["apiVersion"] = "batch/v1";
  EXPECT_FALSE(protected_owner(strangers, "team-a"));
  Json bare = pod;
  bare["metadata"].erase("ownerReferences");
  EXPECT_FALSE(protected_owner(bare, "team-a"));
}

TEST(PodAdmission, TheSidecarComesFirstAndTheGateGoes) {
  const Json pod = Story().injected();
  EXPECT_EQ(pod["spec"]["initContainers"][0]["name"], "rekindle-sidecar");
  EXPECT_EQ(pod["spec"]["schedulingGates"], Json::array());
  EXPECT_EQ(pod["metadata"]["annotations"]["rekindle.dev/injected"], kInjectingVersion);
}

TEST(PodAdmission, OrdinalsCountThroughTheTasks) {
  const Json pod = Story().injected();
  // one master, then worker 0, then this one
  EXPECT_EQ(pod["metadata"]["annotations"]["hccl/rankIndex"], "2");
  std::map<std::string, std::string> environment;
  for (const Json& each : pod["spec"]["containers"][0]["env"])
    environment[each["name"].get<std::string>()] = each["value"].get<std::string>();
  EXPECT_EQ(environment["REKINDLE_POD_ORDINAL"], "2");
  EXPECT_EQ(environment["RANK_ID"], "2");
  EXPECT_EQ(environment["REKINDLE_WORLD_SIZE"], "3");
  EXPECT_EQ(environment["RANK_SIZE"], "3");
}

TEST(PodAdmission, AnUnknownJobLeavesThePodGatedToBeMadeAnew) {
  const Story story;
  const AdmissionAnswer answer = admit_pod(story.pod, kOwner, nullptr, story.settings);
  EXPECT_TRUE(answer.allowed);
  EXPECT_TRUE(answer.patch.empty());
  EXPECT_EQ(answer.warnings.size(), 1u);
  Story other;
  other.job.uid = "another";
  EXPECT_TRUE(other.admit().patch.empty());
  Story scaled;
  scaled.job.tasks[1].replicas = 1;
  EXPECT_TRUE(scaled.admit().patch.empty());
}

TEST(PodAdmission, APodWithoutStorageIsLeftGatedWithTheReason) {
  Story story;
  story.job.settings.claim.clear();
  EXPECT_TRUE(story.stays_gated());
  EXPECT_NE(story.why_gated().find("there is no claim for checkpoints"), std::string::npos);
  story.settings.default_claim = "shared";
  EXPECT_FALSE(story.stays_gated());
  EXPECT_EQ(story.injected()["spec"]["volumes"].back(),
            Json::parse(R"({"name":"rekindle-checkpoints","persistentVolumeClaim":{"claimName":"shared"}})"));
}

// The patch repeats the environment and the path in each of them.
TEST(PodAdmission, APodWithContainersWithoutEndIsLeftGatedWithTheReason) {
  Story story;
  for (int i = 0; i < 256; ++i) story.pod["spec"]["containers"].push_back({{"name", "c" + std::to_string(i)}});
  EXPECT_TRUE(story.stays_gated());
  EXPECT_EQ(story.why_gated(), "it has more than 256 containers");
}

TEST(PodAdmission, APathThatWasEditedIntoNonsenseLeavesThePodGatedWithTheReason) {
  for (const std::string& path : {std::string("data"), "/" + std::string(4095, 'x')}) {
    Story story;
    story.job.settings.path = path;
    EXPECT_TRUE(story.stays_gated());
    EXPECT_TRUE(story.why_gated().starts_with("annotation rekindle.dev/checkpoint-path: ")) << story.why_gated();
  }
}

TEST(PodAdmission, AVolumeMountedThroughAnExpressionCannotBeFollowed) {
  Story story;
  story.pod["spec"]["containers"][0]["volumeMounts"] = {
      {{"name", "shared"}, {"mountPath", "/rekindle/checkpoints"}, {"subPathExpr", "$(POD_NAME)"}}};
  EXPECT_NE(story.why_gated().find("subPathExpr"), std::string::npos);
}

TEST(PodAdmission, AReadOnlyMountDoesNotServe) {
  Story story;
  story.pod["spec"]["containers"][0]["volumeMounts"] = {
      {{"name", "data"}, {"mountPath", "/rekindle/checkpoints"}, {"readOnly", true}}};
  story.job.settings.claim.clear();
  EXPECT_TRUE(story.stays_gated());
}

TEST(PodAdmission, AHookOfAnothersIsLeftWithAWarning) {
  Story story;
  story.pod["spec"]["containers"][0]["lifecycle"] = {{"preStop", {{"sleep", {{"seconds", 3}}}}}};
  EXPECT_EQ(story.injected()["spec"]["containers"][0]["lifecycle"], story.pod["spec"]["containers"][0]["lifecycle"]);
  bool warned = false;
  for (const std::string& warning : story.admit().warnings)
    warned = warned || warning.find("another preStop hook") != std::string::npos;
  EXPECT_TRUE(warned);
  EXPECT_FALSE(story.stays_gated());
}

TEST(PodAdmission, AContainerThatAnotherWebhookAddsLaterGetsItsPartOnTheNextCall) {
  Story story;
  Json pod = story.injected();
  pod["spec"]["containers"].push_back({{"name", "late"}, {"image", "x"}});
  const Json again = patched(pod, admit_pod(pod, kOwner, &story.job, story.settings));
  EXPECT_EQ(again["spec"]["containers"][1]["lifecycle"]["preStop"]["exec"]["command"][0],
            "/rekindle/bin/rekindle-hook");
  EXPECT_EQ(again["spec"]["initContainers"].size(), 1u);
}

TEST(PodAdmission, EditsAddWhereTheyCan) {
  for (const Json& operation : Story().admit().patch) {
    EXPECT_TRUE(operation["op"] == "add" || operation["path"] == "/spec/schedulingGates/0") << operation;
  }
}

TEST(PodAdmission, SeveralRanksInAPodAreNumberedByTheirLauncher) {
  Story story;
  story.job.settings.ranks_per_pod = 8;
  const Json pod = story.injected();
  std::set<std::string> seen;
  for (const Json& each : pod["spec"]["containers"][0]["env"]) seen.insert(each["name"].get<std::string>());
  EXPECT_FALSE(seen.contains("REKINDLE_RANK"));
  EXPECT_FALSE(seen.contains("RANK_ID"));
  EXPECT_TRUE(seen.contains("REKINDLE_RANKS_PER_POD"));
}

// `restricted`, as Pod Security Admission judges the containers that we add.
TEST(PodAdmission, TheSidecarKeepsTheRestrictedRules) {
  const Json context = Story().injected()["spec"]["initContainers"][0]["securityContext"];
  EXPECT_EQ(context["runAsNonRoot"], true);
  EXPECT_EQ(context["allowPrivilegeEscalation"], false);
  EXPECT_EQ(context["capabilities"]["drop"], Json::array({"ALL"}));
  EXPECT_EQ(context["seccompProfile"]["type"], "RuntimeDefault");
  EXPECT_EQ(context["readOnlyRootFilesystem"], true);
}

}  // namespace
}  // namespace rekindle::op
