#include "operator/admission/checkpoint_variables.h"

#include <gtest/gtest.h>

#include "tests/unit/operator/admission/fixtures.h"

namespace rekindle::op {
namespace {

using Texts = std::map<std::string, std::string>;

// The Job of golden/ with these annotations besides its own, as the decoder sees it.
JobSettings settings_of(const Texts& annotations) {
  Json job = read_golden("job.yaml");
  for (const auto& [name, text] : annotations) job["metadata"]["annotations"]["rekindle.dev/" + name] = text;
  return job_from_json(job)->settings;
}

Texts variables_of(const Texts& annotations, const Texts& chart = {}) {
  AdmissionSettings settings = make_settings();
  settings.checkpoints = chart;
  return checkpoint_variables(settings_of(annotations), settings).values;
}

TEST(CheckpointVariables, AJobThatSaysNothingHasNone) {
  const CheckpointVariables none = checkpoint_variables(settings_of({}), make_settings());
  EXPECT_TRUE(none.values.empty());
  EXPECT_FALSE(none.keeps_copies);
  EXPECT_EQ(memory_volume_limit(settings_of({}), none.keeps_copies), "64Mi");
}

TEST(CheckpointVariables, EveryAnnotationHasItsVariable) {
  EXPECT_EQ(variables_of({{"checkpoint-every", "500 steps"},
                          {"checkpoint-config", "save_checkpoint_steps=9"},
                          {"shadow-every", "1 step"},
                          {"keep", "5"},
                          {"keep-every", "30 min"},
                          {"write-bandwidth-max", "500 MiB/s"},
                          {"failure-every", "6 h"},
                          {"resume", "same-job"}}),
            (Texts{{"REKINDLE_CHECKPOINT_EVERY", "500 steps"},
                   {"REKINDLE_CHECKPOINT_CONFIG", "save_checkpoint_steps=9"},
                   {"REKINDLE_SHADOW_EVERY", "1 step"},
                   {"REKINDLE_KEEP", "5"},
                   {"REKINDLE_KEEP_EVERY", "30 min"},
                   {"REKINDLE_WRITE_BANDWIDTH_MAX", "500 MiB/s"},
                   {"REKINDLE_FAILURE_EVERY", "6 h"},
                   {"REKINDLE_RESUME", "same-job"}}));
}

TEST(CheckpointVariables, TheChartSpeaksForJobsThatDoNot) {
  const Texts chart{{"REKINDLE_CHECKPOINT_EVERY", "10 min"}, {"REKINDLE_SHADOW_EVERY", "1 step"}};
  EXPECT_EQ(variables_of({}, chart), chart);
  EXPECT_EQ(variables_of({{"checkpoint-every", "auto"}, {"shadow-every", "off"}}, chart),
            (Texts{{"REKINDLE_CHECKPOINT_EVERY", "auto"}, {"REKINDLE_SHADOW_EVERY", "off"}}));
}

TEST(CheckpointVariables, AMindsporeConfigOfTheJobIsNotOverruledByTheChart) {
  EXPECT_EQ(variables_of({{"checkpoint-config", "save_checkpoint_steps=9"}}, {{"REKINDLE_CHECKPOINT_EVERY", "10 min"},
                                                                              {"REKINDLE_KEEP", "8"},
                                                                              {"REKINDLE_KEEP_EVERY", "1 h"},
                                                                              {"REKINDLE_RESUME", "same-job"}}),
            (Texts{{"REKINDLE_CHECKPOINT_CONFIG", "save_checkpoint_steps=9"}, {"REKINDLE_RESUME", "same-job"}}));
}

TEST(CheckpointVariables, AJobThatSaysHowManyIsNotToldHowFarApart) {
  EXPECT_EQ(variables_of({{"keep", "8"}}, {{"REKINDLE_KEEP_EVERY", "1 h"}}), (Texts{{"REKINDLE_KEEP", "8"}}));
  EXPECT_EQ(variables_of({{"keep-every", "1 h"}}, {{"REKINDLE_KEEP", "8"}}), (Texts{{"REKINDLE_KEEP_EVERY", "1 h"}}));
}

TEST(CheckpointVariables, WhatWasEditedIntoNonsenseCountsAsAbsentAndIsSaid) {
  AdmissionSettings chart = make_settings();
  chart.checkpoints = {{"REKINDLE_CHECKPOINT_EVERY", "10 min"}};
  const JobSettings job = settings_of({{"checkpoint-every", "often"}, {"keep", "5"}, {"memory-volume-size", "much"}});
  const CheckpointVariables variables = checkpoint_variables(job, chart);
  EXPECT_EQ(variables.values, (Texts{{"REKINDLE_CHECKPOINT_EVERY", "10 min"}, {"REKINDLE_KEEP", "5"}}));
  ASSERT_EQ(variables.warnings.size(), 2u);
  EXPECT_TRUE(variables.warnings[0].starts_with("annotation rekindle.dev/checkpoint-every=often is not"))
      << variables.warnings[0];
  EXPECT_TRUE(variables.warnings[1].starts_with("annotation rekindle.dev/memory-volume-size: \"much\" is not"))
      << variables.warnings[1];
  EXPECT_EQ(memory_volume_limit(job, variables.keeps_copies), std::nullopt);
}

TEST(CheckpointVariables, TheMemoryVolumeHasNoLimitOfItsOwnWhereRanksKeepCopies) {
  for (const Texts& annotations :
       {Texts{{"checkpoint-every", "auto"}}, Texts{{"checkpoint-config", "save_checkpoint_steps=9"}},
        Texts{{"shadow-every", "1 step"}}}) {
    const JobSettings job = settings_of(annotations);
    const CheckpointVariables variables = checkpoint_variables(job, make_settings());
    EXPECT_TRUE(variables.keeps_copies) << annotations.begin()->first;
    EXPECT_EQ(memory_volume_limit(job, variables.keeps_copies), std::nullopt) << annotations.begin()->first;
  }
  EXPECT_FALSE(
      checkpoint_variables(settings_of({{"checkpoint-every", "off"}, {"keep", "5"}}), make_settings()).keeps_copies);
}

TEST(CheckpointVariables, AMemoryVolumeThatTheUserSizedHasThatSize) {
  const JobSettings job = settings_of({{"memory-volume-size", "20Gi"}});
  EXPECT_EQ(memory_volume_limit(job, true), "20Gi");
  EXPECT_EQ(memory_volume_limit(job, false), "20Gi");
}

TEST(CheckpointVariables, AWrongTextIsRefusedWithTheNameOfItsAnnotation) {
  const Texts wrong{{"checkpoint-every", "often"},
                    {"shadow-every", "1 s"},
                    {"keep", "0"},
                    {"keep-every", "3"},
                    {"write-bandwidth-max", "500"},
                    {"failure-every", "seldom"},
                    {"resume", "never"},
                    {"checkpoint-config", "save_checkpoint_stepz=1"}};
  for (const auto& [name, text] : wrong) {
    const std::optional<std::string> fault = fault_of_checkpoint_settings(settings_of({{name, text}}));
    ASSERT_TRUE(fault) << name;
    EXPECT_TRUE(fault->starts_with("annotation rekindle.dev/" + name)) << *fault;
    EXPECT_EQ(fault->find("REKINDLE_"), std::string::npos) << *fault;
  }
  EXPECT_FALSE(fault_of_checkpoint_settings(settings_of({{"checkpoint-every", "500 steps"}, {"keep", "5"}})));
}

TEST(CheckpointVariables, AMemoryVolumeThatHoldsNothingIsRefused) {
  for (const char* size : {"63Mi", "20 Gi", "-1Gi", "1.5Gi", "Gi", "20Gb", "99999999999999999999Gi", "999999999Ti"}) {
    EXPECT_TRUE(fault_of_checkpoint_settings(settings_of({{"memory-volume-size", size}}))) << size;
  }
  for (const char* size : {"64Mi", "20Gi", "1Ti", "100000000", "70M", "65536Ki"}) {
    EXPECT_FALSE(fault_of_checkpoint_settings(settings_of({{"memory-volume-size", size}}))) << size;
  }
}

}  // namespace
}  // namespace rekindle::op
