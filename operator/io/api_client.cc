#include "operator/io/api_client.h"

#include <algorithm>
#include <condition_variable>
#include <utility>

#include "common/system/clock.h"

namespace rekindle::op {
namespace {

constexpr Duration kPauseMin = std::chrono::seconds(1);
constexpr std::size_t kIdleConnectionsMax = 8;

// The body of a refused watch is a Status object, not a list.
constexpr std::size_t kRefusalBytesMax = 1u << 20;

// How long the server tells clients to wait before the same request may pass; none when repeating
// it is not our decision.
std::optional<Duration> pause_before_repeating(const HttpResponse& response) {
  if (response.status != 429 && response.status != 503) return std::nullopt;
  std::optional<Duration> requested = retry_after(response);
  // Without Retry-After a 429 of an eviction means that a disruption budget forbids it, which is an
  // answer and not a matter of load.
  if (!requested) return std::nullopt;
  return std::max(*requested, kPauseMin);
}

}  // namespace

ApiClient::ApiClient(std::unique_ptr<Credentials> credentials, ApiClientSettings settings)
    : credentials_(std::move(credentials)),
      settings_(std::move(settings)),
      bucket_(settings_.requests_per_second, settings_.burst) {}

ApiClient::~ApiClient() = default;

Result<std::shared_ptr<HttpClient>> ApiClient::client() {
  Result<Credentials::Endpoint> endpoint = credentials_->endpoint(monotonic_now());
  if (!endpoint) return std::unexpected(endpoint.error());
  const std::lock_guard lock(mutex_);
  if (!client_) {
    client_ = std::make_shared<HttpClient>(std::move(endpoint->endpoint), kIdleConnectionsMax);
    client_version_ = endpoint->version;
  } else if (client_version_ != endpoint->version) {
    client_->replace_endpoint(std::move(endpoint->endpoint));
    client_version_ = endpoint->version;
  }
  return client_;
}

Result<HttpRequest> ApiClient::with_credentials(const HttpRequest& request, std::string& token) {
  Result<std::string> current = credentials_->token(monotonic_now());
  if (!current) return std::unexpected(current.error());
  token = std::move(*current);
  HttpRequest complete = request;
  complete.path = credentials_->server().path_prefix + request.path;
  complete.headers.set("User-Agent", settings_.user_agent);
  if (!token.empty()) complete.headers.set("Authorization", "Bearer " + token);
  return complete;
}

Status ApiClient::wait(Duration pause, std::stop_token stop) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, stop, pause, [] { return false; });
  if (stop.stop_requested()) return fail(ErrorCode::unavailable, "the call was ended because we are stopping");
  return {};
}

Result<HttpResponse> ApiClient::send(const HttpRequest& request, std::stop_token stop) {
  Duration wait_left = settings_.retry_wait_max;
  bool token_changed = false;
  for (int attempt = 1;; ++attempt) {
    Duration turn{};
    {
      const std::lock_guard lock(mutex_);
      turn = bucket_.reserve(monotonic_now());
    }
    if (turn > Duration::zero()) {
      if (Status status = wait(turn, stop); !status) return std::unexpected(status.error());
    }
    std::string token;
    const Result<HttpRequest> complete = with_credentials(request, token);
    if (!complete) return std::unexpected(complete.error());
    const Result<std::shared_ptr<HttpClient>> connected = client();
    if (!connected) return std::unexpected(connected.error());
    Result<HttpResponse> response = (*connected)->send(*complete, settings_.limits, stop);
    if (!response) {
      ++errors_;
      return std::unexpected(with_context(response.error(), "the API server"));
    }
    ++requests_;
    if (response->status == 401 && !token_changed && credentials_->token_refused(token)) {
      token_changed = true;
      ++retries_;
      continue;
    }
    const std::optional<Duration> pause = pause_before_repeating(*response);
    if (!pause || attempt >= settings_.attempts_max || *pause > wait_left) return response;
    wait_left -= *pause;
    ++retries_;
    if (Status status = wait(*pause, stop); !status) return std::unexpected(status.error());
  }
}

Result<HttpResponse> ApiClient::stream(const HttpRequest& request, const TransportSink& sink, std::stop_token stop) {
  HttpLimits limits = settings_.limits;
  limits.silence = settings_.stream_silence;
  limits.total = Duration::zero();
  limits.body_bytes_max = kRefusalBytesMax;
  const HttpStreamSink stream_sink{
      .on_head = {}, .on_bytes = sink.on_bytes, .on_quiet = sink.on_quiet, .quiet_interval = sink.quiet_interval};
  for (bool token_changed = false;; token_changed = true) {
    std::string token;
    const Result<HttpRequest> complete = with_credentials(request, token);
    if (!complete) return std::unexpected(complete.error());
    const Result<std::shared_ptr<HttpClient>> connected = client();
    if (!connected) return std::unexpected(connected.error());
    Result<HttpStreamEnd> end = (*connected)->stream(*complete, stream_sink, limits, stop);
    if (!end) {
      ++errors_;
      return std::unexpected(with_context(end.error(), "the API server"));
    }
    ++requests_;
    if (end->head.status != 401 || token_changed || !credentials_->token_refused(token)) return std::move(end->head);
    ++retries_;
  }
}

ApiClient::Counts ApiClient::counts() const { return {requests_.load(), errors_.load(), retries_.load()}; }

Result<Json> call_api(KubeTransport& transport, const Result<HttpRequest>& request, std::string_view doing,
                      std::stop_token stop) {
  if (!request) return std::unexpected(with_context(request.error(), doing));
  const Result<HttpResponse> response = transport.send(*request, std::move(stop));
  if (!response) return std::unexpected(with_context(response.error(), doing));
  return read_answer(*response, doing);
}

}  // namespace rekindle::op
