#include "worker-sidecar/launcher/run_loop.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <vector>

#include "common/system/clock.h"

namespace rekindle::launcher {
namespace {

// How often a queue that has no room for what ranks print is looked at again.
constexpr Duration kRoomCheck = std::chrono::milliseconds(10);

}  // namespace

LifeReport run_life(Children& children, Supervision& supervision, const SignalWatcher& signals, const Waker& save_ended,
                    Saver& saver) {
  LifeReport report;
  const auto advance = [&](const SupervisionEvent& event) {
    for (const SupervisionAction& action : supervision.advance(event, monotonic_now())) {
      if (std::holds_alternative<SaveBecauseRankEnded>(action) || std::holds_alternative<SaveBecauseTerminated>(action))
        saver.save();
      if (const auto* signal = std::get_if<SignalRanks>(&action)) children.signal_all(signal->signal);
      if (const auto* over = std::get_if<LifeOver>(&action)) report.over = *over;
    }
  };
  const auto reap = [&] {
    for (const ChildEnd& end : children.reap()) {
      if (end.exit_code != 0 && !report.first_failure) report.first_failure = end;
      // The sidecar first: with several deaths at once it should know of all that are known before
      // it is requested to save.
      saver.rank_ended(end);
      advance(RankEnded{end.rank, end.exit_code});
    }
  };

  while (!supervision.over()) {
    std::vector<pollfd> waiting{{.fd = signals.descriptor(), .events = POLLIN, .revents = 0},
                                {.fd = save_ended.descriptor(), .events = POLLIN, .revents = 0}};
    for (const int descriptor : children.output_descriptors())
      waiting.push_back({.fd = descriptor, .events = POLLIN, .revents = 0});
    timespec timeout{};
    std::optional<Instant> wake_at = supervision.wake_at();
    if (children.output_waits()) wake_at = std::min(wake_at.value_or(Instant::max()), monotonic_now() + kRoomCheck);
    if (wake_at) timeout = timespec_until(*wake_at, monotonic_now());
    const int ready = ::ppoll(waiting.data(), waiting.size(), wake_at ? &timeout : nullptr, nullptr);
    if (ready < 0 && errno != EINTR) break;
    for (std::size_t i = 2; i < waiting.size(); ++i) {
      if (waiting[i].revents != 0) children.copy_output(waiting[i].fd);
    }
    // What a rank printed before it ended is shown before anything is said about its end.
    while (const std::optional<int> signal = signals.take()) {
      if (*signal == SIGCHLD) {
        reap();
      } else if (*signal == SIGUSR1) {
        saver.checkpoint_now();
      } else {
        advance(TerminateRequested{});
      }
    }
    if (save_ended.take()) advance(SaveEnded{});
    advance(TimePassed{});
  }
  children.drain_output();
  return report;
}

}  // namespace rekindle::launcher
