#include "operator/admission/review.h"

#include <gtest/gtest.h>

#include "common/base/base64.h"
#include "common/base/json_fields.h"

namespace rekindle::op {
namespace {

constexpr const char* kReview =
    R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"r1","operation":"CREATE",
  "namespace":"team-a","dryRun":true,"object":{"kind":"Pod"}}})";

TEST(Review, ReadsARequest) {
  const Result<ReviewRequest> request = review_request_from_text(kReview);
  ASSERT_TRUE(request);
  EXPECT_EQ(request->uid, "r1");
  EXPECT_EQ(request->operation, "CREATE");
  EXPECT_EQ(request->namespace_name, "team-a");
  EXPECT_TRUE(request->dry_run);
  EXPECT_EQ(request->object["kind"], "Pod");
}

TEST(Review, RefusesWhatIsNone) {
  for (const char* text :
       {"", "nonsense", "[]", "{}",
        R"({"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview","request":{"uid":"r"}})",
        R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"})",
        R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":7}})",
        R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"r","object":[1]}})"}) {
    EXPECT_FALSE(review_request_from_text(text)) << text;
  }
  EXPECT_FALSE(review_request_from_text(std::string(kReviewBytesMax + 1, ' ')));
}

std::string review_of_list(std::string_view part, std::size_t count) {
  std::string text =
      R"({"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"r","object":{"a":[0)";
  while (count-- > 0) text += part;
  return text + "]}}}";
}

// The tree of such an object would take thirty times the memory of its text.
TEST(Review, AnObjectOfVeryManySmallPartsIsRefusedWithASentence) {
  const Result<ReviewRequest> request = review_request_from_text(review_of_list(",[]", kReviewBytesMax / 4));
  ASSERT_FALSE(request);
  EXPECT_NE(request.error().message.find("make it smaller"), std::string::npos) << request.error().message;
}

TEST(Review, AnObjectAsLargeAsAnyIsRead) {
  EXPECT_TRUE(review_request_from_text(review_of_list(R"(,{"name":"REKINDLE","value":"x"})", 10'000)));
  EXPECT_TRUE(review_request_from_text(review_of_list(",\"" + std::string(2 << 20, 'x') + "\"", 1)));
}

TEST(Review, AnswersWithAPatchInBase64) {
  AdmissionAnswer answer;
  answer.patch.push_back({{"op", "remove"}, {"path", "/a"}});
  answer.warnings = {"short", std::string(300, 'x')};
  const Json review = *parse_json(review_answer_text("r1", answer), "answer");
  EXPECT_EQ(review["response"]["uid"], "r1");
  EXPECT_EQ(review["response"]["allowed"], true);
  EXPECT_EQ(review["response"]["patchType"], "JSONPatch");
  EXPECT_EQ(review["response"]["patch"], base64_encode(R"([{"op":"remove","path":"/a"}])"));
  EXPECT_EQ(review["response"]["warnings"][1].get<std::string>().size(), 256u);
}

TEST(Review, ARefusalHasASentenceAndNoPatch) {
  AdmissionAnswer answer{.allowed = false, .message = "no"};
  answer.patch.push_back({{"op", "remove"}, {"path", "/a"}});
  const Json review = *parse_json(review_answer_text("r1", answer), "answer");
  EXPECT_EQ(review["response"]["status"]["message"], "no");
  EXPECT_FALSE(review["response"].contains("patch"));
}

}  // namespace
}  // namespace rekindle::op
