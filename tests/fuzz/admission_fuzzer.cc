// What anybody in the cluster may send to the webhooks: the body of a review, or an object in one.
// Every review is answered under its own uid; the patch fits the object and makes it into one that
// needs no other patch; the pod webhook refuses nothing.
#include <algorithm>
#include <memory>
#include <string>

#include "common/base/base64.h"
#include "common/base/json_fields.h"
#include "common/system/log.h"
#include "operator/admission/review.h"
#include "operator/io/operator_servers.h"
#include "operator/model/names.h"
#include "tests/fuzz/support/cost.h"
#include "tests/support/recorded_transport.h"

namespace rekindle::op {
namespace {

constexpr std::string_view kJobPath = "/admission/job";
constexpr std::string_view kPodPath = "/admission/pod";

constexpr std::string_view kHead =
    R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"r1","namespace":"team-a","object":)";

struct Webhooks {
  AdmissionSettings settings{.version = "1",
                             .sidecar_image = "sidecar:1",
                             .operator_address = "operator:9444",
                             .default_claim = "checkpoints"};
  JobCache jobs;
  Metrics metrics;

  Webhooks() {
    jobs.put({"team-a", "digits"},
             std::make_shared<const Job>(Job{.namespace_name = "team-a",
                                             .name = "digits",
                                             .uid = "j1",
                                             .tasks = {{.name = "worker", .replicas = 2, .is_protected = true}}}));
  }

  HttpResponse answer(std::string_view path, std::string_view body) {
    RecordedTransport transport;
    JobReader reader(jobs, transport);
    return answer_admission({.method = "POST", .path = std::string(path), .body = std::string(body)}, settings, reader,
                            metrics);
  }
};

Webhooks& webhooks() {
  static Webhooks all;
  return all;
}

Json answer_in(const HttpResponse& response) {
  RK_ASSERT(response.status == 200);
  const Json told = parse_json(response.body, "the answer", SIZE_MAX).value();
  RK_ASSERT(told["kind"] == "AdmissionReview" && told["apiVersion"] == "admission.k8s.io/v1");
  return told["response"];
}

void check_answer(std::string_view path, std::string_view body, const HttpResponse& response) {
  if (response.status == 400) {
    RK_ASSERT(!response.body.empty());
    return;
  }
  const Json answer = answer_in(response);
  Json review = parse_json(body, "the review", SIZE_MAX).value();
  RK_ASSERT(answer["uid"] == review["request"]["uid"]);
  for (const Json& warning : answer.value("warnings", Json::array()))
    RK_ASSERT(!warning.get_ref<const std::string&>().empty() && warning.get_ref<const std::string&>().size() <= 256);
  if (!answer["allowed"].get<bool>()) {
    RK_ASSERT(path == kJobPath && !answer.contains("patch") && !answer["status"]["message"].empty());
    return;
  }
  if (!answer.contains("patch")) return;
  const std::string patch = base64_decode(answer["patch"].get_ref<const std::string&>()).value();
  Json& object = review["request"]["object"];
  // By the library's own code and not by ours; it throws where the patch does not fit.
  object = object.patch(parse_json(patch, "the patch", SIZE_MAX).value());
  const std::string grown = dump_json(review);
  // What just fitted may not fit any more.
  if (body.size() > kReviewBytesMax / 64) return;
  const Json again = answer_in(webhooks().answer(path, grown));
  RK_ASSERT(again["allowed"].get<bool>() && !again.contains("patch"));
}

void answer_within(std::string_view path, std::string_view body, CostBound bound = {},
                   std::string_view what = "this review") {
  HttpResponse response;
  expect_cost(body.size(), [&] { response = webhooks().answer(path, body); }, bound, what);
  check_answer(path, body, response);
}

// Of a whole body each, with so much of the object as makes the webhook look at the rest.
const std::string kJob = std::string(kHead) +
                         R"({"apiVersion":"batch.volcano.sh/v1alpha1","kind":"Job","metadata":{"name":"digits",)"
                         R"("labels":{"fault-scheduling":"grace"}},"spec":)";
const std::string kPod =
    std::string(kHead) +
    R"({"metadata":{"name":"digits-worker-0","labels":{"rekindle.dev/protected":"true"},)"
    R"("annotations":{"volcano.sh/task-spec":"worker","volcano.sh/task-index":"0"},"ownerReferences":[{"apiVersion":)"
    R"("batch.volcano.sh/v1alpha1","kind":"Job","name":"digits","uid":"j1","controller":true}]},"spec":)";
constexpr std::string_view kTask = R"({"template":{"spec":{"containers":[{}]}}})";

// A review of as many equal parts as may be read.
void answer_many(std::string_view what, std::string_view path, const std::string& before, std::string_view part,
                 std::string_view behind, CostBound bound) {
  const auto values = [](std::string_view text) {
    return static_cast<std::size_t>(
        std::ranges::count_if(text, [](char c) { return c == ',' || c == '[' || c == '{'; }));
  };
  const std::string each = "," + std::string(part);
  const std::size_t count = (kReviewValuesMax - values(before) - 10) / values(each);
  const std::size_t bytes_max = before.size() + count * each.size();
  answer_within(
      path,
      repeated(before + std::string(part), each, std::string(behind) + "}}}", std::min(bytes_max, kReviewBytesMax)),
      bound, what);
}

}  // namespace
}  // namespace rekindle::op

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  using namespace rekindle;
  using namespace rekindle::op;
  set_log_level(LogLevel::error);
  // Copies of a long text, and what as many values as a review may have make of themselves.
  constexpr CostBound kBound{.bytes_per_byte = 10, .bytes_more = 16 << 20};
  for (const std::string_view path : {kJobPath, kPodPath}) {
    const std::string& around = path == kJobPath ? kJob : kPod;
    const auto is_answered = [&](std::string_view name, const std::string& body) {
      answer_within(path, body, kBound, name);
    };
    for_each_large_json(around + "%}}}", kReviewBytesMax, is_answered);
    for (const std::string_view part : {"1", "\"\"", "[]", "{}", R"({"a":1})", "[[[[[[[[[[]]]]]]]]]]"})
      answer_many(part, path, around + R"({"more":[)", part, "]}", kBound);
  }
  for_each_large_json("%", kReviewBytesMax, [&](std::string_view name, const std::string& body) {
    answer_within(kPodPath, body, kBound, name);
  });
  const std::string policies = kJob + R"({"tasks":[)" + std::string(kTask) + R"(],"policies":[)";
  answer_many("many tasks", kJobPath, kJob + R"({"tasks":[)", kTask, "]}", kBound);
  answer_many("policies that are taken out", kJobPath, policies, R"({"action":"Ignore"},{})", "]}", kBound);
  const std::string named = kJob + R"({"tasks":[{"name":")" + std::string(kReviewBytesMax / 2, 'n') +
                            R"(","template":{"spec":{"containers":[{}]}},"policies":[)";
  answer_many("policies of a task with a long name", kJobPath, named, R"({"event":"PodFailed","action":"AbortJob"})",
              "]}]}", kBound);
  answer_many("many containers", kPodPath, kPod + R"({"containers":[)", R"({"name":"a"})", "]}", kBound);
  answer_many("many variables", kPodPath, kPod + R"({"containers":[{"name":"a","env":[)", R"({"name":"b"})", "]}]}",
              kBound);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace rekindle;
  using namespace rekindle::op;
  std::string_view input = text_of(data, bytes);
  const auto choice = take_number<std::uint8_t>(input);
  const std::string_view path = choice % 2 == 0 ? kJobPath : kPodPath;
  webhooks().settings.default_claim = choice / 2 % 2 == 0 ? "checkpoints" : "";
  if (choice / 4 % 2 == 0) {
    answer_within(path, input);
  } else {
    answer_within(path, std::string(kHead) + std::string(input) + "}}");
  }
  return 0;
}
