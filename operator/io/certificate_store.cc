#include "operator/io/certificate_store.h"

#include "common/base/base64.h"
#include "common/base/format.h"
#include "common/net/certificate.h"
#include "operator/io/api_client.h"
#include "operator/kube/requests.h"

namespace rekindle::op {
namespace {

constexpr auto kAuthorityLife = std::chrono::days(3650);
constexpr auto kServerLife = std::chrono::days(30);
constexpr auto kJobLife = std::chrono::days(365);
// Clocks of nodes differ a little.
constexpr auto kSkew = std::chrono::minutes(5);

CertificateValidity validity(std::chrono::sys_seconds now, std::chrono::seconds life) {
  return {.not_before = now - kSkew, .not_after = now + life};
}

Result<TlsKeyPair> pair_in_secret(const Json& secret) {
  JsonFields in(secret, "Secret " + std::string(kAuthoritySecret));
  const Json& data = in.object("data");
  JsonFields fields(data, format("Secret {} data", kAuthoritySecret));
  const Result<std::string> certificate = base64_decode(fields.text("tls.crt"));
  const Result<std::string> key = base64_decode(fields.text("tls.key"));
  for (const Status& status : {in.finish(), fields.finish()}) {
    if (!status) return std::unexpected(status.error());
  }
  if (!certificate) return std::unexpected(with_context(certificate.error(), "tls.crt of the certificate authority"));
  if (!key) return std::unexpected(with_context(key.error(), "tls.key of the certificate authority"));
  return TlsKeyPair{.certificate_pem = *certificate, .private_key_pem = *key};
}

}  // namespace

std::string job_identity(std::string_view namespace_name, std::string_view job_uid) {
  return format("rekindle://{}/{}", namespace_name, job_uid);
}

Json tls_secret(const std::string& name, const std::string& namespace_name, const TlsKeyPair& pair,
                const std::string& authority_pem) {
  return {{"apiVersion", "v1"},
          {"kind", "Secret"},
          {"metadata", {{"name", name}, {"namespace", namespace_name}}},
          {"type", "kubernetes.io/tls"},
          {"data",
           {{"tls.crt", base64_encode(pair.certificate_pem)},
            {"tls.key", base64_encode(pair.private_key_pem)},
            {"ca.crt", base64_encode(authority_pem)}}}};
}

Result<CertificateStore> CertificateStore::open(KubeTransport& transport, const std::string& namespace_name,
                                                std::chrono::sys_seconds now) {
  const ObjectKey key{namespace_name, std::string(kAuthoritySecret)};
  // The process that loses the race to create finds the winner's Secret in the second round.
  for (int round = 0; round < 2; ++round) {
    const Result<Json> found = call_api(transport, get_request(kSecrets, key), "reading the certificate authority");
    if (found) {
      Result<TlsKeyPair> pair = pair_in_secret(*found);
      if (!pair) return std::unexpected(pair.error());
      return CertificateStore(std::move(*pair));
    }
    if (found.error().code != ErrorCode::not_found) return std::unexpected(found.error());
    Result<TlsKeyPair> made = make_authority("rekindle " + namespace_name, validity(now, kAuthorityLife));
    if (!made) return std::unexpected(made.error());
    const Json secret = tls_secret(key.name, namespace_name, *made, made->certificate_pem);
    const Result<Json> created =
        call_api(transport, create_request(kSecrets, namespace_name, secret), "keeping the certificate authority");
    if (created) return CertificateStore(std::move(*made));
    if (created.error().code != ErrorCode::already_exists) return std::unexpected(created.error());
  }
  return fail(ErrorCode::conflict,
              format("the certificate authority {} comes and goes; look at who deletes it", to_text(key)), Retry::yes);
}

Result<TlsKeyPair> CertificateStore::server_certificate(const std::string& service, const std::string& namespace_name,
                                                        std::chrono::sys_seconds now) const {
  const std::string name = format("{}.{}", service, namespace_name);
  return sign_certificate(authority_, {.common_name = name,
                                       .names = {.dns = {service, name, name + ".svc", name + ".svc.cluster.local"}},
                                       .validity = validity(now, kServerLife),
                                       .for_server = true,
                                       .for_client = false});
}

Result<TlsKeyPair> CertificateStore::job_certificate(const std::string& namespace_name, const std::string& job_uid,
                                                     std::chrono::sys_seconds now) const {
  return sign_certificate(authority_, {.common_name = "rekindle job",
                                       .names = {.uri = {job_identity(namespace_name, job_uid)}},
                                       .validity = validity(now, kJobLife),
                                       .for_server = true,
                                       .for_client = true});
}

}  // namespace rekindle::op
