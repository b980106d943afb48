#include "common/contract/checkpoint_settings.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "common/base/format.h"
#include "common/contract/environment.h"

namespace rekindle {
namespace {

constexpr std::uint64_t kStepsMax = std::uint64_t{1} << 47;
constexpr std::uint64_t kSecondsMax = 366ull * 86400;
constexpr std::uint64_t kKeepMax = 1'000'000;
constexpr std::uint64_t kMindsporeStepsDefault = 1;
constexpr std::uint64_t kMindsporeKeepDefault = 5;

struct Quantity {
  std::uint64_t number = 0;
  std::string_view unit;
};

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// "500 steps", "10min": a whole number and what stands behind it.
std::optional<Quantity> split_quantity(std::string_view text) {
  text = trim(text);
  Quantity quantity;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), quantity.number);
  if (error != std::errc{}) return std::nullopt;
  quantity.unit = trim(std::string_view(end, static_cast<std::size_t>(text.data() + text.size() - end)));
  return quantity;
}

std::optional<std::uint64_t> whole_number(std::string_view text, std::uint64_t max) {
  const std::optional<Quantity> quantity = split_quantity(text);
  if (!quantity || !quantity->unit.empty() || quantity->number > max) return std::nullopt;
  return quantity->number;
}

std::optional<std::uint64_t> factor_of(std::string_view unit,
                                       std::initializer_list<std::pair<std::string_view, std::uint64_t>> units) {
  for (const auto& [name, factor] : units) {
    if (name == unit) return factor;
  }
  return std::nullopt;
}

std::optional<Duration> time_of(const Quantity& quantity) {
  const auto seconds = factor_of(
      quantity.unit,
      {{"s", 1}, {"sec", 1}, {"seconds", 1}, {"min", 60}, {"m", 60}, {"minutes", 60}, {"h", 3600}, {"hours", 3600}});
  if (!seconds || quantity.number == 0 || quantity.number > kSecondsMax / *seconds) return std::nullopt;
  return std::chrono::seconds(quantity.number * *seconds);
}

bool means_steps(const Quantity& quantity) {
  return (quantity.unit == "steps" || quantity.unit == "step") && quantity.number > 0 && quantity.number <= kStepsMax;
}

Error wrong(std::string_view name, std::string_view value, std::string_view expected) {
  return {ErrorCode::invalid_input, format("{}={} is not {}", name, value.substr(0, 100), expected)};
}

Status read_rhythm(std::string_view name, std::string_view value, SnapshotSettings& settings) {
  if (value == "off") return {};
  if (value == "auto") {
    settings.rhythm = SnapshotRhythm::automatic;
    return {};
  }
  const std::optional<Quantity> quantity = split_quantity(value);
  if (quantity && means_steps(*quantity)) {
    settings.rhythm = SnapshotRhythm::steps;
    settings.every_steps = quantity->number;
    return {};
  }
  if (const std::optional<Duration> time = quantity ? time_of(*quantity) : std::nullopt) {
    settings.rhythm = SnapshotRhythm::time;
    settings.every = *time;
    return {};
  }
  return std::unexpected(
      wrong(name, value, "off, auto, or a number of steps, s, min or h, for example \"500 steps\" or \"10 min\""));
}

Status read_shadow(std::string_view name, std::string_view value, SnapshotSettings& settings) {
  if (value == "off") return {};
  const std::optional<Quantity> quantity = split_quantity(value);
  if (!quantity || !means_steps(*quantity))
    return std::unexpected(wrong(name, value, "off or a number of steps, for example \"1 step\""));
  settings.shadow_every_steps = quantity->number;
  return {};
}

Status read_bandwidth(std::string_view name, std::string_view value, std::uint64_t& bytes_per_second) {
  const std::optional<Quantity> quantity = split_quantity(value);
  const auto factor =
      quantity ? factor_of(quantity->unit, {{"KiB/s", 1ull << 10}, {"MiB/s", 1ull << 20}, {"GiB/s", 1ull << 30}})
               : std::nullopt;
  if (!factor || quantity->number == 0 || quantity->number > (std::uint64_t{1} << 50) / *factor) {
    return std::unexpected(wrong(name, value, "a bandwidth like \"500 MiB/s\" (KiB/s, MiB/s or GiB/s)"));
  }
  bytes_per_second = quantity->number * *factor;
  return {};
}

Status read_resume(std::string_view name, std::string_view value, ResumeFrom& resume_from) {
  const std::optional<ResumeFrom> known = parse_enum<ResumeFrom>(value);
  if (!known) {
    return std::unexpected(
        wrong(name, value, "same-name (go on from any job of this name) or same-job (only from this very job)"));
  }
  resume_from = *known;
  return {};
}

bool is_truth(std::string_view text) {
  return text == "True" || text == "true" || text == "1" || text == "False" || text == "false" || text == "0";
}

std::string_view unquoted(std::string_view text) {
  const bool quoted = text.size() >= 2 && text.front() == text.back() && (text.front() == '"' || text.front() == '\'');
  return quoted ? text.substr(1, text.size() - 2) : text;
}

// The next name=value, cut off from `text`. A comma within brackets separates nothing: append_info
// is a list.
std::string_view take_item(std::string_view& text) {
  int depth = 0;
  std::size_t end = 0;
  for (; end < text.size() && (text[end] != ',' || depth > 0); ++end) {
    if (text[end] == '[' || text[end] == '{') ++depth;
    if (text[end] == ']' || text[end] == '}') --depth;
  }
  const std::string_view item = trim(text.substr(0, end));
  text.remove_prefix(std::min(end + 1, text.size()));
  return item;
}

// What a CheckpointConfig says, with 0 for None as MindSpore has it; nothing for what was not
// written.
struct MindsporeConfig {
  std::optional<std::uint64_t> steps;
  std::optional<std::uint64_t> seconds;
  std::optional<std::uint64_t> keep;
  std::optional<std::uint64_t> minutes;
};

Status read_mindspore_item(std::string_view called, std::string_view item, MindsporeConfig& config) {
  const std::size_t equals = item.find('=');
  const std::string_view name = trim(item.substr(0, equals));
  const std::string_view value = equals == std::string_view::npos ? std::string_view() : trim(item.substr(equals + 1));
  const auto fault = [&](std::string_view expected) {
    return std::unexpected(wrong(format("{}: {}", called, name), value, expected));
  };
  const std::array<std::pair<std::string_view, std::optional<std::uint64_t>*>, 4> numbers = {
      {{"save_checkpoint_steps", &config.steps},
       {"save_checkpoint_seconds", &config.seconds},
       {"keep_checkpoint_max", &config.keep},
       {"keep_checkpoint_per_n_minutes", &config.minutes}}};
  for (const auto& [number_name, number] : numbers) {
    if (name != number_name) continue;
    *number = value == "None" ? std::optional<std::uint64_t>(0) : whole_number(value, kSecondsMax);
    return *number ? Status() : fault("a whole number or None");
  }
  // These change nothing here: docs/operating/periodic.md has the reason of each.
  for (const std::string_view flag : {"integrated_save", "exception_save", "crc_check", "remove_redundancy"}) {
    if (name == flag) return is_truth(value) ? Status() : fault("True or False");
  }
  if (name == "async_save") {
    const bool known = is_truth(value) || unquoted(value) == "process" || unquoted(value) == "thread";
    return known ? Status() : fault("True, False, process or thread");
  }
  for (const std::string_view any : {"append_info", "saved_network", "format", "enc_mode"}) {
    if (name == any) return {};
  }
  if (name == "enc_key") {
    return value == "None"
               ? Status()
               : fault("None: checkpoints are not encrypted by Rekindle, so leave it out and encrypt the volume");
  }
  return fail(ErrorCode::invalid_input, format("{}: \"{}\" is no setting of MindSpore's CheckpointConfig that "
                                               "Rekindle knows; save_checkpoint_steps=100 is one",
                                               called, name.substr(0, 60)));
}

}  // namespace

SettingTexts settings_over(const SettingTexts& stronger, const SettingTexts& weaker) {
  struct Decision {
    const char* said;
    const char* in_another_way;
  };
  constexpr Decision kDecisions[] = {{environment::kKeep, environment::kKeepEvery},
                                     {environment::kKeepEvery, environment::kKeep},
                                     {environment::kCheckpointConfig, environment::kCheckpointEvery},
                                     {environment::kCheckpointConfig, environment::kKeep},
                                     {environment::kCheckpointConfig, environment::kKeepEvery}};
  SettingTexts merged = weaker;
  for (const Decision& decision : kDecisions) {
    if (stronger.contains(decision.said)) merged.erase(decision.in_another_way);
  }
  for (const auto& [variable, text] : stronger) merged.insert_or_assign(variable, text);
  return merged;
}

std::string variable_itself(const char* variable) { return variable; }

Result<CheckpointSettings> read_mindspore_config(std::string_view text, std::string_view called) {
  MindsporeConfig config;
  while (!text.empty()) {
    const std::string_view item = take_item(text);
    if (item.empty()) continue;
    if (Status read = read_mindspore_item(called, item, config); !read) return std::unexpected(read.error());
  }
  CheckpointSettings settings;
  const std::uint64_t seconds = config.seconds.value_or(0);
  const std::uint64_t steps = config.steps.value_or(seconds != 0 ? 0 : kMindsporeStepsDefault);
  if (steps != 0) {
    settings.snapshots.rhythm = SnapshotRhythm::steps;
    settings.snapshots.every_steps = steps;
  } else if (seconds != 0) {
    settings.snapshots.rhythm = SnapshotRhythm::time;
    settings.snapshots.every = std::chrono::seconds(seconds);
  }
  const std::uint64_t minutes = config.minutes.value_or(0);
  const std::uint64_t keep = config.keep.value_or(minutes != 0 ? 0 : kMindsporeKeepDefault);
  if (keep == 0 && minutes != 0) settings.retention.keep_one_each = std::chrono::minutes(minutes);
  else settings.retention.keep = static_cast<std::uint32_t>(std::max<std::uint64_t>(keep, 1));
  return settings;
}

Result<CheckpointSettings> read_checkpoint_settings(const SettingLookup& setting, const SettingName& called) {
  CheckpointSettings settings;
  if (const std::string config = setting(environment::kCheckpointConfig); !config.empty()) {
    Result<CheckpointSettings> mapped = read_mindspore_config(config, called(environment::kCheckpointConfig));
    if (!mapped) return mapped;
    settings = *mapped;
  }
  const auto with = [&](const char* name, auto&& read) -> Status {
    const std::string value = setting(name);
    return value.empty() ? Status() : read(std::string_view(called(name)), std::string_view(value));
  };
  const auto first_error = [](std::initializer_list<Status> all) -> Status {
    for (const Status& status : all) {
      if (!status) return status;
    }
    return {};
  };
  const Status read = first_error({
      with(environment::kCheckpointEvery,
           [&](auto name, auto value) {
             settings.snapshots.rhythm = SnapshotRhythm::off;
             return read_rhythm(name, value, settings.snapshots);
           }),
      with(environment::kShadowEvery,
           [&](auto name, auto value) { return read_shadow(name, value, settings.snapshots); }),
      with(environment::kKeep,
           [&](auto name, auto value) -> Status {
             const std::optional<std::uint64_t> keep = whole_number(value, kKeepMax);
             if (!keep || *keep == 0) return std::unexpected(wrong(name, value, "a number of checkpoints, 1 or more"));
             settings.retention.keep = static_cast<std::uint32_t>(*keep);
             // Minutes of a CheckpointConfig would count instead of the number.
             settings.retention.keep_one_each = {};
             return {};
           }),
      with(environment::kKeepEvery,
           [&](auto name, auto value) -> Status {
             const std::optional<Quantity> quantity = split_quantity(value);
             const std::optional<Duration> time = quantity ? time_of(*quantity) : std::nullopt;
             if (!time) return std::unexpected(wrong(name, value, "a time like \"30 min\""));
             settings.retention.keep_one_each = std::chrono::duration_cast<std::chrono::seconds>(*time);
             return {};
           }),
      with(environment::kWriteBandwidthMax,
           [&](auto name, auto value) { return read_bandwidth(name, value, settings.bytes_per_second_max); }),
      with(environment::kFailureEvery,
           [&](auto name, auto value) -> Status {
             const std::optional<Quantity> quantity = split_quantity(value);
             const std::optional<Duration> time = quantity ? time_of(*quantity) : std::nullopt;
             if (!time) return std::unexpected(wrong(name, value, "a time like \"24 h\""));
             settings.snapshots.failure_prior = *time;
             return {};
           }),
      with(environment::kResume, [&](auto name, auto value) { return read_resume(name, value, settings.resume_from); }),
  });
  if (!read) return std::unexpected(read.error());
  return settings;
}

std::string describe(const SnapshotSettings& settings) {
  switch (settings.rhythm) {
    case SnapshotRhythm::off: return "never";
    case SnapshotRhythm::steps:
      return settings.every_steps == 1 ? std::string("every step") : format("every {} steps", settings.every_steps);
    case SnapshotRhythm::time: return format("every {} s", static_cast<std::int64_t>(to_seconds(settings.every)));
    case SnapshotRhythm::automatic: return "as often as it pays";
  }
  return "never";
}

}  // namespace rekindle
