// The certificate of the operator's own servers, made anew at half of its life: a renewal that
// fails can be repeated for as long again. One thread.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "common/net/tls.h"
#include "operator/io/certificate_store.h"

namespace rekindle::op {

// The same certificate for both: the webhook takes any client, the sidecars' endpoint those with a
// certificate of ours.
struct ServerTls {
  std::shared_ptr<const TlsServerContext> admission;
  std::shared_ptr<const TlsServerContext> sidecars;
};

class ServerCertificate {
 public:
  // `certificates` must outlive it.
  ServerCertificate(const CertificateStore& certificates, std::string service, std::string namespace_name);

  // What is to be served from now on; none while what was made before is good. After an error it is
  // made at the next call.
  Result<std::optional<ServerTls>> renew(std::chrono::sys_seconds now);

 private:
  const CertificateStore& certificates_;
  const std::string service_;
  const std::string namespace_name_;
  std::optional<std::chrono::sys_seconds> made_;
};

}  // namespace rekindle::op
