#include "worker-sidecar/mindspore/file_names.h"

#include <charconv>

#include "common/base/format.h"

namespace rekindle {
namespace {

constexpr std::string_view kCheckpointEnding = ".ckpt";
constexpr std::string_view kBreakpointEnding = "_breakpoint";
constexpr std::string_view kDyingPrefix = "ttp_rank_";

// All of `digits`, as it would be printed: no sign, no leading zeros.
std::optional<std::uint64_t> plain_number(std::string_view digits) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || std::to_string(value) != digits) return std::nullopt;
  return value;
}

std::string name_at(std::string_view prefix, MindSporePlace place) {
  return format("{}-{}_{}", prefix, place.epoch, place.step_in_epoch);
}

}  // namespace

std::string periodic_file_name(std::string_view prefix, MindSporePlace place) {
  return name_at(prefix, place).append(kCheckpointEnding);
}

std::string breakpoint_file_name(std::string_view prefix, MindSporePlace place) {
  return name_at(prefix, place).append(kBreakpointEnding).append(kCheckpointEnding);
}

std::string dying_folder_name(std::uint64_t step) { return format("tft_saved_checkpoints-step_{}", step); }

std::string dying_file_name(std::uint32_t rank, MindSporePlace place) {
  return periodic_file_name(format("{}{}", kDyingPrefix, rank), place);
}

std::string rank_folder_name(std::uint32_t rank) { return format("rank_{}", rank); }

std::optional<std::uint32_t> rank_of_folder(std::string_view name) {
  for (const std::string_view prefix : {"device", "rank_"}) {
    if (!name.starts_with(prefix)) continue;
    if (const auto rank = plain_number(name.substr(prefix.size())); rank && *rank <= UINT32_MAX)
      return static_cast<std::uint32_t>(*rank);
  }
  return std::nullopt;
}

std::string folder_name_like(std::string_view folder, std::uint32_t rank) {
  return folder.starts_with("device") ? format("device{}", rank) : rank_folder_name(rank);
}

std::optional<MindSporeFileName> parse_mindspore_file_name(std::string_view name) {
  if (!name.ends_with(kCheckpointEnding)) return std::nullopt;
  name.remove_suffix(kCheckpointEnding.size());
  const bool breakpoint = name.ends_with(kBreakpointEnding);
  if (breakpoint) name.remove_suffix(kBreakpointEnding.size());
  const std::size_t dash = name.rfind('-');
  const std::size_t line = name.rfind('_');
  if (dash == std::string_view::npos || line == std::string_view::npos || line < dash || dash == 0) return std::nullopt;
  const auto epoch = plain_number(name.substr(dash + 1, line - dash - 1));
  const auto step = plain_number(name.substr(line + 1));
  if (!epoch || !step) return std::nullopt;
  const std::string_view prefix = name.substr(0, dash);
  const bool gasp = prefix.starts_with(kDyingPrefix) && plain_number(prefix.substr(kDyingPrefix.size()));
  return MindSporeFileName{.prefix = std::string(prefix), .place = {*epoch, *step}, .dying = breakpoint || gasp};
}

std::string file_name_for_rank(const std::string& name, std::uint32_t from_rank, std::uint32_t rank) {
  const std::optional<MindSporeFileName> parsed = parse_mindspore_file_name(name);
  return parsed && name == dying_file_name(from_rank, parsed->place) ? dying_file_name(rank, parsed->place) : name;
}

}  // namespace rekindle
