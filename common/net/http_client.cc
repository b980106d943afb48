#include "common/net/http_client.h"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "common/base/format.h"
#include "common/net/connection.h"
#include "common/net/http_reader.h"
#include "common/net/http_wire.h"
#include "common/net/socket.h"
#include "common/system/clock.h"

namespace rekindle {
namespace {

// Far enough never to come, near enough that sums with it stay in range.
constexpr Duration kForever = std::chrono::hours(24 * 365 * 10);

bool is_bracketed(const std::string& host) { return host.size() > 2 && host.front() == '[' && host.back() == ']'; }

std::string host_header(const HttpEndpoint& endpoint) {
  const bool is_v6 = endpoint.host.contains(':') && !is_bracketed(endpoint.host);
  const std::string host = is_v6 ? format("[{}]", endpoint.host) : endpoint.host;
  const bool is_default = endpoint.port == (endpoint.tls ? 443 : 80);
  return is_default ? host : format("{}:{}", host, endpoint.port);
}

bool is_safe_to_repeat(std::string_view method) {
  return method == "GET" || method == "HEAD" || method == "PUT" || method == "DELETE";
}

Result<std::unique_ptr<Connection>> open_connection(const HttpEndpoint& endpoint, Instant deadline, int interrupt) {
  const std::string host =
      is_bracketed(endpoint.host) ? endpoint.host.substr(1, endpoint.host.size() - 2) : endpoint.host;
  Result<FileDescriptor> descriptor = connect_to(host, endpoint.port, deadline, interrupt);
  if (!descriptor) return std::unexpected(descriptor.error());
  if (!endpoint.tls) return make_plain_connection(std::move(*descriptor));
  const TlsIdentity identity = endpoint.identity.value_or(TlsIdentity::of_host(endpoint.host));
  return make_tls_client_connection(std::move(*descriptor), *endpoint.tls, identity,
                                    format("{}:{}", endpoint.host, endpoint.port), deadline, interrupt);
}

struct Call {
  const HttpRequest& request;
  const HttpLimits& limits;
  Instant deadline;
  int interrupt;

  Instant read_deadline() const { return std::min(deadline, monotonic_now() + limits.silence); }
};

// An answer whose body is still to be read from `reader`.
struct Answering {
  std::unique_ptr<Connection> connection;
  std::unique_ptr<HttpReader> reader;
  HttpResponse head;
  std::uint64_t endpoint_version = 0;  // of the endpoint that answers
};

struct ExchangeError {
  Error error;
  bool before_any_byte = false;
};

// Sends the request and reads the head of the answer.
std::expected<Answering, ExchangeError> exchange(std::unique_ptr<Connection> connection, const std::string& head,
                                                 const Call& call) {
  auto reader = std::make_unique<HttpReader>(*connection);
  Status sent = connection->write_all(head + call.request.body, call.limits.silence, call.deadline, call.interrupt);
  if (!sent && (is_stopped(sent.error()) || sent.error().code == ErrorCode::deadline_exceeded)) {
    return std::unexpected(ExchangeError{sent.error(), false});
  }
  // A server may refuse a request before it has read all of it: what it says is better than "the
  // connection broke".
  while (true) {
    const Result<std::string> text =
        reader->read_head(call.limits.head_bytes_max, call.limits.silence, call.deadline, call.interrupt);
    if (!text || text->empty()) {
      Error ended{ErrorCode::unavailable, "the other side closed the connection without an answer", Retry::yes};
      Error error = !sent ? sent.error() : !text ? text.error() : ended;
      const bool repeatable = !reader->has_begun() && error.code == ErrorCode::unavailable && !is_stopped(error);
      return std::unexpected(ExchangeError{std::move(error), repeatable});
    }
    Result<HttpResponse> parsed = parse_response_head(*text);
    if (!parsed) return std::unexpected(ExchangeError{parsed.error()});
    if (parsed->status == 101) {
      Error switched{ErrorCode::corrupt, "the other side switched to a protocol that we did not ask for"};
      return std::unexpected(ExchangeError{std::move(switched)});
    }
    if (parsed->status < 200) continue;
    const Result<BodyFraming> framing = framing_of_response(call.request.method, *parsed);
    if (!framing) return std::unexpected(ExchangeError{framing.error()});
    reader->begin_body(*framing);
    return Answering{std::move(connection), std::move(reader), std::move(*parsed)};
  }
}

}  // namespace

struct HttpClient::Shared {
  struct Idle {
    std::unique_ptr<Connection> connection;
    Instant since;
  };

  const std::size_t idle_connections_max;
  const Duration idle_limit;

  std::mutex mutex;
  HttpEndpoint endpoint;               // guarded by mutex
  std::uint64_t endpoint_version = 0;  // guarded by mutex
  std::vector<Idle> idle;              // guarded by mutex

  // The most recently used kept connection that is still good, or null.
  std::unique_ptr<Connection> take_idle() {
    std::vector<Idle> dropped;  // closed after the lock is given back
    const std::lock_guard lock(mutex);
    const Instant now = monotonic_now();
    while (!idle.empty()) {
      Idle last = std::move(idle.back());
      idle.pop_back();
      // Readable without a request means closed, or something that nobody asked for.
      const Result<Readiness> readiness = wait_for(last.connection->descriptor(), false, now, -1);
      const bool quiet = readiness && *readiness == Readiness::timed_out && !last.connection->has_buffered();
      if (quiet && now - last.since < idle_limit) return std::move(last.connection);
      dropped.push_back(std::move(last));
    }
    return nullptr;
  }

  void keep(std::unique_ptr<Connection> connection, std::uint64_t version) {
    const std::lock_guard lock(mutex);
    if (version != endpoint_version || idle.size() >= idle_connections_max) return;
    idle.push_back({std::move(connection), monotonic_now()});
  }

  Result<Answering> begin(const Call& call) {
    HttpEndpoint target;
    std::uint64_t version = 0;
    {
      const std::lock_guard lock(mutex);
      target = endpoint;
      version = endpoint_version;
    }
    const std::string where = format("{}:{}", target.host, target.port);
    const Result<std::string> head = encode_request_head(call.request, host_header(target));
    if (!head) return std::unexpected(head.error());

    if (std::unique_ptr<Connection> kept = take_idle()) {
      std::expected<Answering, ExchangeError> answering = exchange(std::move(kept), *head, call);
      if (answering) {
        answering->endpoint_version = version;
        return std::move(*answering);
      }
      if (!answering.error().before_any_byte || !is_safe_to_repeat(call.request.method)) {
        return std::unexpected(with_context(answering.error().error, where));
      }
    }
    const Instant connect_deadline = std::min(call.deadline, monotonic_now() + call.limits.connect);
    Result<std::unique_ptr<Connection>> fresh = open_connection(target, connect_deadline, call.interrupt);
    if (!fresh) return std::unexpected(fresh.error());
    std::expected<Answering, ExchangeError> answering = exchange(std::move(*fresh), *head, call);
    if (!answering) return std::unexpected(with_context(answering.error().error, where));
    answering->endpoint_version = version;
    return std::move(*answering);
  }

  // Reads the rest of a whole answer, and keeps the connection where it can serve again.
  Result<HttpResponse> finish(Answering answering, const Call& call) {
    Result<std::string> body =
        answering.reader->read_body(call.limits.body_bytes_max, call.limits.silence, call.deadline, call.interrupt);
    if (!body) return std::unexpected(with_context(body.error(), "reading the answer to " + call.request.path));
    HttpResponse response = std::move(answering.head);
    response.body = std::move(*body);
    release(std::move(answering), response.headers);
    return response;
  }

  void release(Answering answering, const HttpHeaders& headers) {
    const HttpReader& reader = *answering.reader;
    if (keeps_open(headers) && reader.body_ended() && !reader.has_bytes()) {
      keep(std::move(answering.connection), answering.endpoint_version);
    } else {
      answering.connection->close_politely();
    }
  }
};

HttpClient::HttpClient(HttpEndpoint endpoint, std::size_t idle_connections_max, Duration idle_limit)
    : shared_(new Shared{.idle_connections_max = idle_connections_max, .idle_limit = idle_limit}) {
  shared_->endpoint = std::move(endpoint);
}

HttpClient::~HttpClient() = default;

void HttpClient::replace_endpoint(HttpEndpoint endpoint) {
  std::vector<Shared::Idle> dropped;
  const std::lock_guard lock(shared_->mutex);
  shared_->endpoint = std::move(endpoint);
  ++shared_->endpoint_version;
  dropped.swap(shared_->idle);
}

Result<HttpResponse> HttpClient::send(const HttpRequest& request, const HttpLimits& limits, std::stop_token stop) {
  const StopSignal signal(std::move(stop));
  if (Status made = signal.made(); !made) return std::unexpected(made.error());
  const Duration total = limits.total > Duration::zero() ? limits.total : kForever;
  const Call call{request, limits, monotonic_now() + total, signal.descriptor()};
  Result<Answering> answering = shared_->begin(call);
  if (!answering) return std::unexpected(answering.error());
  return shared_->finish(std::move(*answering), call);
}

Result<HttpStreamEnd> HttpClient::stream(const HttpRequest& request, const HttpStreamSink& sink,
                                         const HttpLimits& limits, std::stop_token stop) {
  const StopSignal signal(std::move(stop));
  if (Status made = signal.made(); !made) return std::unexpected(made.error());
  const Duration total = limits.total > Duration::zero() ? limits.total : kForever;
  const Call call{request, limits, monotonic_now() + total, signal.descriptor()};
  Result<Answering> answering = shared_->begin(call);
  if (!answering) return std::unexpected(answering.error());
  if (answering->head.status < 200 || answering->head.status > 299) {
    Result<HttpResponse> refusal = shared_->finish(std::move(*answering), call);
    if (!refusal) return std::unexpected(refusal.error());
    return HttpStreamEnd{.head = std::move(*refusal)};
  }

  HttpReader& reader = *answering->reader;
  HttpStreamEnd end{.head = answering->head};
  if (sink.on_head && !sink.on_head(end.head)) end.by_sink = true;
  Instant heard = monotonic_now();
  Instant reported_quiet = heard;
  while (!end.by_sink) {
    const Instant silence_limit = std::min(call.deadline, heard + limits.silence);
    const Instant quiet_limit = sink.on_quiet ? reported_quiet + sink.quiet_interval : silence_limit;
    const Result<std::string_view> piece = reader.next_piece(std::min(silence_limit, quiet_limit), call.interrupt);
    if (piece) {
      if (piece->empty()) break;
      if (sink.on_bytes && !sink.on_bytes(*piece)) end.by_sink = true;
      // Only now, since a sink that took its time is not a server that was silent.
      heard = reported_quiet = monotonic_now();
      if (heard >= call.deadline && !end.by_sink) {
        return fail(ErrorCode::deadline_exceeded, format("the stream of {} did not end in time", request.path),
                    Retry::yes);
      }
      continue;
    }
    const Instant now = monotonic_now();
    if (piece.error().code != ErrorCode::deadline_exceeded || now >= silence_limit) {
      return std::unexpected(with_context(piece.error(), "reading the stream of " + request.path));
    }
    reported_quiet = now;
    if (!sink.on_quiet()) end.by_sink = true;
  }
  shared_->release(std::move(*answering), end.head.headers);
  return end;
}

}  // namespace rekindle
