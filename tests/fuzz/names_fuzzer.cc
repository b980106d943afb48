// Names of folders and files that others chose: what is accepted stays inside its folder and is
// spelled in one way only.
#include "tests/fuzz/support/fuzzing.h"
#include "worker-sidecar/checkpoint/names.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace rekindle;
  const std::string_view text = text_of(data, bytes);
  if (is_safe_file_name(text)) RK_ASSERT(!leads_out_of_its_folder(text));
  if (const std::optional<FolderName> name = parse_folder_name(text)) {
    RK_ASSERT(checkpoint_folder_name(*name) == text && !leads_out_of_its_folder(text));
  }
  if (const std::optional<std::uint64_t> attempt = parse_attempt_file_name(text)) {
    RK_ASSERT(*attempt > 0 && attempt_file_name(*attempt) == text);
  }
  // The first line is the namespace, the rest the job.
  const std::size_t end = text.find('\n');
  const std::string_view namespace_name = text.substr(0, end);
  const std::string_view job = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  if (const Result<std::string> folder = job_folder_name(namespace_name, job)) {
    RK_ASSERT(!leads_out_of_its_folder(*folder));
    // Two jobs never share a folder: the first dot is where the namespace ends.
    RK_ASSERT(folder->substr(0, folder->find('.')) == namespace_name && folder->substr(folder->find('.') + 1) == job);
  } else {
    expect_sentence(folder.error());
  }
  return 0;
}
