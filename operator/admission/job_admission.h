// The Job webhook (CREATE): refuses what cannot be protected, marks the pod templates of what can.
// docs/formats/injection.md is the contract. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "operator/admission/review.h"
#include "operator/admission/settings.h"

namespace rekindle::op {

// `job` is the whole object as it came. Without the label fault-scheduling it is admitted
// untouched; something that is no Job is refused with a message. A second call on the patched job
// gives an empty patch.
AdmissionAnswer admit_job(const nlohmann::json& job, const AdmissionSettings& settings);

}  // namespace rekindle::op
