// The one way to the API server: send for a whole answer, stream for a watch. An interface so that
// the parts above can be tested with a recorded one; the real one is ApiClient.
#pragma once

#include <functional>
#include <stop_token>
#include <string_view>

#include "common/base/http_message.h"
#include "common/base/instant.h"

namespace rekindle::op {

struct TransportSink {
  std::function<bool(std::string_view bytes)> on_bytes;  // false closes the stream
  // nothing came for `quiet_interval`; false closes
  std::function<bool()> on_quiet;
  Duration quiet_interval = std::chrono::seconds(1);
};

class KubeTransport {
 public:
  virtual ~KubeTransport() = default;

  // Any HTTP status is an answer; an Error means that there was none.
  virtual Result<HttpResponse> send(const HttpRequest& request, std::stop_token stop = {}) = 0;

  // Returns when the stream is over: the head with status 2xx when it ended properly or was closed
  // by the sink; head and body when the server refused; an Error when the connection could not be
  // made or broke.
  virtual Result<HttpResponse> stream(const HttpRequest& request, const TransportSink& sink, std::stop_token stop) = 0;
};

}  // namespace rekindle::op
