#include "operator/io/manager.h"

#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <utility>

#include "common/system/log.h"
#include "operator/kube/requests.h"
#include "operator/model/names.h"

namespace rekindle::op {
namespace {

constexpr std::size_t kMailboxItems = 4096;
constexpr std::size_t kWorkers = 4;

}  // namespace

Manager::Manager(KubeTransport& transport, const CertificateStore& certificates, Settings settings)
    : transport_(transport),
      calls_(transport),
      last_calls_(settings.last_calls),
      mailbox_(kMailboxItems),
      runner_(calls_, certificates, std::move(settings.instance)),
      workers_(kWorkers),
      loop_(std::move(settings.loop), mailbox_, jobs_, metrics_,
            [this](ObjectKey job, std::string job_uid, std::vector<Action> actions) {
              workers_.run([this, job = std::move(job), job_uid = std::move(job_uid), actions = std::move(actions)] {
                mailbox_.push(runner_.run(job, job_uid, actions));
              });
            }),
      owner_([this] { loop_.run(); }) {}

Manager::~Manager() { stop(); }

Result<std::unique_ptr<Manager>> Manager::start(KubeTransport& transport, const CertificateStore& certificates,
                                                const ServerTls& tls, Settings settings) {
  const OperatorPorts ports = settings.ports;
  const OperatorServerLimits limits = settings.server_limits;
  AdmissionSettings admission = std::move(settings.admission);
  const std::uint64_t seed = settings.loop.seed;
  std::unique_ptr<Manager> manager(new Manager(transport, certificates, std::move(settings)));
  Manager& self = *manager;

  Result<std::unique_ptr<OperatorServers>> servers = OperatorServers::start(
      ports, tls.admission, tls.sidecars, std::move(admission), self.jobs_, self.calls_, self.metrics_, self.mailbox_,
      {.alive = [&self] { return self.loop_.alive(); },
       .ready = [&self] { return self.loop_.ready() && self.registered_; }},
      limits);
  if (!servers) return std::unexpected(servers.error());
  self.servers_ = std::move(*servers);

  self.watches_.push_back(
      self.watch<Job>(kJobs, {.label_selector = std::string(names::kSchedulingLabel)}, &job_from_json, seed + 1));
  self.watches_.push_back(self.watch<Pod>(kPods, {.label_selector = std::string(names::kProtectedLabel) + "=true"},
                                          &pod_from_json, seed + 2));
  self.watches_.push_back(self.watch<Breakpoint>(kBreakpoints, {}, &breakpoint_from_json, seed + 3));
  return manager;
}

template <typename T, typename Decode>
std::unique_ptr<WatchThread> Manager::watch(Resource resource, Selection selection, Decode decode, std::uint64_t seed) {
  const auto on_unreadable = [kind = std::string(resource.kind)](const ObjectKey& key, const Error& error) {
    log_warning("an object cannot be read; its last good state stays",
                {{"kind", kind}, {"object", to_text(key)}, {"error", error.message}});
  };
  const auto on_trouble = [this](const WatchThread::Job& job, const Error& error, const std::string& next) {
    metrics_.watch_trouble(job.resource.kind);
    log_warning("watch", {{"kind", job.resource.kind}, {"error", error.message}, {"next", next}});
  };
  return std::make_unique<WatchThread>(transport_,
                                       WatchThread::Job{.resource = resource, .selection = std::move(selection)},
                                       deliver_decoded<T>(mailbox_, decode, on_unreadable), on_trouble, seed);
}

void Manager::webhooks_registered() {
  if (!registered_.exchange(true)) mailbox_.push(WebhooksRegistered{});
}

void Manager::replace_tls(const ServerTls& tls) { servers_->replace_tls(tls.admission, tls.sidecars); }

void Manager::stop() {
  if (!owner_.joinable()) return;
  // A worker or a webhook may wait for an API server that does not answer.
  const std::jthread last_calls([this](std::stop_token everybody_ended) {
    std::mutex mutex;
    std::condition_variable_any never;
    std::unique_lock lock(mutex);
    never.wait_for(lock, std::move(everybody_ended), last_calls_, [] { return false; });
    calls_.stop();
  });
  watches_.clear();
  // Workers hear of nobody but the owner, which may want more of them until its last round: it ends
  // first. What they still report is dropped with the closed mailbox.
  mailbox_.push(StopRequested{});
  owner_.join();
  if (servers_) servers_->stop();
  mailbox_.close();
  workers_.stop();
}

}  // namespace rekindle::op
