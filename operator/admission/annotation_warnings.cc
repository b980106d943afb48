#include "operator/admission/annotation_warnings.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string_view>

#include "common/base/format.h"
#include "common/base/json_fields.h"
#include "operator/model/metadata.h"
#include "operator/model/names.h"

namespace rekindle::op {
namespace {

constexpr std::string_view kPrefix = "rekindle.dev/";
constexpr std::size_t kNamedMax = 5;
// Of an annotation's key after the prefix, for the API server.
constexpr std::size_t kKeyBytesMax = 63;

std::vector<std::string_view> known_annotations() {
  // The last two are ours: a Job that is copied out of the cluster has them.
  std::vector<std::string_view> known{names::kClaimAnnotation,         names::kPathAnnotation,
                                      names::kDeadlineAnnotation,      names::kRanksPerPodAnnotation,
                                      names::kStrictRetriesAnnotation, names::kMemoryVolumeAnnotation,
                                      names::kLastStepAnnotation,      names::kLastTimeAnnotation};
  for (const names::CheckpointSetting& setting : names::kCheckpointSettings) known.push_back(setting.annotation);
  return known;
}

// Letters to insert, to take out or to change, to get from one to the other.
std::size_t edit_distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < to.size(); ++j) {
      const std::size_t changed = diagonal + (from[i] == to[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

// What was cut short is nearer than anything that is spelt alike.
std::size_t distance(std::string_view written, std::string_view known) {
  return known.starts_with(written) ? 0 : edit_distance(written, known);
}

}  // namespace

std::vector<std::string> annotation_warnings(const Json& job) {
  std::vector<std::string> warnings;
  const Json* annotations = find_path(job, {"metadata", "annotations"});
  if (annotations == nullptr || !annotations->is_object()) return warnings;
  const std::vector<std::string_view> known = known_annotations();
  std::size_t unknown = 0;
  for (const auto& [key, value] : annotations->items()) {
    if (!key.starts_with(kPrefix) || std::ranges::find(known, key) != known.end()) continue;
    if (key.size() > kPrefix.size() + kKeyBytesMax || ++unknown > kNamedMax) continue;
    const std::string_view nearest =
        *std::ranges::min_element(known, {}, [&](std::string_view each) { return distance(key, each); });
    warnings.push_back(format("annotation {} is not known and does nothing; did you mean {}?", key, nearest));
  }
  if (unknown > kNamedMax)
    warnings.push_back(format("{} more annotations {}... are not known and do nothing.", unknown - kNamedMax, kPrefix));
  const auto has = [&](std::string_view key) { return !metadata_value(job, "annotations", key).empty(); };
  if (has(names::kKeepAnnotation) && has(names::kKeepEveryAnnotation)) {
    warnings.push_back(format("annotation {} does nothing beside {}: checkpoints stay by their time then.",
                              names::kKeepAnnotation, names::kKeepEveryAnnotation));
  }
  return warnings;
}

}  // namespace rekindle::op
