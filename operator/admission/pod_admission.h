// The pod webhook (CREATE): puts the sidecar, volumes, hook and environment into a protected pod.
// Never refuses: a pod that it cannot understand is left gated, with the reason as a warning and as
// annotation. docs/formats/injection.md is the contract. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "operator/admission/review.h"
#include "operator/admission/settings.h"
#include "operator/model/job.h"

namespace rekindle::op {

// The Volcano Job that controls a protected pod; none for any other pod, which is to be admitted as
// it is.
struct PodOwner {
  std::string namespace_name;
  std::string job_name;
  std::string job_uid;
};
std::optional<PodOwner> protected_owner(const nlohmann::json& pod, std::string_view request_namespace);

// `job` is the controlling Job, from the store or from a GET; null when it could not be had: the
// pod stays gated without the annotation, and is made anew later. A second call on the patched pod
// gives an empty patch.
AdmissionAnswer admit_pod(const nlohmann::json& pod, const PodOwner& owner, const Job* job,
                          const AdmissionSettings& settings);

}  // namespace rekindle::op
