// Names of checkpoint folders and files (docs/formats/checkpoint.md). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/error.h"

namespace rekindle {

inline constexpr std::string_view kManifestName = "manifest.json";
inline constexpr std::string_view kAttemptsFolder = "attempts";
inline constexpr std::string_view kJobFileName = "job.json";

// A name with a higher number is not ours. Messages carry attempts in 32 bits, and the control
// block steps in 48.
inline constexpr std::uint64_t kAttemptMax = 999'999'999;
inline constexpr std::uint64_t kStepMax = (std::uint64_t{1} << 48) - 1;

struct FolderName {
  std::uint64_t attempt = 0;
  std::uint64_t step = 0;
  std::string nonce;

  bool operator==(const FolderName&) const = default;
};

// "a2-s184-7fk2q". The nonce must satisfy is_nonce.
std::string checkpoint_folder_name(const FolderName& name);
std::optional<FolderName> parse_folder_name(std::string_view name);

// 1 to 32 of a-z and 0-9.
bool is_nonce(std::string_view text);

std::string rank_file_name(std::uint32_t rank);  // "rank-3.safetensors"
// "state-0.safetensors", the small state of one pod's ranks
std::string state_file_name(std::uint32_t ordinal);
std::string attempt_file_name(std::uint64_t attempt);  // "2.json"
std::optional<std::uint64_t> parse_attempt_file_name(std::string_view name);

// Key of a tensor's piece in a data file: the name when it is whole, else "name[begin:end]".
std::string piece_key(std::string_view tensor, std::uint64_t begin_row, std::uint64_t end_row, std::uint64_t rows);
std::string state_key(std::uint32_t rank, std::string_view name);  // "state/3/sampler"

// A name inside a folder: not empty, no slash, no NUL, not hidden and no dot name, at most 255
// bytes.
bool is_safe_file_name(std::string_view name);

// "<namespace>.<job>"; an error that names what is wrong when either cannot be part of a folder's
// name.
Result<std::string> job_folder_name(std::string_view namespace_name, std::string_view job);

}  // namespace rekindle
