#include "operator/io/webhook_registration.h"

#include "common/base/base64.h"
#include "operator/io/api_client.h"
#include "operator/kube/requests.h"
#include "operator/model/metadata.h"

namespace rekindle::op {

std::optional<Json> ca_bundle_patch(const Json& configuration, const std::string& authority_pem) {
  const std::string bundle = base64_encode(authority_pem);
  const Json* there = find_path(configuration, {"webhooks"});
  Json webhooks = there != nullptr && there->is_array() ? *there : Json::array();
  bool changed = false;
  for (Json& webhook : webhooks) {
    const Json* written = find_path(webhook, {"clientConfig", "caBundle"});
    if (!webhook.is_object() || (written != nullptr && *written == bundle)) continue;
    Json& client = webhook["clientConfig"];
    if (!client.is_object()) client = Json::object();
    client["caBundle"] = bundle;
    changed = true;
  }
  if (!changed) return std::nullopt;
  // The version makes the server refuse the whole list when another client changed it meanwhile.
  const Json* version = find_path(configuration, {"metadata", "resourceVersion"});
  return Json{{"metadata", {{"resourceVersion", version != nullptr ? *version : Json("")}}},
              {"webhooks", std::move(webhooks)}};
}

Result<bool> register_webhooks(KubeTransport& transport, const std::string& configuration_name,
                               const std::string& authority_pem) {
  const ObjectKey key{"", configuration_name};
  const Result<Json> configuration =
      call_api(transport, get_request(kMutatingWebhooks, key), "reading the webhook configuration");
  if (!configuration) return std::unexpected(configuration.error());
  const std::optional<Json> patch = ca_bundle_patch(*configuration, authority_pem);
  if (!patch) return false;
  const Result<Json> written = call_api(transport, merge_patch_request(kMutatingWebhooks, key, *patch),
                                        "writing caBundle into the webhook configuration");
  if (!written) return std::unexpected(written.error());
  return true;
}

}  // namespace rekindle::op
