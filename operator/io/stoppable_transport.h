// A transport whose calls all end when we are to end: an API server that accepts and does not
// answer would else hold a thread for as long as one call may take. Thread-safe.
#pragma once

#include <stop_token>

#include "operator/io/transport.h"

namespace rekindle::op {

class StoppableTransport final : public KubeTransport {
 public:
  // `inner` must outlive it.
  explicit StoppableTransport(KubeTransport& inner) : inner_(inner) {}

  // Those that run and those that come end with an error.
  void stop() { stopping_.request_stop(); }

  Result<HttpResponse> send(const HttpRequest& request, std::stop_token stop = {}) override;
  Result<HttpResponse> stream(const HttpRequest& request, const TransportSink& sink, std::stop_token stop) override;

 private:
  KubeTransport& inner_;
  std::stop_source stopping_;
};

}  // namespace rekindle::op
