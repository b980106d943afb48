// An HTTP/1.1 client on sockets and OpenSSL: whole answers and streams, each part of a call with a
// limit of its own, and every call can be ended from another thread. Why it is our own:
// docs/decisions/0002-http.md.
//
// An HttpClient may be used from any number of threads; each call runs on the thread that makes it.
// Connections that served a whole answer are kept for a while and used again. A call that fails on
// such a kept connection before any byte of the answer came is made once more on a fresh one if its
// method is GET, HEAD, PUT or DELETE.
//
// Errors: unavailable (no connection, broken connection; retry), deadline_exceeded (a limit on
// time; retry), refused (the peer's certificate is not what we expect; the sentence says why),
// exhausted (an answer above its limit), corrupt (no HTTP), invalid_input (a request that cannot be
// sent). A call ended by its stop token gives unavailable without retry, see is_stopped().
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "common/base/http_message.h"
#include "common/base/instant.h"
#include "common/net/tls.h"

namespace rekindle {

struct HttpEndpoint {
  std::string host;  // a name or an IP address
  std::uint16_t port = 0;
  std::shared_ptr<const TlsClientContext> tls;  // null: plain text
  // whom the server's certificate must name; none: `host`
  std::optional<TlsIdentity> identity;
};

struct HttpLimits {
  Duration connect = std::chrono::seconds(10);  // name, connection and TLS handshake together
  // without a byte moving in the direction that is waited for
  Duration silence = std::chrono::seconds(30);
  Duration total = std::chrono::seconds(60);  // the whole call; zero: no limit
  std::size_t head_bytes_max = 64u << 10;
  std::size_t body_bytes_max = 64u << 20;  // of a whole answer; a stream has no limit
};

// How a streamed answer is received. Both run on the calling thread; false ends the stream.
struct HttpStreamSink {
  // Status and headers of the answer. A status other than 2xx is not streamed: the body comes whole
  // in the returned response.
  std::function<bool(const HttpResponse& head)> on_head;
  std::function<bool(std::string_view bytes)> on_bytes;
  // Nothing has come for `quiet_interval`; called again after each further one. Not set: never.
  std::function<bool()> on_quiet;
  Duration quiet_interval = std::chrono::seconds(1);
};

struct HttpStreamEnd {
  HttpResponse head;     // with the body when the status was not 2xx
  bool by_sink = false;  // a callback returned false
};

class HttpClient {
 public:
  // Connections that were idle for longer than `idle_limit` are not used again (the other side may
  // be about to close them).
  explicit HttpClient(HttpEndpoint endpoint, std::size_t idle_connections_max = 4,
                      Duration idle_limit = std::chrono::seconds(20));
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Host, Content-Length, Connection and User-Agent are filled in; Transfer-Encoding and Host of
  // the caller are refused.
  Result<HttpResponse> send(const HttpRequest& request, const HttpLimits& limits = {}, std::stop_token stop = {});

  // For answers without an end. `limits.silence` ends it when nothing comes for so long. A stream
  // that the server ends properly is a success; one that breaks off is unavailable.
  Result<HttpStreamEnd> stream(const HttpRequest& request, const HttpStreamSink& sink, const HttpLimits& limits,
                               std::stop_token stop = {});

  // New connections use this endpoint; kept ones are closed (a certificate or an authority was
  // rotated).
  void replace_endpoint(HttpEndpoint endpoint);

 private:
  struct Shared;
  std::unique_ptr<Shared> shared_;
};

// The call was ended by its stop token.
bool is_stopped(const Error& error);

}  // namespace rekindle
