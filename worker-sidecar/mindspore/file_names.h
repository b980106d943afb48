// Under which names MindSpore and MindX look for checkpoint files (docs/formats/mindspore.md).
// Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rekindle {

// Where training was when a file was made, as its name says.
struct MindSporePlace {
  std::uint64_t epoch = 0;          // from 1
  std::uint64_t step_in_epoch = 0;  // from 1

  auto operator<=>(const MindSporePlace&) const = default;
};

// "resnet-2_84.ckpt", "resnet-2_84_breakpoint.ckpt".
std::string periodic_file_name(std::string_view prefix, MindSporePlace place);
std::string breakpoint_file_name(std::string_view prefix, MindSporePlace place);

// "tft_saved_checkpoints-step_184", and in it "rank_3/ttp_rank_3-2_84.ckpt".
std::string dying_folder_name(std::uint64_t step);
std::string dying_file_name(std::uint32_t rank, MindSporePlace place);

std::string rank_folder_name(std::uint32_t rank);  // "rank_3"

// The rank of "rank_3" (MindSpore's tutorials) or "device3" (MindX's scripts); numbers without
// leading zeros.
std::optional<std::uint32_t> rank_of_folder(std::string_view name);

// The folder of `rank` beside that of another rank: "device5" beside "device3".
std::string folder_name_like(std::string_view folder, std::uint32_t rank);

struct MindSporeFileName {
  std::string prefix;
  MindSporePlace place;
  // saved because something was ending: a breakpoint or a dying gasp
  bool dying = false;
};

// Empty for any other name.
std::optional<MindSporeFileName> parse_mindspore_file_name(std::string_view name);

// How `rank` calls its copy of the file `name` of `from_rank`: "ttp_rank_1-2_84.ckpt" of rank 1 is
// "ttp_rank_5-2_84.ckpt" for rank 5; other names do not have the rank.
std::string file_name_for_rank(const std::string& name, std::uint32_t from_rank, std::uint32_t rank);

}  // namespace rekindle
