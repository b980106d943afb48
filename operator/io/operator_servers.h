// What the operator serves: webhooks (9443), sidecars (9444, mutual TLS), metrics (8080) and health
// (8081). The servers carry bytes; what is answered is decided by the pure parts, for sidecars on
// the owner thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "common/base/mailbox.h"
#include "common/net/http_server.h"
#include "operator/admission/settings.h"
#include "operator/io/job_cache.h"
#include "operator/io/metrics.h"
#include "operator/io/operator_input.h"
#include "operator/io/transport.h"

namespace rekindle::op {

struct OperatorPorts {
  std::uint16_t admission = 9443;
  std::uint16_t sidecars = 9444;
  std::uint16_t metrics = 8080;
  std::uint16_t health = 8081;
};

// The answer of one webhook call. A pod's Job comes from the cache, else from a GET; any thread.
HttpResponse answer_admission(const HttpRequest& request, const AdmissionSettings& settings, const JobCache& jobs,
                              KubeTransport& transport, Metrics& metrics);

// The answer of POST /v1/sync: hands the request to the owner thread and waits for its answer; any
// thread.
HttpResponse answer_sync(const ServedRequest& served, Mailbox<OperatorInput>& mailbox);

class OperatorServers {
 public:
  struct Health {
    std::function<bool()> alive;
    std::function<bool()> ready;
  };

  // Everything given by reference must outlive the servers.
  static Result<std::unique_ptr<OperatorServers>> start(const OperatorPorts& ports,
                                                        std::shared_ptr<const TlsServerContext> admission_tls,
                                                        std::shared_ptr<const TlsServerContext> sidecar_tls,
                                                        AdmissionSettings settings, JobCache& jobs,
                                                        KubeTransport& transport, Metrics& metrics,
                                                        Mailbox<OperatorInput>& mailbox, Health health);

  void replace_tls(std::shared_ptr<const TlsServerContext> admission_tls,
                   std::shared_ptr<const TlsServerContext> sidecar_tls);

  // Health first, so that no new work is sent here; then the rest.
  void stop();

 private:
  OperatorServers() = default;

  std::unique_ptr<HttpServer> health_;
  std::unique_ptr<HttpServer> metrics_;
  std::unique_ptr<HttpServer> sidecars_;
  std::unique_ptr<HttpServer> admission_;
};

}  // namespace rekindle::op
