#include "operator/faults/response_table.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tests/support/source_folder.h"

namespace rekindle::op {
namespace {

TEST(ResponseTable, ATrainingJobIsRestartedWhateverHappens) {
  for (std::size_t i = 0; i < kFaultClasses; ++i) {
    EXPECT_EQ(respond(static_cast<FaultClass>(i), JobStage::training).response, Response::restart_job);
  }
}

TEST(ResponseTable, NothingIsDoneToAJobThatIsSuspendedOrEnding) {
  for (std::size_t i = 0; i < kFaultClasses; ++i) {
    EXPECT_EQ(respond(static_cast<FaultClass>(i), JobStage::suspended).response, Response::ignore);
    EXPECT_EQ(respond(static_cast<FaultClass>(i), JobStage::ending).response, Response::ignore);
  }
}

TEST(ResponseTable, WhatIsGoingOnIsJoinedNotRepeated) {
  for (std::size_t i = 0; i < kFaultClasses; ++i) {
    EXPECT_EQ(respond(static_cast<FaultClass>(i), JobStage::restarting).response, Response::join);
  }
}

TEST(ResponseTable, BeforeTheFirstStepOnlyTheBrokenPodIsReplaced) {
  EXPECT_EQ(respond(FaultClass::container_died, JobStage::starting).response, Response::replace_pod);
  EXPECT_EQ(respond(FaultClass::pod_evicted, JobStage::starting).response, Response::ignore);
}

TEST(ResponseTable, IsPrintedInTheOperatingGuide) {
  std::ifstream in(test::source_path("docs/operating/faults.md"));
  std::stringstream guide;
  guide << in.rdbuf();
  EXPECT_NE(guide.str().find(response_table_markdown()), std::string::npos)
      << "put this into docs/operating/faults.md:\n"
      << response_table_markdown();
}

}  // namespace
}  // namespace rekindle::op
