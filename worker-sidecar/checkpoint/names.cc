#include "worker-sidecar/checkpoint/names.h"

#include <algorithm>
#include <charconv>

#include "common/base/assert.h"
#include "common/base/format.h"

namespace rekindle {
namespace {

constexpr std::size_t kFileNameBytesMax = 255;

// A decimal number without sign or leading zero, up to `max`, taken from the front of `text`.
std::optional<std::uint64_t> take_number(std::string_view& text, std::uint64_t max) {
  if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::size_t used = static_cast<std::size_t>(end - text.data());
  if (error != std::errc() || value > max || (text.front() == '0' && used > 1)) return std::nullopt;
  text.remove_prefix(used);
  return value;
}

bool take(std::string_view& text, std::string_view expected) {
  if (!text.starts_with(expected)) return false;
  text.remove_prefix(expected.size());
  return true;
}

}  // namespace

std::string checkpoint_folder_name(const FolderName& name) {
  RK_ASSERT(is_nonce(name.nonce));
  return format("a{}-s{}-{}", name.attempt, name.step, name.nonce);
}

std::optional<FolderName> parse_folder_name(std::string_view name) {
  if (!take(name, "a")) return std::nullopt;
  const std::optional<std::uint64_t> attempt = take_number(name, kAttemptMax);
  if (!attempt || !take(name, "-s")) return std::nullopt;
  const std::optional<std::uint64_t> step = take_number(name, kStepMax);
  if (!step || !take(name, "-") || !is_nonce(name)) return std::nullopt;
  return FolderName{*attempt, *step, std::string(name)};
}

bool is_nonce(std::string_view text) {
  return !text.empty() && text.size() <= 32 &&
         std::ranges::all_of(text, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); });
}

std::string rank_file_name(std::uint32_t rank) { return format("rank-{}.safetensors", rank); }

std::string state_file_name(std::uint32_t ordinal) { return format("state-{}.safetensors", ordinal); }

std::string attempt_file_name(std::uint64_t attempt) { return format("{}.json", attempt); }

std::optional<std::uint64_t> parse_attempt_file_name(std::string_view name) {
  const std::optional<std::uint64_t> attempt = take_number(name, kAttemptMax);
  if (!attempt || *attempt == 0 || name != ".json") return std::nullopt;
  return attempt;
}

std::string piece_key(std::string_view tensor, std::uint64_t begin_row, std::uint64_t end_row, std::uint64_t rows) {
  std::string key(tensor);
  if (begin_row == 0 && end_row == rows) return key;
  return format("{}[{}:{}]", key, begin_row, end_row);
}

std::string state_key(std::uint32_t rank, std::string_view name) { return format("state/{}/{}", rank, name); }

bool is_safe_file_name(std::string_view name) {
  return !name.empty() && name.size() <= kFileNameBytesMax && name.front() != '.' &&
         std::ranges::none_of(name, [](char c) { return c == '/' || static_cast<unsigned char>(c) < 0x20; });
}

Result<std::string> job_folder_name(std::string_view namespace_name, std::string_view job) {
  for (const auto& [what, text] : {std::pair{"namespace", namespace_name}, std::pair{"job name", job}}) {
    if (!is_safe_file_name(text)) {
      return fail(ErrorCode::invalid_input, format("the {} \"{}\" cannot name a checkpoint folder: it must not be "
                                                   "empty, begin with a dot or contain a slash",
                                                   what, text.substr(0, 80)));
    }
  }
  if (namespace_name.find('.') != std::string_view::npos) {
    return fail(ErrorCode::invalid_input, format("the namespace \"{}\" must not contain a dot", namespace_name));
  }
  std::string name = format("{}.{}", namespace_name, job);
  if (name.size() > kFileNameBytesMax) {
    return fail(ErrorCode::invalid_input, "namespace and job name together are longer than a folder's name may be");
  }
  return name;
}

}  // namespace rekindle
