// Variables that stand in a pod before the webhook comes.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/operator/admission/fixtures.h"

namespace rekindle::op {
namespace {

// What the main container gets for a variable that the user has set to "7".
std::string injected_over_seven(const std::string& name) {
  const AdmissionSettings settings = make_settings();
  const Job job = stored_job(read_golden("job.yaml"), settings);
  Json pod = read_golden("pod.yaml");
  pod["spec"]["containers"][0]["env"] = Json::array({{{"name", name}, {"value", "7"}}});
  const Json injected = patched(pod, admit_pod(pod, kOwner, &job, settings));
  for (const Json& each : injected["spec"]["containers"][0]["env"]) {
    if (each["name"] == name) return each["value"].get<std::string>();
  }
  return "none";
}

// Others than we read them, and the user knows what for.
TEST(OwnEnvironment, ARankThatTheUserSetsItselfStays) {
  EXPECT_EQ(injected_over_seven("RANK_ID"), "7");
  EXPECT_EQ(injected_over_seven("RANK_SIZE"), "7");
}

TEST(OwnEnvironment, OurOwnVariablesAreNotTheUsersToSet) {
  EXPECT_EQ(injected_over_seven("REKINDLE_POD_ORDINAL"), "2");
}

}  // namespace
}  // namespace rekindle::op
