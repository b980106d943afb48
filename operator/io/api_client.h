// The transport to a real API server: credentials, a rate limit of our own, retries that the server
// asked for. Thread-safe; each call runs on the thread that makes it.
//
// send() waits for a token of the bucket, and repeats the same request when
//   - the answer is 429 or 503 with Retry-After: after that time, up to `attempts_max` tries and
//     `retry_wait_max` of waiting altogether,
//   - the answer is 401 and the token file has another token by now: once, at once. All other
//     answers and all errors are the caller's: only it knows whether trying again is right.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "common/net/http_client.h"
#include "operator/controller/token_bucket.h"
#include "operator/io/credentials.h"
#include "operator/io/transport.h"
#include "operator/kube/answer.h"

namespace rekindle::op {

struct ApiClientSettings {
  double requests_per_second = 50;
  double burst = 100;
  int attempts_max = 6;
  Duration retry_wait_max = std::chrono::seconds(30);
  HttpLimits limits{.body_bytes_max = kAnswerBytesMax};
  // above the idle limit of the watch machine, which speaks first
  Duration stream_silence = std::chrono::seconds(120);
  std::string user_agent = "rekindle";
};

class ApiClient final : public KubeTransport {
 public:
  ApiClient(std::unique_ptr<Credentials> credentials, ApiClientSettings settings = {});
  ~ApiClient() override;

  Result<HttpResponse> send(const HttpRequest& request, std::stop_token stop = {}) override;
  Result<HttpResponse> stream(const HttpRequest& request, const TransportSink& sink, std::stop_token stop) override;

  Credentials& credentials() { return *credentials_; }

  // For metrics.
  struct Counts {
    std::uint64_t requests = 0;  // answered, by whatever status
    std::uint64_t errors = 0;    // not answered
    std::uint64_t retries = 0;
  };
  Counts counts() const;

 private:
  Result<HttpRequest> with_credentials(const HttpRequest& request, std::string& token);
  Result<std::shared_ptr<HttpClient>> client();
  Status wait(Duration pause, std::stop_token stop);

  // Constant after construction.
  const std::unique_ptr<Credentials> credentials_;
  const ApiClientSettings settings_;

  std::mutex mutex_;
  TokenBucket bucket_;                  // guarded by mutex_
  std::shared_ptr<HttpClient> client_;  // guarded by mutex_
  std::uint64_t client_version_ = 0;    // guarded by mutex_

  std::atomic<std::uint64_t> requests_{0};
  std::atomic<std::uint64_t> errors_{0};
  std::atomic<std::uint64_t> retries_{0};
};

// One request and its answer as JSON: send() and read_answer(). A request that could not be made is
// not sent; its error comes back.
Result<Json> call_api(KubeTransport& transport, const Result<HttpRequest>& request, std::string_view doing,
                      std::stop_token stop = {});

}  // namespace rekindle::op
