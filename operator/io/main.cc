// rekindle-operator: reads its configuration, runs the manager until SIGTERM and keeps the webhook
// configuration and the certificate fresh meanwhile.
#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <functional>
#include <mutex>
#include <optional>
#include <random>
#include <thread>

#include "common/base/format.h"
#include "common/system/clock.h"
#include "common/system/log.h"
#include "common/system/signals.h"
#include "common/system/waker.h"
#include "operator/io/api_client.h"
#include "operator/io/certificate_store.h"
#include "operator/io/manager.h"
#include "operator/io/operator_config.h"
#include "operator/io/server_certificate.h"
#include "operator/io/stoppable_transport.h"
#include "operator/io/webhook_registration.h"

namespace rekindle::op {
namespace {

constexpr std::string_view kVersion = REKINDLE_VERSION;
constexpr auto kRegistrationPause = std::chrono::seconds(30);

AdmissionSettings admission_settings(const OperatorConfig& config) {
  return {.version = std::string(kVersion),
          .sidecar_image = config.sidecar_image,
          .image_pull_policy = config.sidecar_image_pull_policy,
          .operator_address = format("{}.{}.svc:9444", config.service, config.namespace_name),
          .default_claim = config.default_claim,
          .deadline_seconds = config.deadline_seconds,
          .resources = config.sidecar_resources,
          .checkpoints = config.checkpoints};
}

// Reads the signals while everything else may be waiting, and says it to whoever waits.
class SignalThread {
 public:
  // `on_signal` runs once, on its thread.
  SignalThread(const SignalWatcher& signals, std::function<void()> on_signal)
      : thread_([this, &signals, on_signal = std::move(on_signal)] { watch(signals, on_signal); }) {}
  ~SignalThread() { over_.wake(); }
  SignalThread(const SignalThread&) = delete;
  SignalThread& operator=(const SignalThread&) = delete;

  // Whether a signal came, at the latest after that time.
  bool wait(Duration limit) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, limit, [this] { return came_; });
  }

 private:
  void watch(const SignalWatcher& signals, const std::function<void()>& on_signal) {
    std::optional<int> signal;
    while (!signal && !over_.take()) {
      std::array<pollfd, 2> watched{{{.fd = signals.descriptor(), .events = POLLIN, .revents = 0},
                                     {.fd = over_.descriptor(), .events = POLLIN, .revents = 0}}};
      poll(watched.data(), watched.size(), -1);
      signal = signals.take();
    }
    if (!signal) return;
    log_info("stopping", {{"signal", *signal}});
    on_signal();
    const std::lock_guard lock(mutex_);
    came_ = true;
    changed_.notify_all();
  }

  Waker over_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool came_ = false;  // guarded by mutex_
  std::jthread thread_;
};

Status run(const OperatorConfig& config, const std::string& kubeconfig, const std::string& context,
           const OperatorPorts& ports, const SignalWatcher& signals) {
  Result<std::unique_ptr<Credentials>> credentials = Credentials::find(kubeconfig, context);
  if (!credentials) return std::unexpected(credentials.error());
  log_info("starting",
           {{"version", kVersion}, {"namespace", config.namespace_name}, {"credentials", (*credentials)->origin()}});
  ApiClient api(std::move(*credentials), {.user_agent = "rekindle-operator/" + std::string(kVersion)});

  // What this thread asks for is asked again by the next operator: it ends at once.
  StoppableTransport client(api);
  SignalThread signal_thread(signals, [&client] { client.stop(); });

  Result<CertificateStore> certificates = CertificateStore::open(client, config.namespace_name, wall_seconds());
  if (!certificates && signal_thread.wait(Duration::zero())) return {};
  if (!certificates) return std::unexpected(certificates.error());
  ServerCertificate server_certificate(*certificates, config.service, config.namespace_name);
  Result<std::optional<ServerTls>> tls = server_certificate.renew(wall_seconds());
  if (!tls) return std::unexpected(tls.error());

  char host[129] = {};
  gethostname(host, sizeof host - 1);

  Result<std::unique_ptr<Manager>> manager =
      Manager::start(api, *certificates, **tls,
                     {.loop = {.limits = {.breakpoint_deadline = std::chrono::seconds(config.deadline_seconds)},
                               .seed = std::random_device{}()},
                      .admission = admission_settings(config),
                      .ports = ports,
                      .instance = host});
  if (!manager) return std::unexpected(manager.error());

  // Until SIGTERM: keep the webhook configuration and the certificate fresh.
  while (true) {
    const Result<bool> written = register_webhooks(client, config.webhook_configuration, certificates->authority_pem());
    if (!written && signal_thread.wait(Duration::zero())) break;
    if (!written) {
      log_warning("the webhook configuration could not be written; trying again", {{"error", written.error().message}});
    } else {
      if (*written) log_info("wrote caBundle", {{"configuration", config.webhook_configuration}});
      (*manager)->webhooks_registered();
    }
    if (const Result<std::optional<ServerTls>> fresh = server_certificate.renew(wall_seconds()); !fresh) {
      log_error("the servers' certificate could not be renewed", {{"error", fresh.error().message}});
    } else if (*fresh) {
      (*manager)->replace_tls(**fresh);
    }
    const ApiClient::Counts counts = api.counts();
    (*manager)->metrics().requests(counts.requests, counts.errors, counts.retries);
    if (signal_thread.wait(written ? Duration(kRegistrationPause) : std::chrono::seconds(1))) break;
  }

  (*manager)->stop();
  log_info("stopped");
  return {};
}

}  // namespace
}  // namespace rekindle::op

int main(int argc, char** argv) {
  using namespace rekindle;  // NOLINT(google-build-using-namespace): main alone
  using namespace rekindle::op;
  CLI::App app{"rekindle-operator: makes Volcano training jobs resumable"};
  std::string config_path = "/etc/rekindle/config.json";
  std::string kubeconfig;
  std::string context;
  OperatorPorts ports;
  app.add_option("--config", config_path, "configuration file, as the chart writes it")->capture_default_str();
  app.add_option("--kubeconfig", kubeconfig, "use this kubeconfig instead of the pod's service account");
  app.add_option("--context", context, "context in the kubeconfig");
  app.add_option("--admission-port", ports.admission)->capture_default_str();
  app.add_option("--sidecar-port", ports.sidecars)->capture_default_str();
  app.add_option("--metrics-port", ports.metrics)->capture_default_str();
  app.add_option("--health-port", ports.health)->capture_default_str();
  app.set_version_flag("--version", std::string(kVersion));
  CLI11_PARSE(app, argc, argv);

  const Result<SignalWatcher> signals = SignalWatcher::block({SIGTERM, SIGINT});
  Status status = signals ? Status{} : std::unexpected(signals.error());
  Result<OperatorConfig> config = read_operator_config(config_path);
  if (status && !config) status = std::unexpected(config.error());
  if (status) {
    const Result<LogLevel> level = parse_log_level(config->log_level);
    if (level) {
      set_log_level(*level);
      status = run(*config, kubeconfig, context, ports, *signals);
    } else {
      status = std::unexpected(level.error());
    }
  }
  if (!status) {
    log_error("the operator cannot run", {{"error", status.error().message}});
    return 1;
  }
  return 0;
}
