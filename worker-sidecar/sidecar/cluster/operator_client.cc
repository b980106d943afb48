#include "worker-sidecar/sidecar/cluster/operator_client.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>

#include "common/base/format.h"
#include "common/net/http_client.h"

namespace rekindle::sidecar {
namespace {

constexpr Duration kLongestPause = std::chrono::seconds(5);
constexpr std::chrono::seconds kAnswerMargin{10};

}  // namespace

struct OperatorClient::Parts {
  Parts(Settings settings_, SyncRequest first, Handlers handlers_)
      : settings(std::move(settings_)),
        handlers(std::move(handlers_)),
        client({.host = settings.host,
                .port = settings.port,
                .tls = settings.tls,
                .identity = TlsIdentity::of_host(settings.host)}),
        request(std::move(first)) {}

  void run(const std::stop_token& ending) {
    Duration pause = settings.first_pause;
    while (!ending.stop_requested()) {
      std::string body;
      std::stop_token interrupted;
      Duration patience{};
      {
        const std::lock_guard lock(mutex);
        interrupt = std::stop_source();
        interrupted = interrupt.get_token();
        urgent = false;
        body = encode_sync_request(request);
        patience = request.wait + kAnswerMargin;
        if (ending.stop_requested()) return;
      }
      const Result<HttpResponse> response = client.send(
          {.method = "POST", .path = "/v1/sync", .headers = {{"Content-Type", "application/json"}}, .body = body},
          {.connect = std::chrono::seconds(5),
           .silence = patience,
           .total = patience + std::chrono::seconds(5),
           .body_bytes_max = 8u << 20},
          interrupted);
      if (!response && is_stopped(response.error())) continue;
      const Status taken = response ? take(*response) : Status(std::unexpected(response.error()));
      report_problem(taken ? ""
                           : format("the operator at {}:{} does not answer as it should: {}", settings.host,
                                    settings.port, taken.error().message));
      if (taken) {
        pause = settings.first_pause;
        continue;
      }
      std::unique_lock lock(mutex);
      changed.wait_for(lock, pause, [&] { return ending.stop_requested() || urgent; });
      pause = std::max(pause, std::min(pause * 2, kLongestPause));
    }
  }

  Status take(const HttpResponse& response) {
    switch (response.status) {
      case 200: break;
      case 403:
        return fail(
            ErrorCode::refused,
            "it says that this pod's certificate is not of this job; the Secret of the job may be of an earlier one");
      case 404:
        return fail(ErrorCode::not_found,
                    "it does not know the job, which may have been deleted; it is asked again, and training goes on");
      case 429: return fail(ErrorCode::unavailable, "it asks to come back later", Retry::yes);
      default: return fail(ErrorCode::unavailable, format("it answered {}", response.status), Retry::yes);
    }
    Result<SyncAnswer> answer = decode_sync_answer(response.body);
    if (!answer) return std::unexpected(answer.error());
    if (answer->job_uid != settings.job_uid)
      return fail(ErrorCode::refused, format("it answered for job {}", answer->job_uid));
    {
      const std::lock_guard lock(mutex);
      request.seen = answer->version;
    }
    handlers.answered(*answer);
    return {};
  }

  void report_problem(const std::string& problem) {
    if (problem == reported_problem) return;
    reported_problem = problem;
    handlers.problem(problem);
  }

  const Settings settings;
  const Handlers handlers;
  HttpClient client;
  std::string reported_problem;  // the client's thread

  std::mutex mutex;
  std::condition_variable changed;
  SyncRequest request;         // guarded by mutex
  std::stop_source interrupt;  // guarded by mutex
  bool urgent = false;         // guarded by mutex
  std::jthread thread;
};

OperatorClient::OperatorClient(Settings settings, SyncRequest first, Handlers handlers)
    : parts_(std::make_unique<Parts>(std::move(settings), std::move(first), std::move(handlers))) {
  parts_->thread = std::jthread([parts = parts_.get()](const std::stop_token& ending) { parts->run(ending); });
}

OperatorClient::~OperatorClient() {
  {
    const std::lock_guard lock(parts_->mutex);
    parts_->thread.request_stop();
    parts_->interrupt.request_stop();
  }
  parts_->changed.notify_all();
  parts_->thread.join();
}

void OperatorClient::set_report(SyncReport report, bool coordinating, bool at_once) {
  const std::lock_guard lock(parts_->mutex);
  parts_->request.report = std::move(report);
  parts_->request.sender.coordinating = coordinating;
  if (!at_once || std::exchange(parts_->urgent, true)) return;
  parts_->interrupt.request_stop();
  parts_->changed.notify_all();
}

}  // namespace rekindle::sidecar
