// What the chart decides about injection.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "common/contract/deadlines.h"

namespace rekindle::op {

// Texts as Kubernetes reads them.
struct SidecarResources {
  std::string cpu_request = "50m";
  std::string memory_request = "64Mi";
  std::string memory_limit = "256Mi";
};

struct AdmissionSettings {
  std::string version;  // of the operator: value of rekindle.dev/injected
  std::string sidecar_image;
  std::string image_pull_policy;  // empty: the API server's default
  std::string operator_address;   // "rekindle-operator.<namespace>.svc:9444"
  // storage.claim; empty: a job must name one, or mount a volume of its own
  std::string default_claim;
  std::int64_t deadline_seconds = kBreakpointDeadlineDefault.count();
  SidecarResources resources;
  // for jobs that do not say, by variable (names::kCheckpointSettings)
  std::map<std::string, std::string> checkpoints;
};

}  // namespace rekindle::op
