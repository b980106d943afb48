#include "worker-sidecar/sidecar/cluster/pod_sidecar.h"

#include <algorithm>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <map>
#include <mutex>
#include <optional>

#include "common/base/format.h"
#include "common/net/http_server.h"
#include "common/net/tls.h"
#include "common/system/clock.h"
#include "common/system/log.h"
#include "worker-sidecar/sidecar/cluster/bin_folder.h"
#include "worker-sidecar/sidecar/cluster/operator_client.h"
#include "worker-sidecar/sidecar/cluster/peer_mesh.h"
#include "worker-sidecar/sidecar/cluster/reports.h"
#include "worker-sidecar/sidecar/host.h"
#include "worker-sidecar/storage/files.h"

namespace rekindle::sidecar {
namespace {

constexpr std::size_t kRecordsMax = 8;
constexpr std::uint64_t kPemBytesMax = 1u << 20;
// The kubelet's SIGKILL comes at the end of the grace; the answers to hooks and the last report go
// out before.
constexpr std::chrono::seconds kGraceMargin{3};
constexpr std::chrono::seconds kReportInterval{1};
// For the last report to reach the operator.
constexpr std::chrono::milliseconds kFarewell{300};

LogLevel to_log_level(Severity severity) {
  switch (severity) {
    case Severity::debug: return LogLevel::debug;
    case Severity::info: return LogLevel::info;
    case Severity::warning: return LogLevel::warning;
    case Severity::error: return LogLevel::error;
  }
  return LogLevel::info;
}

struct Certificates {
  std::shared_ptr<const TlsClientContext> client;
  std::shared_ptr<const TlsServerContext> server;
};

// Files of a mounted Secret are symbolic links, which the kubelet turns all at once; storage's own
// reader follows none.
Result<std::string> read_mounted(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail_errno(errno, format("opening {} failed", path));
  std::string text(kPemBytesMax, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

Result<Certificates> load_certificates(const std::string& folder) {
  std::map<std::string, std::string> texts;
  for (const char* name : {"tls.crt", "tls.key", "ca.crt"}) {
    Result<std::string> text = read_mounted(join_path(folder, name));
    if (!text) return std::unexpected(with_context(text.error(), "the job's certificate"));
    texts[name] = std::move(*text);
  }
  const TlsKeyPair own{.certificate_pem = texts["tls.crt"], .private_key_pem = texts["tls.key"]};
  auto client = TlsClientContext::make({.authorities_pem = texts["ca.crt"], .own = own});
  if (!client) return std::unexpected(client.error());
  auto server = TlsServerContext::make({.own = own, .client_authorities_pem = texts["ca.crt"]});
  if (!server) return std::unexpected(server.error());
  return Certificates{*client, *server};
}

class PodSidecar final : public HostObserver {
 public:
  explicit PodSidecar(const PodSidecarOptions& options)
      : options_(options), signals_(loop_, SIGTERM, SIGINT), report_timer_(loop_), end_timer_(loop_) {}

  Status start();
  void run() { loop_.run(); }
  void stop_serving();

 private:
  void log(Severity severity, std::string_view message, const Facts& fields) override {
    log_line(to_log_level(severity), message, std::span(fields));
  }
  void breakpoint(const BreakpointRecord& record, std::uint32_t attempt, Instant at) override;
  void attempt_begun(const AttemptBegun& begun, Instant at) override;
  void first_step(std::uint32_t attempt, std::uint64_t step, Instant at) override;
  void problem(const std::string& code, const std::string& message) override;
  void problem_over(const std::string& code) override;
  void exit_allowed() override;

  void start_operator();
  Status start_mesh(const Certificates& certificates);
  void start_metrics();
  void on_answer(const SyncAnswer& answer);
  void report(bool at_once);
  void keep_reporting();
  void on_signal(int signal);
  std::string metrics() const;

  const PodSidecarOptions options_;
  asio::io_context loop_{1};
  asio::signal_set signals_;
  asio::steady_timer report_timer_;
  asio::steady_timer end_timer_;
  bool terminating_ = false;
  std::vector<PeerAddress> known_peers_;  // as the operator named them last
  Certificates certificates_;

  std::deque<TimedRecord> records_;
  std::vector<std::string> pod_names_;  // by ordinal, as the operator told them last
  std::optional<ReportedRestore> restored_;
  std::map<std::string, std::string> problems_;

  mutable std::mutex mutex_;
  HostStatus shown_;             // guarded by mutex_, for the metrics
  std::size_t shown_peers_ = 0;  // guarded by mutex_

  std::unique_ptr<PeerMesh> mesh_;
  std::unique_ptr<Host> host_;
  std::unique_ptr<OperatorClient> operator_;
  std::unique_ptr<HttpServer> metrics_server_;
};

Status PodSidecar::start() {
  std::signal(SIGPIPE, SIG_IGN);
  signals_.async_wait([this](std::error_code error, int signal) {
    if (!error) on_signal(signal);
  });
  if (Status filled = fill_bin_folder(installed_programs(), options_.cluster.bin_folder); !filled) return filled;
  Result<Certificates> certificates = load_certificates(options_.cluster.tls_folder);
  if (!certificates) return std::unexpected(certificates.error());
  certificates_ = *certificates;
  if (Status meshed = start_mesh(*certificates); !meshed) return meshed;
  Result<std::unique_ptr<Host>> host =
      Host::start(loop_, {.settings = options_.host,
                          .coordination = {.ordinal = options_.host.ordinal,
                                           .pods = options_.host.pods,
                                           .ranks_per_pod = options_.host.ranks_per_pod,
                                           .after_fault = AfterBreakpoint::park,
                                           .wait_for_go = true,
                                           .limits = {.deadline = options_.host.deadline},
                                           .snapshots = options_.host.checkpoints.snapshots},
                          .create_checkpoint_root = false,
                          .observer = this,
                          .peers = mesh_.get()});
  if (!host) return std::unexpected(host.error());
  host_ = std::move(*host);
  start_operator();
  start_metrics();
  keep_reporting();
  log_info("the sidecar serves", {{"job", format("{}/{}", options_.host.job_namespace, options_.host.job)},
                                  {"ordinal", options_.host.ordinal},
                                  {"pods", options_.host.pods},
                                  {"ranks_per_pod", options_.host.ranks_per_pod},
                                  {"peer_port", mesh_->port()},
                                  {"metrics_port", metrics_server_ ? metrics_server_->port() : 0}});
  return {};
}

Status PodSidecar::start_mesh(const Certificates& certificates) {
  Result<std::unique_ptr<PeerMesh>> mesh = PeerMesh::start(
      loop_,
      {.identity = format("rekindle://{}/{}", options_.host.job_namespace, options_.host.job_uid),
       .job_uid = options_.host.job_uid,
       .pod_uid = options_.host.pod_uid,
       .ordinal = options_.host.ordinal,
       .pods = options_.host.pods,
       .version = options_.version,
       .port = options_.cluster.peer_port,
       .client = certificates.client,
       .server = certificates.server},
      {
          .connected = [this](std::uint32_t ordinal) { host_->handle(PeerConnected{ordinal}); },
          .lost =
              [this](std::uint32_t ordinal) {
                if (host_) host_->handle(PeerLost{ordinal});
              },
          .message = [this](
                         std::uint32_t from, std::uint32_t attempt,
                         PeerMessage message) { host_->handle(PeerMessageArrived{from, attempt, std::move(message)}); },
          .log =
              [this](Severity severity, const std::string& what, std::uint32_t ordinal, const std::string& why) {
                log(severity, what, {{"peer", std::to_string(ordinal)}, {"why", why}});
              },
      });
  if (!mesh) return std::unexpected(mesh.error());
  mesh_ = std::move(*mesh);
  return {};
}

void PodSidecar::start_operator() {
  const std::string& address = options_.cluster.operator_address;
  const std::size_t colon = address.rfind(':');
  OperatorClient::Settings settings{
      .host = address.substr(0, colon),
      .port = static_cast<std::uint16_t>(std::strtoul(address.c_str() + colon + 1, nullptr, 10)),
      .tls = certificates_.client,
      .job_uid = options_.host.job_uid};
  const SyncRequest first{.sender = {.pod_name = options_.host.pod_name,
                                     .pod_uid = options_.host.pod_uid,
                                     .address = options_.cluster.pod_address,
                                     .port = mesh_->port(),
                                     .ordinal = options_.host.ordinal},
                          .report = SyncReport{}};
  operator_ = std::make_unique<OperatorClient>(
      settings, first,
      OperatorClient::Handlers{
          .answered = [this](const SyncAnswer& answer) { asio::post(loop_, [this, answer] { on_answer(answer); }); },
          .problem =
              [this](const std::string& problem) {
                asio::post(loop_, [this, problem] {
                  if (problem.empty()) log(Severity::info, "the operator answers", {});
                  if (!problem.empty())
                    log(Severity::warning, "the operator is away; what is known goes on to hold",
                        {{"message", problem}});
                });
              },
      });
}

void PodSidecar::on_answer(const SyncAnswer& answer) {
  if (terminating_ && !host_) return;
  PeerTableSeen table{.pods = {}, .start_allowed = answer.start_allowed};
  std::vector<PeerAddress> addresses;
  const auto take = [&](const SyncPod& pod) {
    if (std::ranges::find(addresses, pod.ordinal, &PeerAddress::ordinal) != addresses.end()) return;
    PeerAddress place{
        .ordinal = static_cast<std::uint32_t>(pod.ordinal), .uid = pod.uid, .address = pod.address, .port = pod.port};
    // An operator that has just started names pods before they have called it; where they are has
    // not changed.
    const auto known = std::ranges::find(known_peers_, pod.uid, &PeerAddress::uid);
    if (place.address.empty() && known != known_peers_.end()) place = *known;
    if (!place.address.empty()) addresses.push_back(std::move(place));
  };
  pod_names_.clear();
  for (const SyncPod& pod : answer.pods) {
    if (pod_names_.size() <= pod.ordinal) pod_names_.resize(pod.ordinal + 1);
    pod_names_[pod.ordinal] = pod.name;
    table.pods.push_back({.ordinal = static_cast<std::uint32_t>(pod.ordinal), .stale = pod.stale});
    if (!pod.stale) take(pod);
  }
  // A pod that ends still serves its part of a breakpoint; its successor takes the place when it
  // has called.
  for (const SyncPod& pod : answer.pods) {
    if (pod.stale) take(pod);
  }
  known_peers_ = addresses;
  mesh_->set_peers(addresses);
  host_->handle(table);
  for (const SyncOrder& order : answer.orders)
    host_->handle(OrderArrived{.breakpoint = order.breakpoint,
                               .detail = order.detail,
                               .seconds_left = static_cast<double>(order.seconds_left),
                               .after = order.after});
}

void PodSidecar::start_metrics() {
  const auto handler = [this](const ServedRequest& served) -> HttpResponse {
    if (served.request.path == "/healthz")
      return {.status = 200, .headers = {{"Content-Type", "text/plain"}}, .body = "ok\n"};
    if (served.request.path == "/metrics") {
      return {.status = 200, .headers = {{"Content-Type", "text/plain; version=0.0.4"}}, .body = metrics()};
    }
    return {.status = 404, .headers = {{"Content-Type", "text/plain"}}, .body = "there are /healthz and /metrics\n"};
  };
  for (const std::uint16_t port : {options_.cluster.metrics_port, std::uint16_t{0}}) {
    Result<std::unique_ptr<HttpServer>> server =
        HttpServer::start({.port = port, .workers = 2, .connections_max = 32}, handler);
    if (server) {
      metrics_server_ = std::move(*server);
      return;
    }
    log(Severity::warning, "the port for metrics and health is taken; another one is used",
        {{"port", std::to_string(port)}, {"message", server.error().message}});
  }
}

std::string PodSidecar::metrics() const {
  const std::lock_guard lock(mutex_);
  std::string text;
  const auto gauge = [&](const char* name, const char* help, std::uint64_t value, const char* type = "gauge") {
    text += format("# HELP {} {}\n# TYPE {} {}\n{} {}\n", name, help, name, type, name, value);
  };
  gauge("rekindle_attempt", "Attempt that the ranks of this pod live in, 0 before training.", shown_.attempt);
  gauge("rekindle_committed_step", "Newest committed step of the ranks of this pod.", shown_.step);
  gauge("rekindle_live_ranks", "Ranks of this pod whose processes live.", shown_.local_live_ranks);
  gauge("rekindle_job_live_ranks", "Ranks of the job that are known to live.", shown_.live_ranks);
  gauge("rekindle_coordinating", "1 where this sidecar coordinates the job.", shown_.coordinating ? 1 : 0);
  gauge("rekindle_peers_connected", "Sidecars of other pods with a connection.", shown_peers_);
  gauge("rekindle_storage_ready", "1 when the checkpoint folder passed its probe.", shown_.storage_ready ? 1 : 0);
  gauge("rekindle_breakpoints_durable_total", "Breakpoints that became durable.", shown_.breakpoints_durable,
        "counter");
  gauge("rekindle_breakpoints_failed_total", "Breakpoints that failed.", shown_.breakpoints_failed, "counter");
  return text;
}

void PodSidecar::report(bool at_once) {
  const HostStatus status = host_->status();
  {
    const std::lock_guard lock(mutex_);
    shown_ = status;
    shown_peers_ = mesh_->connections();
  }
  if (!operator_) return;
  SyncReport current{.attempt = status.attempt, .step = status.step, .phase = status.phase, .restored = restored_};
  if (status.coordinating) current.ranks = {.expected = options_.host.world_size(), .live = status.live_ranks};
  for (const TimedRecord& timed : records_) current.breakpoints.push_back(report_of(timed, pod_names_));
  for (const auto& [code, message] : problems_) current.problems.push_back({code, message});
  operator_->set_report(std::move(current), status.coordinating, at_once);
}

void PodSidecar::keep_reporting() {
  report(false);
  report_timer_.expires_after(kReportInterval);
  report_timer_.async_wait([this](std::error_code error) {
    if (!error) keep_reporting();
  });
}

void PodSidecar::breakpoint(const BreakpointRecord& record, std::uint32_t, Instant) {
  const auto known =
      std::ranges::find_if(records_, [&](const TimedRecord& kept) { return kept.record.term == record.term; });
  if (known != records_.end()) {
    known->record = record;
  } else {
    records_.push_back({record, to_micro_text(wall_now())});
    if (records_.size() > kRecordsMax) records_.pop_front();
  }
  // After the machines are done with this event, so that the report shows all of it.
  asio::post(loop_, [this] {
    if (host_) report(true);
  });
}

void PodSidecar::attempt_begun(const AttemptBegun& begun, Instant) {
  // A sidecar that rejoins does not know what its ranks began from, and reports nothing about it;
  // the others do.
  if (!begun.rejoined) {
    records_.clear();
    restored_ = report_of(begun);
  }
  asio::post(loop_, [this] {
    if (host_) report(true);
  });
}

void PodSidecar::first_step(std::uint32_t attempt, std::uint64_t step, Instant) {
  if (restored_ && restored_->attempt == attempt) restored_->first_step = step;
  asio::post(loop_, [this] {
    if (host_) report(true);
  });
}

void PodSidecar::problem(const std::string& code, const std::string& message) {
  problems_[code] = message;
  asio::post(loop_, [this] {
    if (host_) report(true);
  });
}

void PodSidecar::problem_over(const std::string& code) {
  problems_.erase(code);
  asio::post(loop_, [this] {
    if (host_) report(true);
  });
}

void PodSidecar::on_signal(int signal) {
  if (terminating_ || !host_) return;
  terminating_ = true;
  const Duration left = std::max<Duration>(options_.host.grace - kGraceMargin, std::chrono::seconds(1));
  log(Severity::info, "told to end; a breakpoint that is under way or due comes first",
      {{"signal", std::to_string(signal)}, {"seconds_left", std::to_string(static_cast<long>(to_seconds(left)))}});
  end_timer_.expires_after(std::chrono::duration_cast<asio::steady_timer::duration>(left));
  end_timer_.async_wait([this](std::error_code error) {
    if (!error) loop_.stop();
  });
  host_->handle(Terminating{to_seconds(left)});
}

void PodSidecar::exit_allowed() {
  log(Severity::info, "nothing is waited for any more", {});
  asio::post(loop_, [this] { report(true); });
  end_timer_.expires_after(kFarewell);
  end_timer_.async_wait([this](std::error_code error) {
    if (!error) loop_.stop();
  });
}

void PodSidecar::stop_serving() {
  // Threads first, since what they hand over goes to the rest.
  metrics_server_.reset();
  operator_.reset();
  report_timer_.cancel();
  host_.reset();
  mesh_.reset();
}

}  // namespace

int run_pod_sidecar(const PodSidecarOptions& options) {
  PodSidecar sidecar(options);
  if (Status started = sidecar.start(); !started) {
    log_error("the sidecar cannot start", {{"message", started.error().message}});
    sidecar.stop_serving();
    return 1;
  }
  sidecar.run();
  sidecar.stop_serving();
  return 0;
}

}  // namespace rekindle::sidecar
