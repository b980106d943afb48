#include "operator/io/webhook_registration.h"

#include "common/base/base64.h"
#include "operator/io/api_client.h"
#include "operator/kube/requests.h"

namespace rekindle::op {

std::optional<Json> ca_bundle_patch(const Json& configuration, const std::string& authority_pem) {
  const std::string bundle = base64_encode(authority_pem);
  Json webhooks = configuration.value("webhooks", Json::array());
  bool changed = false;
  for (Json& webhook : webhooks) {
    Json& client = webhook["clientConfig"];
    if (client.value("caBundle", "") == bundle) continue;
    client["caBundle"] = bundle;
    changed = true;
  }
  if (!changed) return std::nullopt;
  // The version makes the server refuse the whole list when somebody else changed it meanwhile.
  return Json{{"metadata", {{"resourceVersion", configuration["metadata"].value("resourceVersion", "")}}},
              {"webhooks", std::move(webhooks)}};
}

Result<bool> register_webhooks(KubeTransport& transport, const std::string& configuration_name,
                               const std::string& authority_pem) {
  const ObjectKey key{"", configuration_name};
  const Result<Json> configuration =
      ask(transport, get_request(kMutatingWebhooks, key), "reading the webhook configuration");
  if (!configuration) return std::unexpected(configuration.error());
  const std::optional<Json> patch = ca_bundle_patch(*configuration, authority_pem);
  if (!patch) return false;
  const Result<Json> written = ask(transport, merge_patch_request(kMutatingWebhooks, key, *patch),
                                   "writing caBundle into the webhook configuration");
  if (!written) return std::unexpected(written.error());
  return true;
}

}  // namespace rekindle::op
