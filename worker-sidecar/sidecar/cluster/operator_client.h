// Keeps one long poll to the operator open: says what this pod does, learns where the others are
// and what is ordered. One thread.
//
// While the operator is away the sidecar goes on with what it knows; the client asks again with
// growing pauses. A changed report interrupts a poll that waits, and a pause, so that what matters
// is reported at once.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "common/base/error.h"
#include "common/base/instant.h"
#include "common/contract/sync_answer.h"
#include "common/contract/sync_request.h"
#include "common/net/tls.h"

namespace rekindle::sidecar {

class OperatorClient {
 public:
  struct Settings {
    std::string host;  // also the name in the operator's certificate
    std::uint16_t port = 0;
    std::shared_ptr<const TlsClientContext> tls;
    std::string job_uid;
    // after a call that failed; each further failure doubles it, up to 5 s
    Duration first_pause = std::chrono::milliseconds(300);
  };
  struct Handlers {
    // On the client's thread.
    std::function<void(const SyncAnswer&)> answered;
    // The newest state of the call: "" when it works, else a message. Only when it changes.
    std::function<void(const std::string& problem)> problem;
  };

  OperatorClient(Settings settings, SyncRequest first, Handlers handlers);
  ~OperatorClient();
  OperatorClient(const OperatorClient&) = delete;
  OperatorClient& operator=(const OperatorClient&) = delete;

  // Any thread. `at_once`: end a poll that waits, or a pause, and report this now.
  void set_report(SyncReport report, bool coordinating, bool at_once);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace rekindle::sidecar
