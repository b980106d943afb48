// What the chart tells the operator: one JSON file, read once at start. Every key is described in
// docs/operating/configuration.md.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "common/base/json_fields.h"
#include "common/contract/deadlines.h"
#include "operator/admission/settings.h"

namespace rekindle::op {

struct OperatorConfig {
  std::string namespace_name;         // the operator's own
  std::string service;                // its Service, for the webhook's certificate and for sidecars
  std::string webhook_configuration;  // MutatingWebhookConfiguration whose caBundle we write
  std::string sidecar_image;
  std::string sidecar_image_pull_policy = "IfNotPresent";
  SidecarResources sidecar_resources;
  std::string default_claim;
  // for jobs that do not say, by variable (names::kCheckpointSettings)
  std::map<std::string, std::string> checkpoints;
  std::uint32_t deadline_seconds = kBreakpointDeadlineDefault.count();
  std::string log_level = "info";
};

// `text` is the file's contents; unknown keys are refused by name, since a typo would silently mean
// the default.
Result<OperatorConfig> parse_operator_config(std::string_view text);

Result<OperatorConfig> read_operator_config(const std::string& path);

}  // namespace rekindle::op
