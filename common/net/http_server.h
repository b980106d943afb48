// A bounded HTTP/1.1 server, plain or TLS, for admission, sidecars, metrics and health. Why it is
// our own: docs/decisions/0002-http.md.
//
// Threads: one waits for connections and for what clients send; a worker thread, started when first
// needed and at most `workers` of them, takes what has arrived, and when that makes a whole request
// runs the handler and writes the answer. A worker never waits for a client's handshake, head or
// body, so slow clients keep nobody else from being served, however many there are. A handler may
// block (a long poll), so `workers` bounds how many can do so at once.
//
// Above `connections_max` the client that has waited longest gives way to a new one: first those
// that never brought a whole request, then those between two. A connection is closed at once when
// everybody else is being served. Where the system has no thread left, those that there are do all
// the work; a client is hung up on when there is none.
//
// Everything a client sends is bounded in size and in time. What is refused: 400 (no HTTP/1.1, odd
// lengths, a control byte, both lengths given), 408 (too slow), 411, 413 (body), 414 and 431
// (head), 417, 501 (transfer codings other than chunked), 503 (no worker free within the time for a
// head).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "common/base/http_message.h"
#include "common/base/instant.h"
#include "common/net/tls.h"
#include "common/system/clock.h"

namespace rekindle {

// Throws std::system_error when the system has no thread left, as std::thread does.
using MakeThread = std::function<std::thread(std::function<void()> body)>;

struct HttpServerSettings {
  // an IP address to listen on; "::" for both families
  std::string address = "0.0.0.0";
  std::uint16_t port = 0;                       // 0: any free one, see HttpServer::port()
  std::shared_ptr<const TlsServerContext> tls;  // null: plain text
  std::size_t workers = 8;
  std::size_t connections_max = 1024;
  std::size_t head_bytes_max = 32u << 10;
  // an AdmissionReview may hold an old and a new object of 1.5 MiB
  std::size_t body_bytes_max = 4u << 20;
  Duration head_limit = std::chrono::seconds(10);  // TLS handshake and head of a request
  Duration body_limit = std::chrono::seconds(20);
  Duration write_limit = std::chrono::seconds(20);
  Duration last_write_limit = std::chrono::seconds(1);  // of an answer, once the server is to stop
  Duration idle_limit = std::chrono::seconds(90);       // a connection without a request
  MakeThread make_thread = [](std::function<void()> body) { return std::thread(std::move(body)); };
  std::function<Instant()> now = monotonic_now;  // any thread; for every limit but that of writing
};

// One request as the handler sees it.
struct ServedRequest {
  HttpRequest request;
  std::string peer_address;  // "10.1.2.3:41234"
  // of the verified certificate; always there with mutual TLS, never without
  std::optional<std::string> peer_uri;
  // the server is being stopped: a long poll ends with what it has
  std::stop_token stopping;
  std::function<bool()> peer_gone;  // the client has hung up: a long poll may end
};

class HttpServer {
 public:
  // Runs on a worker thread, many at once. An exception that leaves it becomes a 500 and
  // `on_trouble`.
  using Handler = std::function<HttpResponse(const ServedRequest&)>;
  // Why a connection or request was refused, for a log; called from any of the server's threads.
  using Trouble = std::function<void(const Error&)>;

  // Listens; fails when the address is taken or not ours, and when the system has no thread or
  // descriptor left.
  static Result<std::unique_ptr<HttpServer>> start(HttpServerSettings settings, Handler handler,
                                                   Trouble on_trouble = {});

  // Stops listening, tells handlers (stopping), waits for them and closes everything.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::uint16_t port() const;

  // New connections are served with this certificate; those that are open stay.
  void replace_tls(std::shared_ptr<const TlsServerContext> tls);

  // Stops listening and tells handlers, waits for nobody: so that several servers stop at once.
  void request_stop();

  // Waits as well. What a client has not read soon after it never gets.
  void stop();

 private:
  struct Shared;
  explicit HttpServer(std::unique_ptr<Shared> shared);
  std::unique_ptr<Shared> shared_;
};

}  // namespace rekindle
