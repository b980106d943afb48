#include "common/contract/checkpoint_settings.h"

#include <gtest/gtest.h>

#include <map>

#include "common/base/format.h"

namespace rekindle {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using Settings = std::map<std::string, std::string>;

Result<CheckpointSettings> read(const Settings& settings) {
  return read_checkpoint_settings([&](const char* name) {
    const auto found = settings.find(name);
    return found == settings.end() ? std::string() : found->second;
  });
}

TEST(CheckpointSettings, NothingSaidIsNothingPeriodic) {
  const Result<CheckpointSettings> settings = read({});
  ASSERT_TRUE(settings);
  EXPECT_FALSE(settings->snapshots.keeps_anything());
  EXPECT_EQ(settings->retention.keep, 3u);
  EXPECT_EQ(settings->resume_from, ResumeFrom::same_name);
}

TEST(CheckpointSettings, RhythmsAreStepsTimesOrWhatPays) {
  EXPECT_EQ(read({{"REKINDLE_CHECKPOINT_EVERY", "500 steps"}})->snapshots.every_steps, 500u);
  EXPECT_EQ(read({{"REKINDLE_CHECKPOINT_EVERY", "10min"}})->snapshots.every, Duration(minutes(10)));
  EXPECT_EQ(read({{"REKINDLE_CHECKPOINT_EVERY", "90 s"}})->snapshots.every, Duration(seconds(90)));
  EXPECT_EQ(read({{"REKINDLE_CHECKPOINT_EVERY", "auto"}})->snapshots.rhythm, SnapshotRhythm::automatic);
  EXPECT_EQ(read({{"REKINDLE_CHECKPOINT_EVERY", "off"}})->snapshots.rhythm, SnapshotRhythm::off);
  EXPECT_EQ(read({{"REKINDLE_SHADOW_EVERY", "1 step"}})->snapshots.shadow_every_steps, 1u);
  EXPECT_EQ(read({{"REKINDLE_FAILURE_EVERY", "6 h"}})->snapshots.failure_prior, Duration(hours(6)));
  EXPECT_EQ(read({{"REKINDLE_WRITE_BANDWIDTH_MAX", "500 MiB/s"}})->bytes_per_second_max, 500ull << 20);
  EXPECT_EQ(read({{"REKINDLE_KEEP", "7"}})->retention.keep, 7u);
  EXPECT_EQ(read({{"REKINDLE_KEEP_EVERY", "30 min"}})->retention.keep_one_each, minutes(30));
  EXPECT_EQ(read({{"REKINDLE_RESUME", "same-job"}})->resume_from, ResumeFrom::same_job);
}

TEST(CheckpointSettings, WhatIsWrongIsNamedWithItsValueAndWhatWouldBeRight) {
  const std::map<std::string, std::vector<std::string>> wrong = {
      {"REKINDLE_CHECKPOINT_EVERY",
       {"500", "steps", "-1 steps", "0 steps", "5 parsecs", "99999999999999999999 s", "1 h 5"}},
      {"REKINDLE_SHADOW_EVERY", {"1 s", "0 steps", "x"}},
      {"REKINDLE_KEEP", {"0", "-1", "many", "10000000"}},
      {"REKINDLE_KEEP_EVERY", {"3", "0 min"}},
      {"REKINDLE_WRITE_BANDWIDTH_MAX", {"500", "500 MB/s", "0 MiB/s", "99999999999 GiB/s"}},
      {"REKINDLE_FAILURE_EVERY", {"often"}},
      {"REKINDLE_RESUME", {"never"}}};
  for (const auto& [name, values] : wrong) {
    for (const std::string& value : values) {
      const Result<CheckpointSettings> settings = read({{name, value}});
      ASSERT_FALSE(settings) << name << "=" << value;
      EXPECT_NE(settings.error().message.find(format("{}={}", name, value)), std::string::npos)
          << settings.error().message;
      EXPECT_NE(settings.error().message.find("is not"), std::string::npos) << settings.error().message;
    }
  }
}

TEST(CheckpointSettings, ErrorsNameASettingAsItsUserKnowsIt) {
  const auto refusal = [](const std::string& wrong, const std::string& value) {
    const Result<CheckpointSettings> settings =
        read_checkpoint_settings([&](const char* name) { return name == wrong ? value : std::string(); },
                                 [](const char* name) { return "the user's " + std::string(name); });
    return settings ? std::string() : settings.error().message;
  };
  EXPECT_TRUE(refusal("REKINDLE_KEEP", "0").starts_with("the user's REKINDLE_KEEP=0 is not"))
      << refusal("REKINDLE_KEEP", "0");
  EXPECT_TRUE(refusal("REKINDLE_CHECKPOINT_CONFIG", "crc_check=7")
                  .starts_with("the user's REKINDLE_CHECKPOINT_CONFIG: crc_check=7 is not"))
      << refusal("REKINDLE_CHECKPOINT_CONFIG", "crc_check=7");
}

TEST(CheckpointSettings, ANumberWinsOverTheMinutesOfACheckpointConfig) {
  const Result<CheckpointSettings> settings =
      read({{"REKINDLE_CHECKPOINT_CONFIG", "save_checkpoint_steps=40, keep_checkpoint_per_n_minutes=30"},
            {"REKINDLE_KEEP", "5"}});
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->retention.keep, 5u);
  EXPECT_EQ(settings->retention.keep_one_each, minutes(0));
  EXPECT_EQ(settings->snapshots.every_steps, 40u);
}

TEST(CheckpointSettings, ATimeWinsOverTheMaximumOfACheckpointConfigAndOverANumber) {
  for (const Settings& settings :
       {Settings{{"REKINDLE_CHECKPOINT_CONFIG", "keep_checkpoint_max=4"}, {"REKINDLE_KEEP_EVERY", "30 min"}},
        Settings{{"REKINDLE_KEEP", "4"}, {"REKINDLE_KEEP_EVERY", "30 min"}}}) {
    EXPECT_EQ(read(settings)->retention.keep_one_each, minutes(30));
  }
}

TEST(CheckpointSettings, ARhythmWinsOverThatOfACheckpointConfig) {
  const auto rhythm = [](const std::string& every) {
    return read({{"REKINDLE_CHECKPOINT_CONFIG", "save_checkpoint_steps=9"}, {"REKINDLE_CHECKPOINT_EVERY", every}})
        ->snapshots.rhythm;
  };
  EXPECT_EQ(rhythm("10 min"), SnapshotRhythm::time);
  EXPECT_EQ(rhythm("off"), SnapshotRhythm::off);
}

TEST(SettingsOver, AnotherPlaceIsAskedOnlyForWhatTheFirstDoesNotSay) {
  EXPECT_EQ(settings_over({{"REKINDLE_RESUME", "same-job"}, {"REKINDLE_SHADOW_EVERY", "off"}},
                          {{"REKINDLE_RESUME", "same-name"}, {"REKINDLE_CHECKPOINT_EVERY", "auto"}, {"HOME", "/root"}}),
            (Settings{{"REKINDLE_RESUME", "same-job"},
                      {"REKINDLE_SHADOW_EVERY", "off"},
                      {"REKINDLE_CHECKPOINT_EVERY", "auto"},
                      {"HOME", "/root"}}));
}

// What wins, and what it leaves of a place that says everything.
TEST(SettingsOver, WhatDecidesAThingLeavesOutTheOtherWaysToSayIt) {
  const Settings weaker{{"REKINDLE_CHECKPOINT_CONFIG", "save_checkpoint_steps=9"},
                        {"REKINDLE_CHECKPOINT_EVERY", "10 min"},
                        {"REKINDLE_KEEP", "8"},
                        {"REKINDLE_KEEP_EVERY", "1 h"}};
  const auto left_out_by = [&](const std::string& variable, const std::string& text) {
    const Settings merged = settings_over({{variable, text}}, weaker);
    EXPECT_EQ(merged.at(variable), text);
    std::vector<std::string> left_out;
    for (const auto& [name, value] : weaker) {
      if (!merged.contains(name)) left_out.push_back(name);
    }
    return left_out;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(left_out_by("REKINDLE_KEEP", "5"), Names{"REKINDLE_KEEP_EVERY"});
  EXPECT_EQ(left_out_by("REKINDLE_KEEP_EVERY", "2 h"), Names{"REKINDLE_KEEP"});
  EXPECT_EQ(left_out_by("REKINDLE_CHECKPOINT_CONFIG", "save_checkpoint_steps=4"),
            (Names{"REKINDLE_CHECKPOINT_EVERY", "REKINDLE_KEEP", "REKINDLE_KEEP_EVERY"}));
  EXPECT_EQ(left_out_by("REKINDLE_CHECKPOINT_EVERY", "5 steps"), Names{});
}

TEST(MindsporeConfig, ItsDefaultsAreItsOwn) {
  const Result<CheckpointSettings> settings = read_mindspore_config("async_save=True");
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->snapshots.rhythm, SnapshotRhythm::steps);
  EXPECT_EQ(settings->snapshots.every_steps, 1u);
  EXPECT_EQ(settings->retention.keep, 5u);
}

// As CheckpointConfig.__init__ of MindSpore 2.10 decides.
TEST(MindsporeConfig, StepsGoBeforeSecondsAndTheMaximumBeforeMinutesWhenBothAreWritten) {
  const Result<CheckpointSettings> settings = read_mindspore_config(
      "save_checkpoint_steps=100, save_checkpoint_seconds=60, keep_checkpoint_max=4, keep_checkpoint_per_n_minutes=10");
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->snapshots.rhythm, SnapshotRhythm::steps);
  EXPECT_EQ(settings->snapshots.every_steps, 100u);
  EXPECT_EQ(settings->retention.keep, 4u);
  EXPECT_EQ(settings->retention.keep_one_each.count(), 0);
}

TEST(MindsporeConfig, SecondsAndMinutesCountAloneOrBesideNone) {
  for (const char* text : {"save_checkpoint_seconds=60, keep_checkpoint_per_n_minutes=10",
                           "save_checkpoint_steps=None, save_checkpoint_seconds=60, keep_checkpoint_max=0, "
                           "keep_checkpoint_per_n_minutes=10"}) {
    const Result<CheckpointSettings> settings = read_mindspore_config(text);
    ASSERT_TRUE(settings) << settings.error().message;
    EXPECT_EQ(settings->snapshots.rhythm, SnapshotRhythm::time) << text;
    EXPECT_EQ(settings->snapshots.every, Duration(seconds(60))) << text;
    EXPECT_EQ(settings->retention.keep_one_each, minutes(10)) << text;
  }
}

TEST(MindsporeConfig, NoLimitAtAllKeepsOneAndNoRhythmAtAllIsNothingPeriodic) {
  const Result<CheckpointSettings> settings =
      read_mindspore_config("save_checkpoint_steps=0, save_checkpoint_seconds=0, keep_checkpoint_max=None");
  ASSERT_TRUE(settings);
  EXPECT_FALSE(settings->snapshots.periodic());
  EXPECT_EQ(settings->retention.keep, 1u);
}

TEST(MindsporeConfig, WhatHasNoMeaningHereIsTakenAndChangesNothing) {
  const Result<CheckpointSettings> settings = read_mindspore_config(
      "save_checkpoint_steps=7, integrated_save=False, async_save=\"process\", saved_network=None, "
      "append_info=[\"epoch_num\", \"step_num\", {\"lr\": 0.01, \"m\": 0.9}], "
      "enc_key=None, enc_mode='AES-GCM', exception_save=True, crc_check=True, remove_redundancy=True, "
      "format=\"safetensors\"");
  ASSERT_TRUE(settings) << settings.error().message;
  EXPECT_EQ(settings->snapshots.every_steps, 7u);
  EXPECT_EQ(settings->retention.keep, 5u);
}

TEST(MindsporeConfig, AKeyIsRefusedSinceNothingWouldBeEncrypted) {
  const Result<CheckpointSettings> settings = read_mindspore_config("save_checkpoint_steps=7, enc_key=b'secret'");
  ASSERT_FALSE(settings);
  EXPECT_NE(settings.error().message.find("not encrypted"), std::string::npos);
}

TEST(MindsporeConfig, WhatItDoesNotHaveIsRefusedByName) {
  const Result<CheckpointSettings> settings = read_mindspore_config("save_checkpoint_stepz=100");
  ASSERT_FALSE(settings);
  EXPECT_NE(settings.error().message.find("save_checkpoint_stepz"), std::string::npos);
  EXPECT_FALSE(read_mindspore_config("save_checkpoint_steps=ten"));
  EXPECT_FALSE(read_mindspore_config("async_save=perhaps"));
  EXPECT_FALSE(read_mindspore_config("keep_checkpoint_max=4294967296"));
}

TEST(MindsporeConfig, IsOverruledByOurOwnSettings) {
  const Result<CheckpointSettings> settings =
      read({{"REKINDLE_CHECKPOINT_CONFIG", "save_checkpoint_steps=100,keep_checkpoint_max=9"},
            {"REKINDLE_CHECKPOINT_EVERY", "off"}});
  ASSERT_TRUE(settings);
  EXPECT_FALSE(settings->snapshots.periodic());
  EXPECT_EQ(settings->retention.keep, 9u);
}

}  // namespace
}  // namespace rekindle
