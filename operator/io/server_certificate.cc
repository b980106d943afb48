#include "operator/io/server_certificate.h"

#include <utility>

namespace rekindle::op {
namespace {

constexpr auto kAgeMax = std::chrono::days(15);  // half of what it is valid for

}  // namespace

ServerCertificate::ServerCertificate(const CertificateStore& certificates, std::string service,
                                     std::string namespace_name)
    : certificates_(certificates), service_(std::move(service)), namespace_name_(std::move(namespace_name)) {}

Result<std::optional<ServerTls>> ServerCertificate::renew(std::chrono::sys_seconds now) {
  // A clock that was put back since is before the time from which the certificate holds.
  if (made_ && now >= *made_ && now - *made_ <= kAgeMax) return std::nullopt;
  const Result<TlsKeyPair> pair = certificates_.server_certificate(service_, namespace_name_, now);
  if (!pair) return std::unexpected(pair.error());
  auto admission = TlsServerContext::make({.own = *pair, .client_authorities_pem = ""});
  if (!admission) return std::unexpected(admission.error());
  auto sidecars = TlsServerContext::make({.own = *pair, .client_authorities_pem = certificates_.authority_pem()});
  if (!sidecars) return std::unexpected(sidecars.error());
  made_ = now;
  return ServerTls{*std::move(admission), *std::move(sidecars)};
}

}  // namespace rekindle::op
