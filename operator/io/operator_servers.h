// What the operator serves: webhooks (9443), sidecars (9444, mutual TLS), metrics (8080) and health
// (8081). The servers carry bytes; what is answered is decided by the pure parts, for sidecars on
// the owner thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "common/base/mailbox.h"
#include "common/net/http_server.h"
#include "operator/admission/settings.h"
#include "operator/io/job_cache.h"
#include "operator/io/job_reader.h"
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

// What strangers may take of the servers: every pod in the cluster reaches the ports.
struct OperatorServerLimits {
  std::string address = "0.0.0.0";
  // A head, with the TLS handshake before it; a whole request and its answer may take longer.
  Duration head = std::chrono::seconds(5);
  // Probes and scrapes come from near, with no body, and are answered from memory.
  Duration probe_head = std::chrono::seconds(2);
  Duration probe_answer = std::chrono::seconds(1);
  std::size_t admission_workers = 64;
  // One waiting request a sidecar; each holds a thread while it waits.
  std::size_t sidecars = 4096;
  std::size_t probe_workers = 8;
  std::size_t admission_connections = 512;
  std::size_t probe_connections = 128;
};

// The answer of one webhook call. Any thread.
HttpResponse answer_admission(const HttpRequest& request, const AdmissionSettings& settings, JobReader& jobs,
                              Metrics& metrics);

// Waits for the owner thread's answer, that long at most.
using SyncWait = std::function<std::optional<SyncOutcome>(SyncReply& reply, Duration limit)>;
inline const SyncWait kWaitForOwner = [](SyncReply& reply, Duration limit) { return reply.wait(limit); };

// The answer of POST /v1/sync: hands the request to the owner thread and waits for its answer; any
// thread.
HttpResponse answer_sync(const ServedRequest& served, Mailbox<OperatorInput>& mailbox,
                         const SyncWait& wait = kWaitForOwner);

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
                                                        Mailbox<OperatorInput>& mailbox, Health health,
                                                        const OperatorServerLimits& limits = {});

  // Those that are listened on, where the given ones were 0.
  OperatorPorts ports() const;

  void replace_tls(std::shared_ptr<const TlsServerContext> admission_tls,
                   std::shared_ptr<const TlsServerContext> sidecar_tls);

  // Health first, so that no new work is sent here; then the rest. All are told before one is
  // waited for.
  void stop();

 private:
  OperatorServers() = default;

  std::unique_ptr<JobReader> jobs_;
  std::unique_ptr<HttpServer> health_;
  std::unique_ptr<HttpServer> metrics_;
  std::unique_ptr<HttpServer> sidecars_;
  std::unique_ptr<HttpServer> admission_;
};

}  // namespace rekindle::op
