// Runs one WatchMachine on a thread of its own: performs its lists and watches, and delivers its
// events to the owner thread's mailbox.
//
//   auto pods = std::make_unique<WatchThread>(
//       client, WatchThread::Job{.resource = kPods, .selection = {...}},
//       deliver_decoded<Pod>(mailbox, &decode_pod, on_unreadable), on_trouble, seed);
//
// Decoding runs on the watch's thread, so the owner never parses. A full mailbox makes the watch
// wait: the server buffers, and ends a stream that is too slow, after which it resumes. stop()
// returns within the time of one system call, whatever the watch is doing.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include "common/base/mailbox.h"
#include "operator/controller/store_event.h"
#include "operator/controller/watch_machine.h"
#include "operator/io/transport.h"
#include "operator/kube/requests.h"

namespace rekindle::op {

class WatchThread {
 public:
  struct Job {
    Resource resource;
    Selection selection;
    WatchSettings settings{};
  };

  // Hands one event on; false when the receiver takes no more events, which ends the thread.
  using Deliver = std::function<bool(StoreEvent<Json> event, std::stop_token stop)>;
  // What went wrong and what happens next, for a log and a metric. Runs on the watch's thread.
  using OnTrouble = std::function<void(const Job& job, const Error& error, const std::string& next)>;

  // `transport` must outlive the thread.
  WatchThread(KubeTransport& transport, Job job, Deliver deliver, OnTrouble on_trouble, std::uint64_t seed);
  ~WatchThread();  // stop()
  WatchThread(const WatchThread&) = delete;
  WatchThread& operator=(const WatchThread&) = delete;

  void stop();

 private:
  class Driver;
  std::jthread thread_;
};

// Events of type T into a mailbox whose items can be made of StoreEvent<T>. `decode` is
// Result<T>(const Json&); `on_unreadable(key, error)` runs on the watch's thread.
template <typename T, typename Item, typename Decode, typename Unreadable>
WatchThread::Deliver deliver_decoded(Mailbox<Item>& mailbox, Decode decode, Unreadable on_unreadable) {
  return [&mailbox, decode, on_unreadable](StoreEvent<Json> event, std::stop_token stop) {
    std::optional<StoreEvent<T>> decoded = convert<T>(std::move(event), decode, on_unreadable);
    return !decoded || mailbox.push(Item(std::move(*decoded)), stop);
  };
}

}  // namespace rekindle::op
