// What a user may say about checkpoints that are made while training goes on, about shadows,
// retention and the use of the storage. Pure: from the text of settings to values, with an error
// that names the setting, its value and what is expected.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "common/base/enum_names.h"
#include "common/base/error.h"
#include "common/base/instant.h"
#include "common/contract/environment.h"
#include "common/contract/retention_policy.h"

namespace rekindle {

enum class SnapshotRhythm : std::uint8_t { off, steps, time, automatic };

struct SnapshotSettings {
  SnapshotRhythm rhythm = SnapshotRhythm::off;
  std::uint64_t every_steps = 0;  // rhythm steps
  Duration every{0};              // rhythm time
  // Copy each rank's share to shared memory at every this many steps; 0: no shadow.
  std::uint64_t shadow_every_steps = 0;
  // One failure in this time is expected before anything is known (rhythm automatic).
  Duration failure_prior = std::chrono::hours(24);

  bool periodic() const { return rhythm != SnapshotRhythm::off; }
  bool keeps_anything() const { return periodic() || shadow_every_steps != 0; }

  bool operator==(const SnapshotSettings&) const = default;
};

// Which checkpoints of its name a job goes on from.
enum class ResumeFrom : std::uint8_t { same_name, same_job };
constexpr auto enum_names(ResumeFrom) {
  return std::to_array<EnumName<ResumeFrom>>(
      {{ResumeFrom::same_name, "same-name"}, {ResumeFrom::same_job, "same-job"}});
}

struct CheckpointSettings {
  SnapshotSettings snapshots;
  RetentionPolicy retention;               // own_attempt is not a setting
  std::uint64_t bytes_per_second_max = 0;  // of each writer, 0: as fast as the storage
  ResumeFrom resume_from = ResumeFrom::same_name;
};

// What one place says, by variable: the annotations of a job, the chart, options of a command.
using SettingTexts = std::map<std::string, std::string>;

// Both places in one, `stronger` first. What `weaker` says in another way about a thing that
// `stronger` has decided is left out: how many stay and how far apart they are, and everything that
// a CheckpointConfig decides. Other variables pass.
SettingTexts settings_over(const SettingTexts& stronger, const SettingTexts& weaker);

// Looks a setting up by the name of its environment variable; empty: not said.
using SettingLookup = std::function<std::string(const char* name)>;

// What the user calls the setting of a variable where he wrote it: an annotation, a value of the
// chart. Errors name it so.
using SettingName = std::function<std::string(const char* variable)>;
std::string variable_itself(const char* variable);

// REKINDLE_CHECKPOINT_EVERY   off | auto | N steps | N s | N min | N h
// REKINDLE_CHECKPOINT_CONFIG  MindSpore's CheckpointConfig (read_mindspore_config)
// REKINDLE_SHADOW_EVERY       off | N steps
// REKINDLE_KEEP               how many complete checkpoints stay
// REKINDLE_KEEP_EVERY         N min: of the older ones one in this time stays, of any number
// REKINDLE_WRITE_BANDWIDTH_MAX  N MiB/s (KiB, MiB, GiB), of each writer
// REKINDLE_FAILURE_EVERY      N h: how often the job is expected to fail, for auto
// REKINDLE_RESUME             same-name | same-job
//
// All from one place: what several say is merged before (settings_over). Each wins over the
// CheckpointConfig, and REKINDLE_KEEP_EVERY over REKINDLE_KEEP.
Result<CheckpointSettings> read_checkpoint_settings(const SettingLookup& setting,
                                                    const SettingName& called = variable_itself);

// MindSpore's CheckpointConfig as name=value, separated by commas. Its rules: steps go before
// seconds and the maximum before minutes when both are written. Its defaults (every step, 5 files)
// hold where neither of the two is written; in MindSpore they also win over seconds or minutes that
// are written alone, which nobody means. docs/operating/periodic.md has every setting, those that
// change nothing, and why.
Result<CheckpointSettings> read_mindspore_config(std::string_view text,
                                                 std::string_view called = environment::kCheckpointConfig);

// "every 500 steps", "every 600 s", "as often as it pays" for people.
std::string describe(const SnapshotSettings& settings);

}  // namespace rekindle
