#include "operator/admission/review.h"

#include <utility>

#include "common/base/base64.h"
#include "common/base/json_fields.h"

namespace rekindle::op {
namespace {

constexpr std::string_view kApiVersion = "admission.k8s.io/v1";
constexpr std::size_t kWarningBytesMax = 256;

std::string cut(std::string_view text, std::size_t bytes_max) {
  if (text.size() <= bytes_max) return std::string(text);
  std::size_t end = bytes_max - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0u) == 0x80u) --end;
  return std::string(text.substr(0, end)) + "...";
}

}  // namespace

Result<ReviewRequest> review_request_from_text(std::string_view body) {
  Result<Json> review = parse_json(body, "AdmissionReview", kReviewBytesMax, kReviewValuesMax);
  if (!review) return std::unexpected(review.error());
  JsonFields top(*review, "AdmissionReview");
  if (top.text("kind") != "AdmissionReview") top.refuse("kind", "must be AdmissionReview");
  if (top.text("apiVersion") != kApiVersion) top.refuse("apiVersion", "must be admission.k8s.io/v1");
  JsonFields in(top.object("request"), "AdmissionReview request");
  ReviewRequest request{.uid = in.text("uid"),
                        .operation = in.text_or("operation", ""),
                        .namespace_name = in.text_or("namespace", ""),
                        .object = Json::object(),
                        .dry_run = in.boolean_or("dryRun", false)};
  const bool has_object = !in.object_or_empty("object").empty();
  if (Status status = top.finish(); !status) return std::unexpected(status.error());
  if (Status status = in.finish(); !status) return std::unexpected(status.error());
  // Moved: it is nearly all that there is.
  if (has_object) request.object = std::move((*review)["request"]["object"]);
  return request;
}

std::string review_answer_text(std::string_view uid, const AdmissionAnswer& answer) {
  Json response{{"uid", uid}, {"allowed", answer.allowed}};
  if (!answer.allowed) {
    response["status"] = {{"code", 422}, {"reason", "Invalid"}, {"message", answer.message}};
  } else if (!answer.patch.empty()) {
    response["patchType"] = "JSONPatch";
    response["patch"] = base64_encode(dump_json(answer.patch));
  }
  if (!answer.warnings.empty()) {
    Json warnings = Json::array();
    for (const std::string& warning : answer.warnings) warnings.push_back(cut(warning, kWarningBytesMax));
    response["warnings"] = std::move(warnings);
  }
  return dump_json({{"apiVersion", kApiVersion}, {"kind", "AdmissionReview"}, {"response", std::move(response)}});
}

}  // namespace rekindle::op
