// Values beside the tensors of a MindSpore checkpoint file (append_info, as MindSpore calls them).
// Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "worker-sidecar/mindspore/checkpoint_file.h"

namespace rekindle {

inline constexpr std::string_view kEpochNumber = "epoch_num";
inline constexpr std::string_view kStepNumber = "step_num";
// The rank that saved the file; everything else is alike in copies.
inline constexpr std::string_view kRankNumber = "cur_rank";

struct AppendedValue {
  std::string name;
  std::string_view type;
  std::string content;

  bool operator==(const AppendedValue&) const = default;
};

AppendedValue appended_number(std::string_view name, std::uint64_t value);
AppendedValue appended_flag(std::string_view name);

// The value as it stands in the file.
std::string encode(const AppendedValue& value);

// Not a text, the epoch or the step.
bool is_model_tensor(const MindSporeEntry& entry);

// A scalar Int64 or Int32: content for decode_number().
bool is_whole_number(const MindSporeEntry& entry);
// Nothing when the number is negative. `content`: all bytes of the entry.
std::optional<std::uint64_t> decode_number(const MindSporeEntry& entry, std::string_view content);

}  // namespace rekindle
