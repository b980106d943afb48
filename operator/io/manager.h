// Everything that works inside the operator's process: the owner thread, the workers that perform
// its actions, the servers and the watches. Started in that order and stopped so that nobody is
// gone while somebody else may still ask for it.
//
//   Result<std::unique_ptr<Manager>> manager = Manager::start(client, certificates, tls, settings);
//   ... (*manager)->webhooks_registered() ... (*manager)->replace_tls(fresh) ...
//   (*manager)->stop();
//
// One thread starts, tells and stops it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/base/mailbox.h"
#include "operator/io/action_runner.h"
#include "operator/io/job_cache.h"
#include "operator/io/metrics.h"
#include "operator/io/operator_input.h"
#include "operator/io/operator_loop.h"
#include "operator/io/operator_servers.h"
#include "operator/io/server_certificate.h"
#include "operator/io/stoppable_transport.h"
#include "operator/io/transport.h"
#include "operator/io/watch_thread.h"
#include "operator/io/worker_pool.h"

namespace rekindle::op {

class Manager {
 public:
  struct Settings {
    OperatorLoop::Settings loop{};
    AdmissionSettings admission{};
    OperatorPorts ports{};
    OperatorServerLimits server_limits{};
    // Calls of the API server that have begun may end in that time once we stop; then they are
    // ended.
    Duration last_calls = std::chrono::seconds(2);
    // Names this process in events (at most 128 bytes).
    std::string instance;
  };

  // `transport` and `certificates` must outlive the manager. An error when a port cannot be
  // listened on: nothing runs then.
  static Result<std::unique_ptr<Manager>> start(KubeTransport& transport, const CertificateStore& certificates,
                                                const ServerTls& tls, Settings settings);
  ~Manager();  // stop()
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;

  // The API server sends admission here: the operator is ready once its stores are filled, and jobs
  // that wait for the webhook go on. Only the first call counts.
  void webhooks_registered();

  void replace_tls(const ServerTls& tls);

  Metrics& metrics() { return metrics_; }
  OperatorPorts ports() const { return servers_->ports(); }

  // Actions that have begun are finished where the API server answers soon, further ones are left
  // to the next operator. Takes a few seconds at most. A second call does nothing.
  void stop();

 private:
  Manager(KubeTransport& transport, const CertificateStore& certificates, Settings settings);

  template <typename T, typename Decode>
  std::unique_ptr<WatchThread> watch(Resource resource, Selection selection, Decode decode, std::uint64_t seed);

  KubeTransport& transport_;  // of the watches, which have their own end
  StoppableTransport calls_;
  const Duration last_calls_;
  Mailbox<OperatorInput> mailbox_;
  JobCache jobs_;
  Metrics metrics_;
  ActionRunner runner_;
  WorkerPool workers_;
  OperatorLoop loop_;
  std::thread owner_;
  std::atomic<bool> registered_{false};
  std::unique_ptr<OperatorServers> servers_;
  std::vector<std::unique_ptr<WatchThread>> watches_;
};

}  // namespace rekindle::op
