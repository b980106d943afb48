// What the launcher does about its children, as a machine: events in, actions out, time an
// argument. It knows no process and no socket. One machine is one life of the ranks; a restart in
// place begins a new one.
//
// Expected flow: running, and all end with 0. Otherwise: a rank ends by itself or a signal comes ->
// saving (the sidecar writes the breakpoint) -> draining (the ranks leave by themselves, as they
// were ordered) -> ending (SIGTERM) -> killing (SIGKILL) -> over. Guarantees: over is reached
// within deadline + kDrain + kTerminate of the first event that is not a good end, whatever the
// children and the sidecar do, frozen time left out; the exit code is that of the rank that failed
// first.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <variant>
#include <vector>

#include "common/base/instant.h"
#include "common/contract/deadlines.h"

namespace rekindle::launcher {

// The state is safe by then; a rank that sits in a collective whose peer is dead would stay for
// ever.
inline constexpr Duration kDrain = std::chrono::milliseconds(500);
inline constexpr Duration kTerminate = std::chrono::seconds(5);
// Woken this much later than asked, everything here was frozen: that was no time to save in.
inline constexpr Duration kFrozenAfter = std::chrono::seconds(1);

struct SupervisionSettings {
  std::set<std::uint32_t> ranks;
  Duration deadline = kBreakpointDeadlineDefault;
  // In a pod the hook has saved before SIGTERM arrives, so there is nothing to request.
  bool saves_on_terminate = true;
};

// Events.
struct RankEnded {
  std::uint32_t rank = 0;
  // 128 + signal when a signal ended it
  int exit_code = 0;
};
struct SaveEnded {};           // durable, failed, or there was nothing to save
struct TerminateRequested {};  // SIGTERM or SIGINT to the launcher
struct TimePassed {};
using SupervisionEvent = std::variant<RankEnded, SaveEnded, TerminateRequested, TimePassed>;

// Actions.
struct SaveBecauseRankEnded {
  std::uint32_t rank = 0;
  int exit_code = 0;
};
struct SaveBecauseTerminated {};
struct SignalRanks {
  int signal = 0;
};
struct LifeOver {
  int exit_code = 0;
  // the launcher was told to end: no restart
  bool terminated = false;
};
using SupervisionAction = std::variant<SaveBecauseRankEnded, SaveBecauseTerminated, SignalRanks, LifeOver>;

class Supervision {
 public:
  explicit Supervision(SupervisionSettings settings);

  std::vector<SupervisionAction> advance(const SupervisionEvent& event, Instant now);
  // When TimePassed has to come at the latest.
  std::optional<Instant> wake_at() const { return until_; }
  bool over() const { return state_ == State::over; }

 private:
  enum class State { running, saving, draining, ending, killing, over };
  using Actions = std::vector<SupervisionAction>;

  void on(const RankEnded& event, Instant now, Actions& actions);
  void on(const SaveEnded& event, Instant now, Actions& actions);
  void on(const TerminateRequested& event, Instant now, Actions& actions);
  void on(const TimePassed& event, Instant now, Actions& actions);
  void become_saving(Instant now);
  void become_ending(Instant now, Actions& actions);
  void become_over(Actions& actions);

  SupervisionSettings settings_;
  State state_ = State::running;
  std::set<std::uint32_t> running_;
  std::optional<int> first_failure_;
  bool terminated_ = false;
  std::optional<Instant> until_;
};

}  // namespace rekindle::launcher
