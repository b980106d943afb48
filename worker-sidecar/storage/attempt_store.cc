#include "worker-sidecar/storage/attempt_store.h"

#include <algorithm>
#include <cerrno>
#include <ranges>

#include "common/base/assert.h"
#include "common/base/format.h"
#include "worker-sidecar/checkpoint/candidates.h"
#include "worker-sidecar/checkpoint/names.h"
#include "worker-sidecar/storage/files.h"

namespace rekindle {
namespace {

// A record of ours names one pod and has some hundred. One of 4 MiB costs 60 MiB to read.
constexpr std::uint64_t kRecordBytesMax = 64u << 10;
// Of all records in one listing.
constexpr std::uint64_t kListedBytesMax = 16u << 20;
// Between two looks for a record that is to come.
constexpr Duration kAttemptPause = std::chrono::milliseconds(200);
// Claims that lose to others; more rivals than this at once means something else is wrong.
constexpr int kClaimsMax = 100;

Result<AttemptRecord> read_record(FileSystem& file_system, const std::string& job_folder, std::uint64_t attempt,
                                  std::uint64_t& bytes_left) {
  const std::string path = format("{}/{}/{}", job_folder, kAttemptsFolder, attempt_file_name(attempt));
  if (bytes_left == 0) {
    return fail(ErrorCode::exhausted,
                format("the records of later attempts have {} bytes already, and {} is not read: remove records of "
                       "attempts that this job never made",
                       kListedBytesMax, path));
  }
  const Result<std::string> text = read_whole_file(file_system, path, kRecordBytesMax);
  if (!text) return std::unexpected(text.error());
  bytes_left -= std::min<std::uint64_t>(bytes_left, text->size());
  Result<AttemptRecord> record = decode_attempt(*text);
  // Nobody asks a list for them, and they may be many.
  if (record) record->pods = {};
  return record;
}

// Sorted.
Result<std::vector<std::uint64_t>> attempt_numbers(FileSystem& file_system, const std::string& job_folder) {
  const Result<std::vector<std::string>> names = list_folder(file_system, join_path(job_folder, kAttemptsFolder));
  if (!names) return std::unexpected(names.error());
  std::vector<std::uint64_t> numbers;
  for (const std::string& name : *names) {
    if (const std::optional<std::uint64_t> number = parse_attempt_file_name(name)) numbers.push_back(*number);
  }
  std::ranges::sort(numbers);
  return numbers;
}

Result<std::uint64_t> highest_number(FileSystem& file_system, const std::string& job_folder) {
  const Result<std::vector<std::uint64_t>> numbers = attempt_numbers(file_system, job_folder);
  if (!numbers) return std::unexpected(numbers.error());
  const Result<std::vector<std::string>> names = list_folder(file_system, job_folder);
  if (!names) return std::unexpected(names.error());
  FolderScan scan;
  // Records below the highest that can be used say nothing more.
  for (const std::uint64_t number : std::views::reverse(*numbers)) {
    std::uint64_t bytes_left = kRecordBytesMax;
    scan.attempts.push_back({number, read_record(file_system, job_folder, number, bytes_left)});
    if (scan.attempts.back().record) break;
  }
  for (const std::string& name : *names) {
    std::optional<FolderName> folder = parse_folder_name(name);
    FileInfo manifest;
    if (!folder || file_system.stat(format("{}/{}/{}", job_folder, name, kManifestName), manifest) == -ENOENT) continue;
    scan.folders.push_back({.path = name,
                            .name = *std::move(folder),
                            .manifest = fail(ErrorCode::unavailable, "a claim reads no manifests")});
  }
  return newest_attempt(scan);
}

}  // namespace

Result<AttemptRecord> claim_attempt(FileSystem& file_system, const std::string& job_folder, AttemptRecord record,
                                    const std::string& nonce) {
  RK_ASSERT(is_nonce(nonce));
  const Result<std::uint64_t> highest = highest_number(file_system, job_folder);
  if (!highest) return std::unexpected(highest.error());
  const std::string folder = join_path(job_folder, kAttemptsFolder);
  record.attempt = *highest;
  for (int i = 0; i < kClaimsMax; ++i) {
    if (record.attempt >= kAttemptMax) {
      return fail(ErrorCode::corrupt,
                  format("{} speaks of attempt {}, and no job has had so many: remove records and checkpoints of "
                         "attempts that this job never made",
                         job_folder, record.attempt));
    }
    ++record.attempt;
    const std::string text = encode_attempt(record);
    const std::string name = attempt_file_name(record.attempt);
    if (Status status = publish_file(file_system, folder, name, text, nonce); !status) {
      if (status.error().code == ErrorCode::already_exists) continue;
      return std::unexpected(with_context(status.error(), format("claiming attempt {}", record.attempt)));
    }
    const Result<std::string> read = read_whole_file(file_system, join_path(folder, name), kRecordBytesMax);
    if (!read) return std::unexpected(with_context(read.error(), format("reading back attempt {}", record.attempt)));
    if (*read != text)
      return fail(
          ErrorCode::corrupt,
          format("the record of attempt {} reads back differently: the storage is not reliable", record.attempt));
    return record;
  }
  return fail(
      ErrorCode::conflict,
      format("no attempt could be claimed in {}: others claim them all the time. Is the job running twice?", folder),
      Retry::yes);
}

Status await_attempt(FileSystem& file_system, const std::string& job_folder, std::uint64_t number, Duration wait_max,
                     Waiter& waiter) {
  const std::string path = format("{}/{}/{}", job_folder, kAttemptsFolder, attempt_file_name(number));
  const Duration until = waiter.now() + wait_max;
  for (;;) {
    FileInfo info;
    const int answer = file_system.stat(path, info);
    if (answer == 0) return {};
    if (waiter.now() >= until) return fail_errno(-answer, "looking for " + path);
    waiter.pause(kAttemptPause);
  }
}

Result<std::vector<FoundAttempt>> list_attempts(FileSystem& file_system, const std::string& job_folder) {
  const Result<std::vector<std::uint64_t>> numbers = attempt_numbers(file_system, job_folder);
  if (!numbers) return std::unexpected(numbers.error());
  std::vector<FoundAttempt> attempts;
  std::uint64_t bytes_left = kListedBytesMax;
  for (const std::uint64_t number : std::views::reverse(*numbers))
    attempts.push_back({number, read_record(file_system, job_folder, number, bytes_left)});
  std::ranges::reverse(attempts);
  return attempts;
}

}  // namespace rekindle
