// A bounded HTTP/1.1 server, plain or TLS, for admission, sidecars, metrics and health. Why it is
// our own: docs/decisions/0002-http.md.
//
// Threads: one waits for connections and for requests on idle ones; a worker thread, started when
// first needed and at most `workers` of them, reads one request, runs the handler and writes the
// answer. A handler may block (a long poll), so `workers` bounds how many can do so at once.
// Connections above `connections_max` are closed at once. Everything a client sends is bounded in
// size and in time. What is refused: 400 (no HTTP/1.1, odd lengths, a control byte, both lengths
// given), 408 (too slow), 411, 413 (body), 414 and 431 (head), 417, 501 (transfer codings other
// than chunked), 503 (no worker free within the time for a head).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "common/base/http_message.h"
#include "common/base/instant.h"
#include "common/net/tls.h"

namespace rekindle {

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
  Duration idle_limit = std::chrono::seconds(90);  // a connection without a request
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

  // Listens; fails when the address is taken or not ours.
  static Result<std::unique_ptr<HttpServer>> start(HttpServerSettings settings, Handler handler,
                                                   Trouble on_trouble = {});

  // Stops listening, tells handlers (stopping), waits for them and closes everything.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::uint16_t port() const;

  // New connections are served with this certificate; those that are open stay.
  void replace_tls(std::shared_ptr<const TlsServerContext> tls);

  void stop();

 private:
  struct Shared;
  explicit HttpServer(std::unique_ptr<Shared> shared);
  std::unique_ptr<Shared> shared_;
};

}  // namespace rekindle
