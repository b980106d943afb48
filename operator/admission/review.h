// AdmissionReview admission.k8s.io/v1: bytes in, bytes out. Pure; nothing throws, whatever the
// bytes are.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/error.h"

namespace rekindle::op {

// What admission decided about one object. `patch` is an array of RFC 6902 operations, empty for
// "as it is".
struct AdmissionAnswer {
  bool allowed = true;
  std::string message;                // for a refusal: one sentence that says what to change
  std::vector<std::string> warnings;  // kubectl shows them
  nlohmann::json patch = nlohmann::json::array();
};

struct ReviewRequest {
  std::string uid;
  std::string operation;  // CREATE...
  std::string namespace_name;
  nlohmann::json object;
  bool dry_run = false;
};

// At most 3 MiB, the API server's own limit of a request.
inline constexpr std::size_t kReviewBytesMax = 3u << 20;
// A Job of a hundred tasks has some ten thousand.
inline constexpr std::size_t kReviewValuesMax = 50'000;

Result<ReviewRequest> review_request_from_text(std::string_view body);

// The whole AdmissionReview answer. The patch is base64 as the API wants it; warnings are cut to
// 256 characters each, as the API asks.
std::string review_answer_text(std::string_view uid, const AdmissionAnswer& answer);

}  // namespace rekindle::op
