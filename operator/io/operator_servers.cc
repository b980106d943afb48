#include "operator/io/operator_servers.h"

#include <chrono>
#include <utility>

#include "common/system/clock.h"
#include "common/system/log.h"
#include "operator/admission/job_admission.h"
#include "operator/admission/pod_admission.h"

namespace rekindle::op {
namespace {

// Above the longest wait that a sidecar may request (30 s).
constexpr Duration kOwnerPatience = std::chrono::seconds(40);
// Between two checks whether the client has hung up.
constexpr Duration kPollInterval = std::chrono::milliseconds(500);

HttpResponse text_answer(int status, std::string text) {
  return {.status = status, .headers = {{"Content-Type", "text/plain; charset=utf-8"}}, .body = std::move(text)};
}

HttpResponse json_answer(int status, std::string text) {
  HttpResponse response{.status = status, .headers = {{"Content-Type", "application/json"}}, .body = std::move(text)};
  if (status == 429 || status == 503) response.headers.add("Retry-After", "1");
  return response;
}

}  // namespace

HttpResponse answer_admission(const HttpRequest& request, const AdmissionSettings& settings, JobReader& jobs,
                              Metrics& metrics) {
  if (request.method != "POST" || (request.path != "/admission/job" && request.path != "/admission/pod")) {
    return text_answer(404, "there is /admission/job and /admission/pod here\n");
  }
  const Result<ReviewRequest> review = review_request_from_text(request.body);
  if (!review) return text_answer(400, review.error().message + "\n");
  AdmissionAnswer answer;
  const bool is_job = request.path == "/admission/job";
  if (is_job) {
    answer = admit_job(review->object, settings);
  } else if (const std::optional<PodOwner> owner = protected_owner(review->object, review->namespace_name)) {
    const std::shared_ptr<const Job> job = jobs.find(*owner);
    answer = admit_pod(review->object, *owner, job.get(), settings);
  }
  metrics.admitted(is_job ? "jobs" : "pods", answer.allowed);
  if (!answer.allowed) log_info("refused", {{"namespace", review->namespace_name}, {"why", answer.message}});
  return json_answer(200, review_answer_text(review->uid, answer));
}

HttpResponse answer_sync(const ServedRequest& served, Mailbox<OperatorInput>& mailbox, const SyncWait& wait) {
  if (served.request.method != "POST" || served.request.path != "/v1/sync") {
    return text_answer(404, "there is POST /v1/sync here\n");
  }
  const std::optional<SidecarIdentity> identity = parse_sidecar_identity(served.peer_uri.value_or(""));
  if (!identity) return text_answer(403, "the certificate names no job of ours\n");
  const auto reply = std::make_shared<SyncReply>();
  if (!mailbox.push(SyncArrived{*identity, served.request.body, reply}, served.stopping)) return json_answer(503, "{}");
  // The owner answers when there is news or the wait is over; a hung-up client or a stop is looked
  // for in between.
  for (Duration waited{}; waited < kOwnerPatience && !served.stopping.stop_requested(); waited += kPollInterval) {
    if (std::optional<SyncOutcome> outcome = wait(*reply, kPollInterval)) {
      return json_answer(outcome->status, std::move(outcome->body));
    }
    if (served.peer_gone && served.peer_gone()) break;
  }
  return json_answer(503, "{}");
}

Result<std::unique_ptr<OperatorServers>> OperatorServers::start(const OperatorPorts& ports,
                                                                std::shared_ptr<const TlsServerContext> admission_tls,
                                                                std::shared_ptr<const TlsServerContext> sidecar_tls,
                                                                AdmissionSettings settings, JobCache& jobs,
                                                                KubeTransport& transport, Metrics& metrics,
                                                                Mailbox<OperatorInput>& mailbox, Health health,
                                                                const OperatorServerLimits& limits) {
  std::unique_ptr<OperatorServers> servers(new OperatorServers);
  servers->jobs_ = std::make_unique<JobReader>(jobs, transport);
  const auto trouble = [](std::string_view server) {
    return
        [server](const Error& error) { log_debug("connection refused", {{"server", server}, {"why", error.message}}); };
  };

  Result<std::unique_ptr<HttpServer>> started = HttpServer::start(
      {.address = limits.address,
       .port = ports.admission,
       .tls = std::move(admission_tls),
       .workers = limits.admission_workers,
       .connections_max = limits.admission_connections,
       .head_limit = limits.head},
      [settings = std::move(settings), &reader = *servers->jobs_, &metrics](const ServedRequest& served) {
        return answer_admission(served.request, settings, reader, metrics);
      },
      trouble("admission"));
  if (!started) return std::unexpected(started.error());
  servers->admission_ = std::move(*started);

  started = HttpServer::start(
      {.address = limits.address,
       .port = ports.sidecars,
       .tls = std::move(sidecar_tls),
       .workers = limits.sidecars,
       .connections_max = 2 * limits.sidecars,
       .body_bytes_max = 1u << 20,
       .head_limit = limits.head},
      [&mailbox](const ServedRequest& served) { return answer_sync(served, mailbox); }, trouble("sidecars"));
  if (!started) return std::unexpected(started.error());
  servers->sidecars_ = std::move(*started);

  const auto for_probes = [&](std::uint16_t port) {
    return HttpServerSettings{.address = limits.address,
                              .port = port,
                              .workers = limits.probe_workers,
                              .connections_max = limits.probe_connections,
                              .body_bytes_max = 0,
                              .head_limit = limits.probe_head,
                              .body_limit = limits.probe_answer,
                              .write_limit = limits.probe_answer};
  };
  started = HttpServer::start(
      for_probes(ports.metrics),
      [&metrics](const ServedRequest& served) {
        if (served.request.path != "/metrics") return text_answer(404, "there is /metrics here\n");
        return text_answer(200, metrics.text());
      },
      trouble("metrics"));
  if (!started) return std::unexpected(started.error());
  servers->metrics_ = std::move(*started);

  started = HttpServer::start(
      for_probes(ports.health),
      [health = std::move(health)](const ServedRequest& served) {
        if (served.request.path == "/healthz") {
          return health.alive() ? text_answer(200, "ok\n") : text_answer(500, "the owner thread hangs\n");
        }
        if (served.request.path == "/readyz") {
          return health.ready() ? text_answer(200, "ok\n") : text_answer(503, "not ready yet\n");
        }
        return text_answer(404, "there is /healthz and /readyz here\n");
      },
      trouble("health"));
  if (!started) return std::unexpected(started.error());
  servers->health_ = std::move(*started);
  return servers;
}

OperatorPorts OperatorServers::ports() const {
  return {.admission = admission_->port(),
          .sidecars = sidecars_->port(),
          .metrics = metrics_->port(),
          .health = health_->port()};
}

void OperatorServers::replace_tls(std::shared_ptr<const TlsServerContext> admission_tls,
                                  std::shared_ptr<const TlsServerContext> sidecar_tls) {
  admission_->replace_tls(std::move(admission_tls));
  sidecars_->replace_tls(std::move(sidecar_tls));
}

void OperatorServers::stop() {
  for (const auto& server : {&health_, &admission_, &sidecars_, &metrics_}) {
    if (*server) (*server)->request_stop();
  }
  for (const auto& server : {&health_, &admission_, &sidecars_, &metrics_}) {
    if (*server) (*server)->stop();
  }
}

}  // namespace rekindle::op
