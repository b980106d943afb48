// The keyed queue between "something changed" and reconcile.
//
// The law:
//  1. A key is in at most one place: waiting for its time, due, or running.
//  2. Adding a key that waits or is due keeps the earlier time and the higher priority.
//  3. A running key is never given out a second time. What is added while it runs is parked under
//     rule 2 and comes back when it is done; an outcome that asks for a later time loses against an
//     earlier parked one.
//  4. Among due keys: higher priority first, then earlier time, then the one added first.
//  5. Every outcome maps to the queue in one switch (done).
//
// Pure: now is an argument, jitter comes from the seed. One thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "common/base/assert.h"
#include "common/base/instant.h"
#include "common/base/prng.h"
#include "operator/controller/backoff.h"

namespace rekindle::op {

struct WorkOutcome {
  enum class Kind {
    forget,         // done; earlier failures are forgotten
    requeue_after,  // done; look again after `after`; earlier failures are forgotten
    // failed in a way that may pass; again after a pause that grows with each failure in a row
    retry_with_backoff,
    terminal,  // failed in a way that only a change can cure: waits for the next add
  };
  Kind kind = Kind::forget;
  Duration after{};

  static WorkOutcome forget() { return {Kind::forget, {}}; }
  static WorkOutcome requeue_after(Duration after) { return {Kind::requeue_after, after}; }
  static WorkOutcome retry_with_backoff() { return {Kind::retry_with_backoff, {}}; }
  static WorkOutcome terminal() { return {Kind::terminal, {}}; }
};

struct WorkQueueSettings {
  BackoffSettings retry{.first = std::chrono::milliseconds(200),
                        .max = std::chrono::seconds(60),
                        .reset_after = std::chrono::hours(24),
                        .jitter = 0.2};
};

template <typename Key>
class WorkQueue {
 public:
  explicit WorkQueue(WorkQueueSettings settings = {}, std::uint64_t seed = 0) : settings_(settings), rng_(seed) {}

  // Wants `key` looked at, not before `when`.
  void add(const Key& key, Instant when, int priority = 0) {
    auto [found, fresh] = entries_.try_emplace(key, Entry{.backoff = Backoff(settings_.retry)});
    Entry& entry = found->second;
    if (entry.place == Place::running) {
      merge(entry.parked, Request{when, priority, next_sequence_++});
      return;
    }
    std::optional<Request> request;
    if (entry.place != Place::nowhere) {
      unqueue(key, entry);
      request = entry.request;
    }
    merge(request, Request{when, priority, next_sequence_++});
    enqueue(key, entry, *request);
  }

  // The most urgent key that is due. It runs until done() is called for it.
  std::optional<Key> take(Instant now) {
    while (!waiting_.empty() && std::get<0>(*waiting_.begin()) <= now) {
      const Key key = std::get<2>(waiting_.extract(waiting_.begin()).value());
      Entry& entry = entries_.at(key);
      entry.place = Place::due;
      due_.insert(urgency_of(entry.request, key));
    }
    if (due_.empty()) return std::nullopt;
    Key key = std::get<3>(due_.extract(due_.begin()).value());
    entries_.at(key).place = Place::running;
    ++running_;
    return key;
  }

  // Ends the run that take() began.
  void done(const Key& key, WorkOutcome outcome, Instant now) {
    const auto found = entries_.find(key);
    RK_ASSERT(found != entries_.end() && found->second.place == Place::running);
    Entry& entry = found->second;
    --running_;
    std::optional<Request> again = std::exchange(entry.parked, std::nullopt);
    switch (outcome.kind) {
      case WorkOutcome::Kind::forget:
      case WorkOutcome::Kind::terminal: entry.backoff.succeeded(); break;
      case WorkOutcome::Kind::requeue_after:
        entry.backoff.succeeded();
        merge(again, Request{now + outcome.after, 0, next_sequence_++});
        break;
      case WorkOutcome::Kind::retry_with_backoff:
        merge(again, Request{now + entry.backoff.failed(now, rng_), 0, next_sequence_++});
        break;
    }
    if (again) {
      enqueue(key, entry, *again);
    } else {
      entries_.erase(found);
    }
  }

  // When take() can next give something (possibly in the past); none while nothing waits.
  std::optional<Instant> next_wake() const {
    if (!due_.empty()) return std::get<1>(*due_.begin());
    if (!waiting_.empty()) return std::get<0>(*waiting_.begin());
    return std::nullopt;
  }

  std::size_t queued() const { return waiting_.size() + due_.size(); }
  std::size_t running() const { return running_; }
  // Failures in a row of a key.
  std::uint32_t failures(const Key& key) const {
    const auto found = entries_.find(key);
    return found == entries_.end() ? 0 : found->second.backoff.failures();
  }

 private:
  struct Request {
    Instant when;
    int priority;
    std::uint64_t sequence;
  };
  enum class Place { nowhere, waiting, due, running };
  struct Entry {
    Place place = Place::nowhere;
    Request request{};
    std::optional<Request> parked;
    Backoff backoff;
  };
  using ByTime = std::tuple<Instant, std::uint64_t, Key>;
  using ByUrgency = std::tuple<int, Instant, std::uint64_t, Key>;  // the priority negated

  static ByTime time_of(const Request& request, const Key& key) { return {request.when, request.sequence, key}; }
  static ByUrgency urgency_of(const Request& request, const Key& key) {
    return {-request.priority, request.when, request.sequence, key};
  }

  static void merge(std::optional<Request>& into, const Request& other) {
    if (!into) {
      into = other;
      return;
    }
    into->when = std::min(into->when, other.when);
    into->priority = std::max(into->priority, other.priority);
    into->sequence = std::min(into->sequence, other.sequence);
  }

  void enqueue(const Key& key, Entry& entry, const Request& request) {
    entry.place = Place::waiting;
    entry.request = request;
    waiting_.insert(time_of(request, key));
  }

  void unqueue(const Key& key, const Entry& entry) {
    waiting_.erase(time_of(entry.request, key));
    due_.erase(urgency_of(entry.request, key));
  }

  WorkQueueSettings settings_;
  Prng rng_;
  std::map<Key, Entry> entries_;
  std::set<ByTime> waiting_;
  std::set<ByUrgency> due_;
  std::size_t running_ = 0;
  std::uint64_t next_sequence_ = 0;
};

}  // namespace rekindle::op
