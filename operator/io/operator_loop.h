// The operator's owner thread: stores, queue, directory and decisions live here and nowhere else.
// Watches, servers and the action pool talk to it through one mailbox. It computes only; whatever
// blocks runs on other threads.
//
// A job is evaluated when something about it changed or its plan requested it, never while its
// actions are being performed, and not before the stores have shown what those actions wrote (or a
// time limit passed): that closes the window in which a stale view would repeat a decision.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/base/mailbox.h"
#include "common/system/clock.h"
#include "operator/controller/store.h"
#include "operator/controller/work_queue.h"
#include "operator/io/job_cache.h"
#include "operator/io/metrics.h"
#include "operator/io/operator_input.h"
#include "operator/reconcile/reconcile.h"
#include "operator/reconcile/sidecar_directory.h"

namespace rekindle::op {

class OperatorLoop {
 public:
  struct Clock {
    std::function<Instant()> monotonic = monotonic_now;  // any thread
    std::function<WallTime()> wall = wall_now;
  };
  struct Settings {
    PlanLimits limits{};
    Duration expectation_limit = std::chrono::seconds(10);
    std::uint64_t seed = 0;
    Clock clock{};
  };
  // Starts performing a plan's actions somewhere else; ActionsDone comes back through the mailbox.
  using Perform = std::function<void(ObjectKey job, std::string job_uid, std::vector<Action> actions)>;

  OperatorLoop(Settings settings, Mailbox<OperatorInput>& mailbox, JobCache& jobs, Metrics& metrics, Perform perform);

  // Until StopRequested or the mailbox is closed.
  void run();

  // One time round, with what came in since the last: what run() repeats.
  void go_round(std::deque<OperatorInput> inputs);

  // For probes; any thread.
  bool ready() const { return ready_.load(); }
  bool alive() const;  // has gone round in the last 30 s

 private:
  // What this process remembers about a job besides the stores. Losing it costs a repeated request,
  // never a wrong one.
  struct Memory {
    std::string job_uid;
    bool certificate_ensured = false;
    std::set<std::string> events_recorded;
    std::vector<GonePod> gone_pods;  // oldest first
    // with the time when we stop waiting
    std::vector<std::pair<Expectation, Instant>> expectations;
    // of the last plan, so that a log line appears once
    std::vector<std::string> reasons;
  };
  struct Held {
    SidecarIdentity identity;
    std::uint64_t seen = 0;
    Instant until{};
    std::shared_ptr<SyncReply> reply;
  };

  void on(StoreEvent<Job>&& event);
  void on(StoreEvent<Pod>&& event);
  void on(StoreEvent<Breakpoint>&& event);
  void on(SyncArrived&& arrived);
  void on(ActionsDone&& done);
  void on(WebhooksRegistered&&);
  void on(StopRequested&&) { stopping_ = true; }

  void enqueue(const ObjectKey& job);
  void remember_gone(std::shared_ptr<const Pod> pod, bool watched);
  void reconcile_job(const ObjectKey& key);
  std::uint32_t unseen(Memory& memory, Instant now) const;
  bool fulfilled(const Expectation& expectation) const;
  void answer_held(Instant now);
  Duration time_to_wait(Instant now) const;

  const Settings settings_;
  Mailbox<OperatorInput>& mailbox_;
  JobCache& job_cache_;
  Metrics& metrics_;
  const Perform perform_;

  StoreWriter<Job> jobs_;
  StoreWriter<Pod> pods_;
  StoreWriter<Breakpoint> breakpoints_;
  StoreReader<Job> job_reader_;
  StoreReader<Pod> pod_reader_;
  StoreReader<Breakpoint> breakpoint_reader_;
  WorkQueue<ObjectKey> queue_;
  SidecarDirectory directory_;
  std::map<ObjectKey, Memory> memories_;
  std::vector<Held> held_;
  WebhookHealth webhook_;
  const WallTime started_;
  bool stopping_ = false;

  std::atomic<bool> ready_{false};
  std::atomic<std::int64_t> last_round_;  // nanoseconds of the monotonic clock
};

}  // namespace rekindle::op
