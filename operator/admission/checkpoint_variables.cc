#include "operator/admission/checkpoint_variables.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <string_view>
#include <utility>

#include "common/base/format.h"
#include "common/contract/checkpoint_settings.h"
#include "common/contract/environment.h"
#include "operator/model/names.h"

namespace rekindle::op {
namespace {

// Room for the control blocks, and nothing else.
constexpr std::string_view kWithoutCopies = "64Mi";
constexpr std::uint64_t kMemoryVolumeBytesMin = 64u << 20;

std::string in_annotation(const char* variable) {
  const auto found =
      std::ranges::find(names::kCheckpointSettings, std::string_view(variable), &names::CheckpointSetting::variable);
  return "annotation " + std::string(found == names::kCheckpointSettings.end() ? variable : found->annotation);
}

Result<CheckpointSettings> read(const std::map<std::string, std::string>& values) {
  return read_checkpoint_settings(
      [&](const char* variable) {
        const auto found = values.find(variable);
        return found == values.end() ? std::string() : found->second;
      },
      in_annotation);
}

// Bytes of a Kubernetes quantity that is a whole number; zero for anything else, as for what is
// beyond all memory.
std::uint64_t bytes_of_quantity(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, std::uint64_t>, 9> kUnits{{{"", 1},
                                                                              {"k", 1000},
                                                                              {"M", 1000'000},
                                                                              {"G", 1000'000'000},
                                                                              {"T", 1000'000'000'000},
                                                                              {"Ki", 1ull << 10},
                                                                              {"Mi", 1ull << 20},
                                                                              {"Gi", 1ull << 30},
                                                                              {"Ti", 1ull << 40}}};
  constexpr std::uint64_t kBytesMax = 1ull << 60;
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return 0;
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  for (const auto& [name, factor] : kUnits) {
    if (name == unit) return number > kBytesMax / factor ? 0 : number * factor;
  }
  return 0;
}

std::optional<std::string> fault_of_memory_volume(const std::string& size) {
  if (size.empty() || bytes_of_quantity(size) >= kMemoryVolumeBytesMin) return std::nullopt;
  return format("annotation {}: \"{}\" is not a size of at least 64Mi, for example \"20Gi\"",
                names::kMemoryVolumeAnnotation, size.substr(0, 100));
}

}  // namespace

std::optional<std::string> fault_of_checkpoint_settings(const JobSettings& job) {
  if (const Result<CheckpointSettings> settings = read(job.checkpoints); !settings) return settings.error().message;
  return fault_of_memory_volume(job.memory_volume_size);
}

CheckpointVariables checkpoint_variables(const JobSettings& job, const AdmissionSettings& chart) {
  CheckpointVariables variables;
  for (const auto& [variable, text] : job.checkpoints) {
    if (const Result<CheckpointSettings> alone = read({{variable, text}}); alone) {
      variables.values.emplace(variable, text);
    } else {
      variables.warnings.push_back(alone.error().message + "; it is left out");
    }
  }
  variables.values = settings_over(variables.values, chart.checkpoints);
  if (auto fault = fault_of_memory_volume(job.memory_volume_size))
    variables.warnings.push_back(*fault + "; it is left out");
  const Result<CheckpointSettings> settings = read(variables.values);
  variables.keeps_copies = settings && settings->snapshots.keeps_anything();
  return variables;
}

std::optional<std::string> memory_volume_limit(const JobSettings& job, bool keeps_copies) {
  if (!job.memory_volume_size.empty() && !fault_of_memory_volume(job.memory_volume_size)) return job.memory_volume_size;
  if (keeps_copies) return std::nullopt;
  return std::string(kWithoutCopies);
}

}  // namespace rekindle::op
