// attempts/<n>.json: what is accepted says the same when it is written again, and its parent lies
// in the past and inside the folder.
#include "tests/fuzz/support/fuzzing.h"
#include "worker-sidecar/checkpoint/attempt.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace rekindle;
  const std::string_view text = text_of(data, bytes);
  const Result<AttemptRecord> record = decode_attempt(text);
  if (!record) {
    expect_sentence(record.error());
    return 0;
  }
  RK_ASSERT(record->attempt > 0);
  RK_ASSERT(record->pods.size() <= text.size());
  if (record->parent) {
    RK_ASSERT(record->parent->attempt > 0 && record->parent->attempt < record->attempt);
    RK_ASSERT(!leads_out_of_its_folder(record->parent->path));
  }
  const Result<AttemptRecord> again = decode_attempt(encode_attempt(*record));
  RK_ASSERT(again.has_value());
  RK_ASSERT(*again == *record);
  return 0;
}
