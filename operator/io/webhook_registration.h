// Writes the authority's certificate into our MutatingWebhookConfiguration, so that the API server
// trusts the webhooks. The chart's objects carry none, and an upgrade of the chart may take it out
// again: call it every now and then.
#pragma once

#include <string>

#include "common/base/json_fields.h"
#include "operator/io/transport.h"

namespace rekindle::op {

// The merge patch that puts caBundle into every webhook of `configuration`, none when it is there
// already. Pure.
std::optional<Json> ca_bundle_patch(const Json& configuration, const std::string& authority_pem);

// True when something had to be written.
Result<bool> register_webhooks(KubeTransport& transport, const std::string& configuration_name,
                               const std::string& authority_pem);

}  // namespace rekindle::op
