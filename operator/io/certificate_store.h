// The certificates of one installation. The authority lives in one Secret of the operator's
// namespace and is made by the process that comes first (create, or read what another made), so
// that two operators always end with the same one. Leaves are signed from it: one for the
// operator's own servers, kept in memory, and one for each job.
//
// Blocking calls to the API server; use from one thread at a time.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "common/base/json_fields.h"
#include "common/net/tls.h"
#include "operator/io/transport.h"

namespace rekindle::op {

inline constexpr std::string_view kAuthoritySecret = "rekindle-certificate-authority";

class CertificateStore {
 public:
  // Reads or makes the authority.
  static Result<CertificateStore> open(KubeTransport& transport, const std::string& namespace_name,
                                       std::chrono::sys_seconds now);

  const std::string& authority_pem() const { return authority_.certificate_pem; }

  // For the webhook and the sidecars' endpoint: the Service's DNS names; valid for 30 days, made
  // again well before.
  Result<TlsKeyPair> server_certificate(const std::string& service, const std::string& namespace_name,
                                        std::chrono::sys_seconds now) const;

  // For the sidecars of one job: identity rekindle://<namespace>/<job uid>, for both ends of a
  // connection; valid for a year, which no pod outlives without a restart of its job.
  Result<TlsKeyPair> job_certificate(const std::string& namespace_name, const std::string& job_uid,
                                     std::chrono::sys_seconds now) const;

 private:
  explicit CertificateStore(TlsKeyPair authority) : authority_(std::move(authority)) {}

  TlsKeyPair authority_;
};

// The identity that a sidecar of this job shows.
std::string job_identity(std::string_view namespace_name, std::string_view job_uid);

// The Secret of type kubernetes.io/tls that holds a certificate, its key and the authority.
Json tls_secret(const std::string& name, const std::string& namespace_name, const TlsKeyPair& pair,
                const std::string& authority_pem);

}  // namespace rekindle::op
