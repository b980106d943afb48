// Settings and objects that the admission tests share.
#pragma once

#include <string>

#include "operator/admission/job_admission.h"
#include "operator/admission/pod_admission.h"
#include "tests/support/source_folder.h"
#include "tests/unit/operator/model/yaml.h"

namespace rekindle::op {

// Of the operator that injects; the pods in golden/ carry it.
inline const std::string kInjectingVersion = "7.8.9";

inline AdmissionSettings make_settings() {
  AdmissionSettings settings;
  settings.version = kInjectingVersion;
  settings.sidecar_image = "rekindle.dev/sidecar:0.1.0";
  settings.image_pull_policy = "IfNotPresent";
  settings.operator_address = "rekindle-operator.rekindle-system.svc:9444";
  return settings;
}

inline const std::string kGoldenFolder = test::source_path("tests/unit/operator/admission/golden/");

inline Json read_golden(const std::string& name) { return read_yaml(kGoldenFolder + name).at(0); }

// What the API server makes of the answer, by the JSON library's own RFC 6902 code rather than by
// ours.
inline Json patched(const Json& object, const AdmissionAnswer& answer) { return object.patch(answer.patch); }

// Of the pods in golden/.
inline const PodOwner kOwner{"team-a", "digits", "6a1f8a77-2f43-4a0c-9b0e-6a3f9f2c1d10"};

// The Job as the store knows it after our webhook: marked, with the uid that the pods name.
inline Job stored_job(const Json& job, const AdmissionSettings& settings) {
  Json admitted = patched(job, admit_job(job, settings));
  admitted["metadata"]["uid"] = kOwner.job_uid;
  return *job_from_json(admitted);
}

}  // namespace rekindle::op
