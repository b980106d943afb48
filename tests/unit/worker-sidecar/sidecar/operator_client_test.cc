#include "worker-sidecar/sidecar/cluster/operator_client.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <future>
#include <mutex>
#include <string>
#include <vector>

#include "common/net/http_server.h"
#include "tests/support/certificates.h"

namespace rekindle::sidecar {
namespace {

using namespace std::chrono_literals;

// An operator that is there and says no.
class BusyOperator {
 public:
  explicit BusyOperator(const TestAuthority& authority) {
    auto server = HttpServer::start(
        {.address = "127.0.0.1", .tls = server_context(authority.server({.ip = {"127.0.0.1"}}), authority.pem())},
        [this](const ServedRequest& served) {
          const std::lock_guard lock(mutex_);
          heard_.push_back(served.request.body);
          changed_.notify_all();
          return HttpResponse{.status = 503};
        });
    EXPECT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
  }
  std::uint16_t port() const { return server_->port(); }
  // The newest of so many calls; empty when they do not come.
  std::string call(std::size_t number) {
    std::unique_lock lock(mutex_);
    const bool came = changed_.wait_for(lock, 20s, [&] { return heard_.size() >= number; });
    return came ? heard_.back() : "";
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> heard_;
  std::unique_ptr<HttpServer> server_;
};

// A pod that ends inside a pause had its last report, the durable step, lost.
TEST(OperatorClientPause, EndsForAReportThatIsUrgent) {
  const TestAuthority authority;
  BusyOperator busy(authority);
  const TlsKeyPair own = sign_certificate(authority.pair(), {.common_name = "sidecar",
                                                             .names = {.uri = {"rekindle://team/uid-1"}},
                                                             .validity = valid_around_now(),
                                                             .for_server = true,
                                                             .for_client = true})
                             .value();
  std::promise<void> refused;
  OperatorClient client(
      {.host = "127.0.0.1",
       .port = busy.port(),
       .tls = client_context(authority.pem(), own),
       .job_uid = "uid-1",
       .first_pause = 1h},
      SyncRequest{.sender = {.pod_name = "digits-worker-0", .pod_uid = "pod-0"}, .report = SyncReport{}},
      {.answered = [](const SyncAnswer&) {}, .problem = [&](const std::string&) { refused.set_value(); }});
  ASSERT_EQ(refused.get_future().wait_for(20s), std::future_status::ready);
  client.set_report({.attempt = 1, .step = 184}, true, true);
  EXPECT_NE(busy.call(2).find("184"), std::string::npos);
}

}  // namespace
}  // namespace rekindle::sidecar
