// What the operator's owner thread receives, from watches, servers and the action pool.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "operator/controller/store_event.h"
#include "operator/kube/object_key.h"
#include "operator/model/breakpoint.h"
#include "operator/model/job.h"
#include "operator/model/pod.h"
#include "operator/reconcile/action.h"
#include "operator/reconcile/sidecar_directory.h"

namespace rekindle::op {

// Where a server thread waits for the owner thread's answer to one sidecar.
class SyncReply {
 public:
  void give(SyncOutcome outcome) {
    const std::lock_guard lock(mutex_);
    outcome_ = std::move(outcome);
    given_.notify_all();
  }

  // None when nothing came in time.
  std::optional<SyncOutcome> wait(std::chrono::nanoseconds timeout) {
    std::unique_lock lock(mutex_);
    given_.wait_for(lock, timeout, [this] { return outcome_.has_value(); });
    return outcome_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable given_;
  std::optional<SyncOutcome> outcome_;  // guarded by mutex_
};

struct SyncArrived {
  SidecarIdentity identity;
  std::string body;
  std::shared_ptr<SyncReply> reply;
};

// What performing one action left behind that the stores have to show before the job is evaluated
// again.
struct Expectation {
  enum class Kind { breakpoint_there, breakpoint_changed, breakpoint_gone, pod_going };
  Kind kind;
  ObjectKey key;
  std::string uid;
  std::string resource_version;  // breakpoint_changed: the version before the write
};

struct ActionsDone {
  ObjectKey job;
  std::string job_uid;
  std::vector<Expectation> expectations;
  bool certificate_ensured = false;
  std::vector<std::string> events_recorded;
  std::optional<Error> error;  // of the first action that failed; the ones behind it were not tried
};

struct WebhooksRegistered {};
struct StopRequested {};

using OperatorInput = std::variant<StoreEvent<Job>, StoreEvent<Pod>, StoreEvent<Breakpoint>, SyncArrived, ActionsDone,
                                   WebhooksRegistered, StopRequested>;

}  // namespace rekindle::op
