#include "operator/kube/answer.h"

#include <gtest/gtest.h>

#include "common/base/format.h"

namespace rekindle::op {
namespace {

using namespace std::chrono_literals;

HttpResponse refusal(int status, const std::string& reason, const std::string& message = "because") {
  const Json body = {{"kind", "Status"}, {"code", status}, {"reason", reason}, {"message", message}};
  return {.status = status, .body = body.dump()};
}

struct Meaning {
  int status;
  const char* reason;
  ErrorCode code;
  Retry retry;
};

class AnswerMeaning : public testing::TestWithParam<Meaning> {};

TEST_P(AnswerMeaning, IsReadFromStatusAndReason) {
  const Result<Json> answer = read_answer(refusal(GetParam().status, GetParam().reason), "patching");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, GetParam().code);
  EXPECT_EQ(answer.error().retry, GetParam().retry);
}

INSTANTIATE_TEST_SUITE_P(All, AnswerMeaning,
                         testing::Values(Meaning{400, "BadRequest", ErrorCode::invalid_input, Retry::no},
                                         Meaning{401, "Unauthorized", ErrorCode::unauthorized, Retry::no},
                                         Meaning{403, "Forbidden", ErrorCode::refused, Retry::no},
                                         Meaning{404, "NotFound", ErrorCode::not_found, Retry::no},
                                         Meaning{408, "", ErrorCode::deadline_exceeded, Retry::yes},
                                         Meaning{409, "AlreadyExists", ErrorCode::already_exists, Retry::no},
                                         Meaning{409, "Conflict", ErrorCode::conflict, Retry::yes},
                                         Meaning{410, "Expired", ErrorCode::gone, Retry::no},
                                         Meaning{415, "UnsupportedMediaType", ErrorCode::invalid_input, Retry::no},
                                         Meaning{422, "Invalid", ErrorCode::invalid_input, Retry::no},
                                         Meaning{429, "TooManyRequests", ErrorCode::unavailable, Retry::yes},
                                         Meaning{500, "InternalError", ErrorCode::unavailable, Retry::yes},
                                         Meaning{501, "", ErrorCode::unavailable, Retry::no},
                                         Meaning{503, "ServiceUnavailable", ErrorCode::unavailable, Retry::yes},
                                         Meaning{504, "Timeout", ErrorCode::deadline_exceeded, Retry::yes},
                                         Meaning{302, "", ErrorCode::internal, Retry::no}));

TEST(Answer, SuccessGivesTheObject) {
  EXPECT_EQ(read_answer({.status = 201, .body = R"({"a":1})"}, "creating"), (Json{{"a", 1}}));
  EXPECT_EQ(read_answer({.status = 200, .body = ""}, "deleting"), Json());
}

TEST(Answer, FailureSaysWhatWasDoneAndWhatTheServerSaid) {
  const Result<Json> answer = read_answer(refusal(404, "NotFound", "pods \"a\" not found"), "getting pod team-a/a");
  EXPECT_EQ(answer.error().message, "getting pod team-a/a: the API server answered 404 NotFound: pods \"a\" not found");
}

TEST(Answer, APageOfAProxyBecomesOneLine) {
  const Result<Json> answer = read_answer({.status = 502, .body = "<html>\n\x01" + std::string(1000, 'x')}, "listing");
  EXPECT_TRUE(answer.error().message.starts_with("listing: the API server answered 502: <html>  xxx"));
  EXPECT_EQ(answer.error().message.find('\n'), std::string::npos);
  EXPECT_LT(answer.error().message.size(), 400u);
}

TEST(Answer, SuccessThatIsNoJsonIsAnError) { EXPECT_FALSE(read_answer({.status = 200, .body = "{\"a\":"}, "getting")); }

TEST(Answer, FieldsOfTheWrongTypeAreLeftOut) {
  const KubeStatus status = parse_kube_status(
      {{"kind", "Status"}, {"code", "410"}, {"reason", 7}, {"message", nullptr}, {"details", {{"causes", "none"}}}});
  EXPECT_EQ(status.code, 0);
  EXPECT_EQ(status.reason, "");
  EXPECT_TRUE(status.causes.empty());
}

TEST(Answer, CausesSayWhichField) {
  const KubeStatus status = parse_kube_status(
      {{"details", {{"causes", Json::array({{{"field", "spec.a"}, {"message", "Required value"}}})}}}});
  EXPECT_EQ(status.causes, (std::vector<std::string>{"spec.a: Required value"}));
}

TEST(RetryAfter, ComesFromTheHeader) { EXPECT_EQ(retry_after({.status = 429, .headers = {{"Retry-After", "3"}}}), 3s); }

TEST(RetryAfter, ComesFromTheStatusWhereThereIsNoHeader) {
  const Json body = {{"kind", "Status"}, {"details", {{"retryAfterSeconds", 5}}}};
  EXPECT_EQ(retry_after({.status = 503, .body = body.dump()}), 5s);
}

TEST(RetryAfter, IsNoneForADateOrNothing) {
  EXPECT_EQ(retry_after({.status = 429, .headers = {{"Retry-After", "Wed, 21 Oct 2026 07:28:00 GMT"}}}), std::nullopt);
  EXPECT_EQ(retry_after({.status = 429, .headers = {{"Retry-After", "-3"}}}), std::nullopt);
  EXPECT_EQ(retry_after({.status = 429}), std::nullopt);
}

TEST(RetryAfter, NeverStopsUsForLongerThanAnHour) {
  EXPECT_EQ(retry_after({.status = 429, .headers = {{"Retry-After", "99999"}}}), 1h);
  EXPECT_EQ(retry_after({.status = 429, .headers = {{"Retry-After", "99999999999999999999999"}}}), 1h);
}

TEST(ListPage, IsTakenApart) {
  const Json body = {{"metadata", {{"resourceVersion", "10"}, {"continue", "next"}}},
                     {"items", {{{"a", 1}}, {{"a", 2}}}}};
  const Result<ListPage> page = read_list_page({.status = 200, .body = body.dump()}, "listing");
  ASSERT_TRUE(page);
  EXPECT_EQ(page->resource_version, "10");
  EXPECT_EQ(page->continue_token, "next");
  EXPECT_EQ(page->items, (std::vector<Json>{{{"a", 1}}, {{"a", 2}}}));
}

TEST(ListPage, OfAnEmptyListHasNullItems) {
  const Result<ListPage> page =
      read_list_page({.status = 200, .body = R"({"metadata":{"resourceVersion":"1"},"items":null})"}, "listing");
  ASSERT_TRUE(page);
  EXPECT_TRUE(page->items.empty());
}

TEST(ListPage, WithoutAVersionCannotBeWatchedFrom) {
  EXPECT_FALSE(read_list_page({.status = 200, .body = R"({"metadata":{},"items":[]})"}, "listing"));
  EXPECT_FALSE(read_list_page({.status = 200, .body = R"({"metadata":{"resourceVersion":""},"items":[]})"}, "listing"));
  EXPECT_FALSE(read_list_page({.status = 200, .body = R"({"items":[]})"}, "listing"));
}

TEST(ListPage, WithItemsThatAreNoListIsRefused) {
  EXPECT_FALSE(
      read_list_page({.status = 200, .body = R"({"metadata":{"resourceVersion":"1"},"items":{"a":1}})"}, "listing"));
}

// A list of that many objects with that many values each, as text.
std::string list_of(std::size_t objects, std::size_t values) {
  std::string items;
  for (std::size_t i = 0; i < objects; ++i) {
    std::string numbers;
    for (std::size_t k = 0; k < values; ++k) numbers += numbers.empty() ? "1" : ",1";
    items += format(R"({}{{"metadata":{{"name":"pod-{}","namespace":"a","resourceVersion":"3"}},"spec":[{}]}})",
                    items.empty() ? "" : ",", i, numbers);
  }
  return R"({"kind":"PodList","metadata":{"resourceVersion":"9"},"items":[)" + items + "]}";
}

TEST(ListPage, WithAnObjectThatIsTooLargeHasTheOthers) {
  std::string body = list_of(2, 10);
  const std::string large = list_of(1, kObjectValuesMax);
  body.replace(body.find(R"({"metadata":{"name":"pod-1")"), std::string::npos,
               large.substr(large.find(R"({"metadata":{"name":"pod-0")")));
  const Result<ListPage> page = read_list_page({.status = 200, .body = body}, "listing");
  ASSERT_TRUE(page) << page.error().message;
  ASSERT_EQ(page->items.size(), 1u);
  ASSERT_EQ(page->too_large.size(), 1u);
  EXPECT_EQ(page->too_large[0].object["metadata"]["name"], "pod-0");
  EXPECT_FALSE(page->too_large[0].object.contains("spec"));
}

TEST(ListPage, OfMoreValuesThanAPageMayHaveIsToBeAskedForInParts) {
  const Result<ListPage> page = read_list_page({.status = 200, .body = list_of(5, kObjectValuesMax - 100)}, "listing");
  ASSERT_FALSE(page);
  EXPECT_EQ(page.error().code, ErrorCode::exhausted);
  EXPECT_TRUE(read_list_page({.status = 200, .body = list_of(3, kObjectValuesMax - 100)}, "listing"));
}

TEST(ListPage, ThatWasCutIsRefused) {
  const std::string body = list_of(3, 3);
  for (std::size_t bytes = 0; bytes < body.size(); ++bytes)
    EXPECT_FALSE(read_list_page({.status = 200, .body = body.substr(0, bytes)}, "listing")) << bytes;
}

}  // namespace
}  // namespace rekindle::op
