// Whole objects before and after, compared with golden/*.json. REKINDLE_REWRITE=1 writes them anew:
// review the diff.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "common/base/format.h"
#include "tests/unit/operator/admission/fixtures.h"

namespace rekindle::op {
namespace {

void compare(const std::string& name, const Json& object, const AdmissionAnswer& answer) {
  const Json result{{"allowed", answer.allowed},
                    {"message", answer.message},
                    {"warnings", answer.warnings},
                    {"object", patched(object, answer)}};
  const std::string text = result.dump(2) + "\n";
  const std::string path = format("{}{}.json", kGoldenFolder, name);
  if (std::getenv("REKINDLE_REWRITE") != nullptr) {
    std::ofstream(path) << text;
    return;
  }
  std::ifstream in(path);
  std::stringstream expected;
  expected << in.rdbuf();
  EXPECT_EQ(expected.str(), text) << "REKINDLE_REWRITE=1 writes " << path << " anew";
}

struct Case {
  const char* pod;
  const char* job;
};

TEST(Golden, AJobIsMarked) {
  const Json job = read_golden("job.yaml");
  compare("job", job, admit_job(job, make_settings()));
}

TEST(Golden, AJobWithAVolumeOfItsOwnIsMarked) {
  const Json job = read_golden("job-own-volume.yaml");
  compare("job-own-volume", job, admit_job(job, make_settings()));
}

TEST(Golden, APodIsInjected) {
  const Json pod = read_golden("pod.yaml");
  const Job job = stored_job(read_golden("job.yaml"), make_settings());
  compare("pod", pod, admit_pod(pod, kOwner, &job, make_settings()));
}

TEST(Golden, APodOfAJobWithPeriodicCheckpointsIsInjected) {
  const Json pod = read_golden("pod.yaml");
  AdmissionSettings settings = make_settings();
  settings.checkpoints = {{"REKINDLE_CHECKPOINT_EVERY", "off"}, {"REKINDLE_KEEP", "5"}};
  const Job job = stored_job(read_golden("job-periodic.yaml"), settings);
  compare("pod-periodic", pod, admit_pod(pod, kOwner, &job, settings));
}

TEST(Golden, APodAsUsersHaveThemIsInjected) {
  const Json pod = read_golden("pod-as-users-have-them.yaml");
  const Job job = stored_job(read_golden("job-own-volume.yaml"), make_settings());
  compare("pod-as-users-have-them", pod, admit_pod(pod, kOwner, &job, make_settings()));
}

TEST(Golden, TwiceChangesNothing) {
  for (const char* name : {"job.yaml", "job-periodic.yaml", "job-own-volume.yaml"}) {
    const Json job = read_golden(name);
    EXPECT_EQ(admit_job(patched(job, admit_job(job, make_settings())), make_settings()).patch, Json::array()) << name;
  }
  for (const Case& each : {Case{"pod.yaml", "job.yaml"}, Case{"pod.yaml", "job-periodic.yaml"},
                           Case{"pod-as-users-have-them.yaml", "job-own-volume.yaml"}}) {
    const Json pod = read_golden(each.pod);
    const Job job = stored_job(read_golden(each.job), make_settings());
    const Json once = patched(pod, admit_pod(pod, kOwner, &job, make_settings()));
    EXPECT_EQ(admit_pod(once, kOwner, &job, make_settings()).patch, Json::array()) << each.pod;
  }
}

}  // namespace
}  // namespace rekindle::op
