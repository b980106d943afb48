#include "operator/admission/job_admission.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "common/base/format.h"
#include "tests/unit/operator/admission/fixtures.h"

namespace rekindle::op {
namespace {

AdmissionAnswer admit(const std::function<void(Json&)>& change) {
  Json job = read_golden("job.yaml");
  change(job);
  return admit_job(job, make_settings());
}

Json& main_of(Json& job) { return job["spec"]["tasks"][0]["template"]["spec"]["containers"][0]; }

std::string refusal(const std::function<void(Json&)>& change) {
  const AdmissionAnswer answer = admit(change);
  EXPECT_TRUE(answer.allowed == answer.message.empty());
  EXPECT_TRUE(answer.allowed || answer.patch.empty());
  return answer.message;
}

TEST(JobAdmission, JobsThatDidNotAskAreNotTouched) {
  for (const char* value : {"off", "none"}) {
    const AdmissionAnswer answer = admit([&](Json& job) { job["metadata"]["labels"]["fault-scheduling"] = value; });
    EXPECT_TRUE(answer.allowed && answer.patch.empty() && answer.warnings.empty()) << value;
  }
  const AdmissionAnswer answer = admit([](Json& job) { job["metadata"]["labels"].erase("fault-scheduling"); });
  EXPECT_TRUE(answer.allowed && answer.patch.empty() && answer.warnings.empty());
}

TEST(JobAdmission, AnUnknownValueIsAdmittedWithAWarning) {
  const AdmissionAnswer answer = admit([](Json& job) { job["metadata"]["labels"]["fault-scheduling"] = "garce"; });
  EXPECT_TRUE(answer.allowed && answer.patch.empty());
  ASSERT_EQ(answer.warnings.size(), 1u);
  EXPECT_EQ(answer.warnings[0],
            "fault-scheduling: \"garce\" is not one of grace, force, off: the job runs without protection.");
}

TEST(JobAdmission, RefusesWithASentenceThatSaysWhatToDo) {
  struct Row {
    const char* says;
    std::function<void(Json&)> change;
  };
  const Row rows[] = {
      {"task master has no container",
       [](Json& j) { j["spec"]["tasks"][0]["template"]["spec"]["containers"] = Json::array(); }},
      {"task worker has no container", [](Json& j) { j["spec"]["tasks"][1]["template"].erase("spec"); }},
      {"the job has no tasks", [](Json& j) { j["spec"].erase("tasks"); }},
      {"has a preStop hook of its own", [](Json& j) { main_of(j)["lifecycle"]["preStop"]["sleep"]["seconds"] = 5; }},
      {"the job has the policy PodFailed: TerminateJob",
       [](Json& j) { j["spec"]["policies"][1]["action"] = "TerminateJob"; }},
      {"task worker has the policy PodFailed: TerminateJob",
       [](Json& j) {
         j["spec"]["tasks"][1]["policies"][0] = {{"events", {"PodEvicted", "PodFailed"}}, {"action", "TerminateJob"}};
       }},
      {"the job has the policy PodFailed: TerminateJob",
       [](Json& j) { j["spec"]["policies"] = {{{"event", "*"}, {"action", "TerminateJob"}}}; }},
      {"is not a whole number from 1 to 3600",
       [](Json& j) { j["metadata"]["annotations"]["rekindle.dev/deadline-seconds"] = "soon"; }},
      {"is not a whole number from 1 to 3600",
       [](Json& j) { j["metadata"]["annotations"]["rekindle.dev/deadline-seconds"] = "0"; }},
      {"is not a whole number from 1 to 1024",
       [](Json& j) { j["metadata"]["annotations"]["rekindle.dev/ranks-per-pod"] = "-1"; }},
      {"is neither true nor false",
       [](Json& j) { j["metadata"]["annotations"]["rekindle.dev/strict-retries"] = "yes"; }},
      {"is not the name of a PersistentVolumeClaim",
       [](Json& j) { j["metadata"]["annotations"]["rekindle.dev/checkpoint-claim"] = "My Claim"; }},
      {"annotation rekindle.dev/checkpoint-every=500 is not off, auto, or a number of steps",
       [](Json& j) { j["metadata"]["annotations"]["rekindle.dev/checkpoint-every"] = "500"; }},
      {"annotation rekindle.dev/checkpoint-config: save_checkpoint_steps=ten is not a whole number",
       [](Json& j) { j["metadata"]["annotations"]["rekindle.dev/checkpoint-config"] = "save_checkpoint_steps=ten"; }},
      {"\"10 MiB\" is not a size of at least 64Mi",
       [](Json& j) { j["metadata"]["annotations"]["rekindle.dev/memory-volume-size"] = "10 MiB"; }},
      {"is not absolute", [](Json& j) { j["metadata"]["annotations"]["rekindle.dev/checkpoint-path"] = "data"; }},
      {"has .. in it", [](Json& j) { j["metadata"]["annotations"]["rekindle.dev/checkpoint-path"] = "/data/../etc"; }},
      {"is longer than 4095 bytes",
       [](Json& j) { j["metadata"]["annotations"]["rekindle.dev/checkpoint-path"] = "/" + std::string(4095, 'x'); }},
      {"the job has more than 1024 tasks",
       [](Json& j) {
         const Json task = j["spec"]["tasks"][0];
         for (int i = 0; i < 1024; ++i) j["spec"]["tasks"].push_back(task);
       }},
      {"meets /rekindle/run",
       [](Json& j) { j["metadata"]["annotations"]["rekindle.dev/checkpoint-path"] = "/rekindle"; }},
      {"has nowhere to put checkpoints",
       [](Json& j) { j["metadata"]["annotations"].erase("rekindle.dev/checkpoint-claim"); }},
      {"container name rekindle-sidecar", [](Json& j) { main_of(j)["name"] = "rekindle-sidecar"; }},
      {"volume name rekindle-tls",
       [](Json& j) {
         j["spec"]["tasks"][0]["template"]["spec"]["volumes"] = {
             {{"name", "rekindle-tls"}, {"emptyDir", Json::object()}}};
       }},
      {"mount path /rekindle/bin",
       [](Json& j) { main_of(j)["volumeMounts"] = {{{"name", "x"}, {"mountPath", "/rekindle/bin/tools"}}}; }},
      {"sets spec.nodeName", [](Json& j) { j["spec"]["tasks"][0]["template"]["spec"]["nodeName"] = "node-1"; }},
      {"this is no Volcano Job", [](Json& j) { j["apiVersion"] = "batch/v1"; }},
  };
  for (const Row& row : rows)
    EXPECT_NE(refusal(row.change).find(row.says), std::string::npos) << row.says << "\ngot: " << refusal(row.change);
}

TEST(JobAdmission, PoliciesAreTakenOutInOneOperationHoweverMany) {
  const AdmissionAnswer answer = admit([](Json& job) {
    for (int i = 0; i < 100; ++i) job["spec"]["policies"].push_back({{"event", "PodFailed"}, {"action", "Ignore"}});
  });
  int operations = 0;
  for (const Json& each : answer.patch) operations += each["path"].get<std::string>().starts_with("/spec/policies");
  EXPECT_EQ(operations, 1);
}

// Each of many warnings names the task, and the API server has not looked at the name yet.
TEST(JobAdmission, ATaskWithANameThatNobodyTakesIsNamedByItsNumber) {
  const AdmissionAnswer answer = admit([](Json& job) {
    Json& task = job["spec"]["tasks"][1];
    task["name"] = std::string(100'000, 'n');
    task["policies"] = {{{"event", "PodFailed"}, {"action", "AbortJob"}}};
  });
  bool named = false;
  for (const std::string& warning : answer.warnings) {
    EXPECT_LT(warning.size(), 300u);
    named = named || warning.starts_with("task number 1: the policy PodFailed: AbortJob");
  }
  EXPECT_TRUE(named);
}

TEST(JobAdmission, AVolumeOfTheJobItselfServesThePath) {
  const auto change = [](Json& job) {
    job["metadata"]["annotations"] = {{"rekindle.dev/checkpoint-path", "/data/checkpoints"}};
    job["spec"]["volumes"] = {{{"mountPath", "/data"}, {"volumeClaimName", "shared"}}};
  };
  EXPECT_EQ(refusal(change), "");
  EXPECT_NE(refusal([&](Json& job) {
              change(job);
              job["spec"]["volumes"][0]["mountPath"] = "/dat";
            }),
            "");
}

TEST(JobAdmission, TheChartsClaimServesAJobThatNamesNone) {
  Json job = read_golden("job.yaml");
  job["metadata"].erase("annotations");
  AdmissionSettings settings = make_settings();
  settings.default_claim = "shared";
  EXPECT_TRUE(admit_job(job, settings).allowed);
}

TEST(JobAdmission, WarnsWhereAPolicyOfTheUsersGetsInTheWay) {
  const auto warnings = [](const char* event, const char* action) {
    const AdmissionAnswer answer =
        admit([&](Json& job) { job["spec"]["policies"] = {{{"event", event}, {"action", action}}}; });
    EXPECT_TRUE(answer.allowed);
    std::string all;
    for (const std::string& warning : answer.warnings) all += warning + "\n";
    return all;
  };
  EXPECT_NE(warnings("PodEvicted", "TerminateJob").find("ends the job whenever a pod is evicted"), std::string::npos);
  EXPECT_NE(warnings("PodFailed", "AbortJob").find("also acts on evicted pods"), std::string::npos);
  EXPECT_NE(warnings("PodEvicted", "RestartTask").find("restarts only some pods"), std::string::npos);
  EXPECT_EQ(warnings("PodEvicted", "RestartJob").find("the job:"), std::string::npos);
}

std::string joined_warnings(const AdmissionAnswer& answer) {
  std::string all;
  for (const std::string& warning : answer.warnings) all += warning + "\n";
  return all;
}

TEST(JobAdmission, ANumberOfRetriesThatIsRaisedIsTold) {
  const auto warnings = [](const std::function<void(Json&)>& change) { return joined_warnings(admit(change)); };
  EXPECT_NE(warnings([](Json&) {}).find("maxRetry is raised from 3 to 100"), std::string::npos);
  EXPECT_EQ(warnings([](Json& job) { job["spec"].erase("maxRetry"); }).find("maxRetry"), std::string::npos);
  EXPECT_EQ(warnings([](Json& job) { job["spec"]["maxRetry"] = 100; }).find("maxRetry"), std::string::npos);
}

TEST(JobAdmission, AnAnnotationThatNobodyReadsIsToldWithTheNearestKnownOne) {
  const AdmissionAnswer answer = admit([](Json& job) {
    Json& annotations = job["metadata"]["annotations"];
    annotations["rekindle.dev/checkpoint-evry"] = "500 steps";
    annotations["rekindle.dev/deadline"] = "60";
    annotations["rekindle.dev/last-checkpoint-step"] = "7";
    annotations["team.example.com/checkpoint-evry"] = "x";
  });
  EXPECT_TRUE(answer.allowed);
  const std::string warnings = joined_warnings(answer);
  EXPECT_NE(warnings.find("rekindle.dev/checkpoint-evry is not known and does nothing; did you mean "
                          "rekindle.dev/checkpoint-every?"),
            std::string::npos)
      << warnings;
  EXPECT_NE(warnings.find("did you mean rekindle.dev/deadline-seconds?"), std::string::npos) << warnings;
  EXPECT_EQ(warnings.find("last-checkpoint-step"), std::string::npos) << warnings;
  EXPECT_EQ(warnings.find("team.example.com"), std::string::npos) << warnings;
}

TEST(JobAdmission, AnnotationsThatNobodyReadsAreNamedUpToABound) {
  const AdmissionAnswer answer = admit([](Json& job) {
    for (int i = 0; i < 1000; ++i) job["metadata"]["annotations"][format("rekindle.dev/x{}", i)] = "";
  });
  EXPECT_LT(answer.warnings.size(), 20u);
  EXPECT_NE(joined_warnings(answer).find("995 more annotations"), std::string::npos);
}

TEST(JobAdmission, TwoWaysToKeepCheckpointsAreTold) {
  const AdmissionAnswer answer = admit([](Json& job) {
    job["metadata"]["annotations"]["rekindle.dev/keep"] = "5";
    job["metadata"]["annotations"]["rekindle.dev/keep-every"] = "30 min";
  });
  EXPECT_NE(joined_warnings(answer).find("rekindle.dev/keep does nothing beside rekindle.dev/keep-every"),
            std::string::npos);
}

TEST(JobAdmission, AnEmptyLabelIsAdmittedWithAWarning) {
  const AdmissionAnswer answer = admit([](Json& job) { job["metadata"]["labels"]["fault-scheduling"] = ""; });
  EXPECT_TRUE(answer.allowed && answer.patch.empty());
  EXPECT_NE(joined_warnings(answer).find("runs without protection"), std::string::npos);
}

// A job whose tasks both keep their checkpoints in that volume.
std::function<void(Json&)> with_own_volume(const Json& volume, bool read_only = false) {
  return [=](Json& job) {
    job["metadata"]["annotations"] = {{"rekindle.dev/checkpoint-path", "/ck/run-1"}};
    for (Json& task : job["spec"]["tasks"]) {
      Json& spec = task["template"]["spec"];
      spec["volumes"] = {volume};
      spec["containers"][0]["volumeMounts"] = {{{"name", "v"}, {"mountPath", "/ck"}, {"readOnly", read_only}}};
    }
  };
}

TEST(JobAdmission, AVolumeThatGoesWithItsPodIsRefusedForCheckpoints) {
  for (const Json& volume : {Json{{"name", "v"}, {"emptyDir", Json::object()}}, Json{{"name", "v"}},
                             Json{{"name", "v"}, {"ephemeral", {{"volumeClaimTemplate", Json::object()}}}}}) {
    EXPECT_NE(refusal(with_own_volume(volume)).find("each pod has its own, and it goes with the pod"),
              std::string::npos)
        << volume;
  }
  EXPECT_EQ(refusal(with_own_volume({{"name", "v"}, {"persistentVolumeClaim", {{"claimName", "c"}}}})), "");
}

TEST(JobAdmission, AVolumeWithANameThatNobodyTakesIsRefusedInAFewWords) {
  const std::string message = refusal([](Json& job) {
    with_own_volume({{"name", std::string(100'000, 'n')}})(job);
    for (Json& task : job["spec"]["tasks"])
      task["template"]["spec"]["containers"][0]["volumeMounts"][0]["name"] = std::string(100'000, 'n');
  });
  EXPECT_FALSE(message.empty());
  EXPECT_LT(message.size(), 500u);
}

TEST(JobAdmission, AVolumeThatGoesWithItsPodIsRefusedBesideAClaimAsWell) {
  const std::string message = refusal([](Json& job) {
    with_own_volume({{"name", "v"}, {"emptyDir", Json::object()}})(job);
    job["metadata"]["annotations"]["rekindle.dev/checkpoint-claim"] = "checkpoints";
  });
  EXPECT_NE(message.find("it goes with the pod"), std::string::npos) << "the pods would mount it, not the claim";
}

TEST(JobAdmission, AVolumeThatIsMountedReadOnlyIsRefusedAsThat) {
  const Json claim{{"name", "v"}, {"persistentVolumeClaim", {{"claimName", "c"}}}};
  EXPECT_NE(refusal(with_own_volume(claim, true)).find("is mounted read-only"), std::string::npos);
  Json read_only = claim;
  read_only["persistentVolumeClaim"]["readOnly"] = true;
  EXPECT_NE(refusal(with_own_volume(read_only)).find("is mounted read-only"), std::string::npos);
}

TEST(JobAdmission, AFolderOfTheNodeIsToldToJobsOfSeveralPods) {
  const auto change = with_own_volume({{"name", "v"}, {"hostPath", {{"path", "/srv"}}}});
  const AdmissionAnswer many = admit(change);
  EXPECT_TRUE(many.allowed);
  EXPECT_NE(joined_warnings(many).find("has to be the same storage on every node"), std::string::npos);
  const AdmissionAnswer one = admit([&](Json& job) {
    change(job);
    job["spec"]["tasks"].erase(1);
  });
  EXPECT_EQ(joined_warnings(one).find("every node"), std::string::npos);
}

TEST(JobAdmission, AJobThatTheApiServerIsStillToNameIsAdmitted) {
  const AdmissionAnswer answer = admit([](Json& job) {
    job["metadata"].erase("name");
    job["metadata"]["generateName"] = "digits-";
  });
  EXPECT_TRUE(answer.allowed);
  EXPECT_FALSE(answer.patch.empty());
}

}  // namespace
}  // namespace rekindle::op
