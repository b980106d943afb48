// What the operator answers to a sidecar: numbers are what was written and not their low bits, and
// lists are no longer than the text.
#include "common/base/json_fields.h"
#include "common/contract/sync_answer.h"
#include "tests/fuzz/support/cost.h"

namespace rekindle {
namespace {

constexpr std::size_t kAnswerBytesMax = 16u << 20;  // of parse_json

void read(std::string_view text) {
  const Result<SyncAnswer> answer = decode_sync_answer(text);
  if (!answer) return expect_sentence(answer.error());
  const Json written = *parse_json(text, "the answer", kAnswerBytesMax);
  RK_ASSERT(written["pods_expected"] == answer->pods_expected && written["version"] == answer->version);
  RK_ASSERT(written["pods"].size() == answer->pods.size());
  for (std::size_t i = 0; i < answer->pods.size(); ++i) {
    const SyncPod& pod = answer->pods[i];
    RK_ASSERT(written["pods"][i]["ordinal"] == pod.ordinal && written["pods"][i]["name"] == pod.name);
  }
  for (const SyncOrder& order : answer->orders) RK_ASSERT(order.seconds_left >= 0);
  RK_ASSERT(decode_sync_answer(encode_sync_answer(*answer)) == *answer);
}

}  // namespace
}  // namespace rekindle

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  using namespace rekindle;
  const auto is_read = [](std::string_view name, const std::string& text) {
    expect_cost(text.size(), [&] { read(text); }, {}, name);
  };
  // Reading a MiB takes half a second under the sanitizers. What would take a minute at the limit
  // of the API server takes seconds at this size, and the bound is one.
  constexpr std::size_t kBytes = 256 << 10;
  for_each_large_json("%", kBytes, is_read);
  const std::string head = R"({"version":1,"pods_expected":2,"go":true,"job":{"uid":"j"},"pods":)";
  for_each_large_json(head + "%}", kBytes, is_read);
  for_each_large_json(head + R"([],"orders":%})", kBytes, is_read);
  read(repeated(head + "[", R"({"name":"p","uid":"u","ordinal":1},)", R"({"name":"p","uid":"u","ordinal":1}]})",
                kBytes));
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace rekindle;
  expect_cost(bytes, [&] { read(text_of(data, bytes)); });
  return 0;
}
