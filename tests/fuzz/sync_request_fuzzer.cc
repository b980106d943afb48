// What a sidecar tells the operator: texts and lists within their limits, and what was read is
// written and read again as the same.
#include "common/contract/job_limits.h"
#include "common/contract/sync_request.h"
#include "tests/fuzz/support/cost.h"

namespace rekindle {
namespace {

constexpr std::size_t kTextBytesMax = 1024;
constexpr std::size_t kListMax = 16;

void check_report(const SyncReport& report) {
  RK_ASSERT(report.breakpoints.size() <= kListMax && report.problems.size() <= kListMax);
  RK_ASSERT(report.unknown_phase.size() <= kTextBytesMax);
  for (const ReportedBreakpoint& told : report.breakpoints) {
    for (const std::string* text : {&told.id, &told.unknown_cause, &told.pod, &told.detail, &told.unknown_state,
                                    &told.path, &told.manifest_hash, &told.message, &told.time})
      RK_ASSERT(text->size() <= kTextBytesMax);
  }
  for (const ReportedProblem& told : report.problems)
    RK_ASSERT(told.code.size() <= kTextBytesMax && told.message.size() <= kTextBytesMax);
}

void check(std::string_view text) {
  const Result<SyncRequest> request = decode_sync_request(text);
  if (!request) return expect_sentence(request.error());
  const SyncSender& sender = request->sender;
  for (const std::string* field : {&sender.pod_name, &sender.pod_uid, &sender.address})
    RK_ASSERT(field->size() <= kTextBytesMax);
  RK_ASSERT(sender.ordinal < kPodsMax && request->wait <= std::chrono::seconds(30));
  if (request->report) check_report(*request->report);
  RK_ASSERT(decode_sync_request(encode_sync_request(*request)) == *request);
}

}  // namespace
}  // namespace rekindle

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  using namespace rekindle;
  // The owner thread reads one at a time; nothing that it has read outlives the limits above.
  constexpr CostBound kBound{.bytes_per_byte = 12};
  const auto is_read = [&](std::string_view name, const std::string& text) {
    expect_cost(text.size(), [&] { check(text); }, kBound, name);
  };
  constexpr std::size_t kBytes = 1u << 20;
  const std::string head = R"({"pod":{"name":"p","uid":"u"},"report":)";
  for_each_large_json("%", kBytes, is_read);
  for_each_large_json(head + "%}", kBytes, is_read);
  for_each_large_json(head + R"({"breakpoints":%}})", kBytes, is_read);
  is_read("many breakpoints",
          repeated(head + R"({"breakpoints":[{"state":"durable"})", R"(,{"state":"durable"})", "]}}", kBytes));
  is_read("many problems", repeated(head + R"({"problems":[{"code":"a"})", R"(,{"code":"a"})", "]}}", kBytes));
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace rekindle;
  expect_cost(bytes, [&] { check(text_of(data, bytes)); });
  return 0;
}
