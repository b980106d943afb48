#include "operator/io/operator_loop.h"

#include <algorithm>
#include <chrono>

#include "common/system/clock.h"
#include "common/system/log.h"

namespace rekindle::op {
namespace {

constexpr Duration kRoundMax = std::chrono::seconds(5);
constexpr Duration kAliveMax = std::chrono::seconds(30);
// longer than anything that a decision about a fault waits for
constexpr std::chrono::minutes kGoneRemembered{2};

std::string group_of(const ObjectKey& job) { return to_text(job); }

ObjectKey job_of(const Pod& pod) { return {pod.namespace_name, pod.job_name}; }
ObjectKey job_of(const Breakpoint& breakpoint) { return {breakpoint.namespace_name, breakpoint.spec.job_name}; }

}  // namespace

OperatorLoop::OperatorLoop(Settings settings, Mailbox<OperatorInput>& mailbox, JobCache& jobs, Metrics& metrics,
                           Perform perform)
    : settings_(std::move(settings)),
      mailbox_(mailbox),
      job_cache_(jobs),
      metrics_(metrics),
      perform_(std::move(perform)),
      pods_([](const Pod& pod) {
        return pod.job_name.empty() ? std::vector<std::string>{} : std::vector{group_of(job_of(pod))};
      }),
      breakpoints_([](const Breakpoint& breakpoint) { return std::vector{group_of(job_of(breakpoint))}; }),
      job_reader_(jobs_.reader()),
      pod_reader_(pods_.reader()),
      breakpoint_reader_(breakpoints_.reader()),
      queue_({}, settings_.seed),
      directory_(settings_.clock.wall()),
      started_(settings_.clock.wall()),
      last_round_(settings_.clock.monotonic().time_since_epoch().count()) {}

bool OperatorLoop::alive() const {
  const Instant last{Duration(last_round_.load())};
  return settings_.clock.monotonic() - last < kAliveMax;
}

void OperatorLoop::run() {
  while (!stopping_ && !mailbox_.closed()) go_round(mailbox_.take_all(time_to_wait(settings_.clock.monotonic())));
  // Sidecars that wait are answered to come again, rather than left hanging.
  for (const Held& held : held_) held.reply->give({.status = 503});
}

void OperatorLoop::go_round(std::deque<OperatorInput> inputs) {
  last_round_ = settings_.clock.monotonic().time_since_epoch().count();
  for (OperatorInput& input : inputs) {
    std::visit([this](auto&& one) { on(std::move(one)); }, std::move(input));
  }
  if (!ready_ && job_reader_.ready() && pod_reader_.ready() && breakpoint_reader_.ready()) {
    log_info("stores are filled",
             {{"jobs", job_reader_.size()}, {"pods", pod_reader_.size()}, {"breakpoints", breakpoint_reader_.size()}});
    ready_ = true;
    directory_.set_ready();
  }
  if (ready_) {
    while (const std::optional<ObjectKey> key = queue_.take(settings_.clock.monotonic())) reconcile_job(*key);
  }
  answer_held(settings_.clock.monotonic());
  metrics_.queue(queue_.queued());
  metrics_.sidecars_waiting(held_.size());
  metrics_.protected_jobs(job_reader_.size());
}

Duration OperatorLoop::time_to_wait(Instant now) const {
  Instant wake = now + kRoundMax;
  if (const std::optional<Instant> next = queue_.next_wake(); ready_ && next) wake = std::min(wake, *next);
  for (const Held& held : held_) wake = std::min(wake, held.until);
  return std::max(Duration::zero(), wake - now);
}

void OperatorLoop::enqueue(const ObjectKey& job) { queue_.add(job, settings_.clock.monotonic()); }

void OperatorLoop::on(StoreEvent<Job>&& event) {
  for (const StoreChange<Job>& change : jobs_.apply(std::move(event))) {
    job_cache_.put(change.key, change.after);
    if (change.before && (!change.after || change.after->uid != change.before->uid))
      directory_.forget({change.key.namespace_name, change.before->uid});
    enqueue(change.key);
  }
}

void OperatorLoop::on(StoreEvent<Pod>&& event) {
  const bool watched = std::holds_alternative<Delete<Pod>>(event);
  const auto keep = [this](const ObjectKey& key, Pod& pod) {
    if (const auto before = pod_reader_.get(key)) keep_first_deletion(pod, *before);
  };
  if (auto* apply = std::get_if<Apply<Pod>>(&event)) keep(apply->key, apply->object);
  if (auto* listed = std::get_if<InitApply<Pod>>(&event)) keep(listed->key, listed->object);
  if (auto* gone = std::get_if<Delete<Pod>>(&event); gone != nullptr && gone->last) keep(gone->key, *gone->last);
  for (const StoreChange<Pod>& change : pods_.apply(std::move(event))) {
    if (change.before && (!change.after || change.after->uid != change.before->uid))
      remember_gone(change.before, watched);
    for (const auto& pod : {change.before, change.after}) {
      if (pod && !pod->job_name.empty()) enqueue(job_of(*pod));
    }
  }
}

void OperatorLoop::remember_gone(std::shared_ptr<const Pod> pod, bool watched) {
  if (!pod->is_protected || pod->job_name.empty()) return;
  const auto memory = memories_.find(job_of(*pod));
  // of a job that was never looked at
  if (memory == memories_.end() || memory->second.job_uid != pod->job_uid) return;
  std::shared_ptr<const Job> job = watched ? job_reader_.get(memory->first) : nullptr;
  if (job && job->uid != pod->job_uid) job.reset();
  memory->second.gone_pods.push_back({std::move(pod), std::move(job), settings_.clock.wall()});
}

void OperatorLoop::on(StoreEvent<Breakpoint>&& event) {
  for (const StoreChange<Breakpoint>& change : breakpoints_.apply(std::move(event))) {
    for (const auto& breakpoint : {change.before, change.after}) {
      if (breakpoint) enqueue(job_of(*breakpoint));
    }
  }
}

void OperatorLoop::on(SyncArrived&& arrived) {
  const SyncOutcome outcome = directory_.receive(arrived.identity, arrived.body, settings_.clock.wall());
  if (outcome.report_changed) enqueue({arrived.identity.namespace_name, outcome.job_name});
  if (outcome.hold) {
    held_.push_back(
        {arrived.identity, outcome.seen, settings_.clock.monotonic() + outcome.wait, std::move(arrived.reply)});
  } else {
    arrived.reply->give(outcome);
  }
}

void OperatorLoop::on(ActionsDone&& done) {
  Memory& memory = memories_[done.job];
  const Instant now = settings_.clock.monotonic();
  if (memory.job_uid == done.job_uid) {
    memory.certificate_ensured |= done.certificate_ensured;
    memory.events_recorded.insert(done.events_recorded.begin(), done.events_recorded.end());
    for (Expectation& expectation : done.expectations) {
      memory.expectations.emplace_back(std::move(expectation), now + settings_.expectation_limit);
    }
  }
  if (!done.error) {
    metrics_.reconciled("success");
    queue_.done(done.job, WorkOutcome::requeue_after(std::chrono::milliseconds(20)), now);
    return;
  }
  metrics_.reconciled("error");
  // Another client changed the object first: an everyday thing, planned anew. Anything else
  // deserves a line.
  if (done.error->code != ErrorCode::conflict) {
    log_warning("an action failed; it is planned anew", {{"job", to_text(done.job)}, {"error", done.error->message}});
  }
  queue_.done(done.job, WorkOutcome::retry_with_backoff(), now);
}

void OperatorLoop::on(WebhooksRegistered&&) {
  if (webhook_.answers) return;
  webhook_ = {.answers = true, .answering_since = settings_.clock.wall()};
  for (const auto& job : job_reader_.all()) enqueue({job->namespace_name, job->name});
}

bool OperatorLoop::fulfilled(const Expectation& expectation) const {
  switch (expectation.kind) {
    case Expectation::Kind::breakpoint_there: return breakpoint_reader_.get(expectation.key) != nullptr;
    case Expectation::Kind::breakpoint_changed: {
      const auto seen = breakpoint_reader_.get(expectation.key);
      return !seen || seen->uid != expectation.uid || seen->resource_version != expectation.resource_version;
    }
    case Expectation::Kind::breakpoint_gone: {
      const auto seen = breakpoint_reader_.get(expectation.key);
      return !seen || seen->uid != expectation.uid || seen->deleting;
    }
    case Expectation::Kind::pod_going: {
      const auto seen = pod_reader_.get(expectation.key);
      return !seen || seen->uid != expectation.uid || is_deleting(*seen);
    }
  }
  return true;
}

std::uint32_t OperatorLoop::unseen(Memory& memory, Instant now) const {
  std::erase_if(memory.expectations, [&](const auto& entry) { return entry.second <= now || fulfilled(entry.first); });
  return static_cast<std::uint32_t>(memory.expectations.size());
}

void OperatorLoop::reconcile_job(const ObjectKey& key) {
  const Instant now = settings_.clock.monotonic();
  const WallTime wall = settings_.clock.wall();
  const std::shared_ptr<const Job> job = job_reader_.get(key);
  Memory& memory = memories_[key];
  const std::string uid = job ? job->uid : "";
  if (memory.job_uid != uid) memory = Memory{.job_uid = uid};

  Observation seen{.namespace_name = key.namespace_name,
                   .job_name = key.name,
                   .job = job,
                   .webhook = webhook_,
                   .operator_started = started_};
  const SidecarIdentity identity{key.namespace_name, uid};
  for (const auto& pod : pod_reader_.group(group_of(key))) {
    if (pod->is_protected && job && pod->job_uid == uid) seen.pods.push_back(pod);
  }
  std::erase_if(memory.gone_pods, [&](const GonePod& each) { return each.gone + kGoneRemembered <= wall; });
  seen.gone_pods = memory.gone_pods;
  seen.breakpoints = breakpoint_reader_.group(group_of(key));
  if (job) seen.reports = directory_.reports_of(identity);
  seen.certificate_ensured = memory.certificate_ensured;
  seen.events_recorded = memory.events_recorded;
  seen.writes_unseen = unseen(memory, now);

  Plan plan = reconcile(seen, settings_.limits, wall);
  if (plan.reasons != memory.reasons) {
    if (!plan.reasons.empty()) log_info("decided", {{"job", to_text(key)}, {"because", Json(plan.reasons)}});
    memory.reasons = plan.reasons;
  }
  if (job) {
    // While our own writes are not in sight nothing was decided, so what is served stays as it is.
    if (seen.writes_unseen == 0) directory_.update({job, seen.pods, plan.orders, plan.stale_pod_uids}, wall);
  } else {
    memories_.erase(key);
  }
  if (!plan.actions.empty()) {
    perform_(key, uid, std::move(plan.actions));
    return;  // done() follows with ActionsDone
  }
  Duration again = plan.requeue_after.value_or(Duration::max());
  if (seen.writes_unseen > 0) again = std::min<Duration>(again, settings_.expectation_limit);
  // to forget them then
  if (job && !memory.gone_pods.empty()) again = std::min<Duration>(again, kGoneRemembered);
  metrics_.reconciled(again == Duration::max() ? "success" : "requeue_after");
  queue_.done(key, again == Duration::max() ? WorkOutcome::forget() : WorkOutcome::requeue_after(again), now);
}

void OperatorLoop::answer_held(Instant now) {
  std::erase_if(held_, [&](const Held& held) {
    if (now < held.until && directory_.version_of(held.identity) == held.seen) return false;
    held.reply->give(directory_.answer(held.identity));
    return true;
  });
}

}  // namespace rekindle::op
