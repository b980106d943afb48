// An API server of a few lines for tests that need no HTTP: answers that a test has prepared by
// method and path, and everything that it was asked. What nobody prepared is a 404. Thread-safe.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "common/base/json_fields.h"
#include "operator/io/transport.h"

namespace rekindle::op {

class RecordedTransport final : public KubeTransport {
 public:
  // `request` is "GET /api/v1/namespaces/a/pods/p"; every such request gets this answer.
  void prepare(const std::string& request, int status, const Json& body) {
    const std::lock_guard lock(mutex_);
    answers_[request] = {.status = status, .body = dump_json(body)};
  }

  std::vector<std::string> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

  Result<HttpResponse> send(const HttpRequest& request, std::stop_token) override {
    const std::lock_guard lock(mutex_);
    requests_.push_back(request.method + " " + request.path);
    const auto found = answers_.find(requests_.back());
    if (found != answers_.end()) return found->second;
    return HttpResponse{.status = 404, .body = R"({"kind":"Status","code":404,"reason":"NotFound"})"};
  }

  Result<HttpResponse> stream(const HttpRequest& request, const TransportSink&, std::stop_token stop) override {
    return send(request, std::move(stop));
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, HttpResponse> answers_;  // guarded by mutex_
  std::vector<std::string> requests_;            // guarded by mutex_
};

}  // namespace rekindle::op
