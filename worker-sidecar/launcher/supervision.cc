#include "worker-sidecar/launcher/supervision.h"

#include <csignal>

#include "common/contract/exit_codes.h"

namespace rekindle::launcher {

Supervision::Supervision(SupervisionSettings settings) : settings_(std::move(settings)), running_(settings_.ranks) {}

std::vector<SupervisionAction> Supervision::advance(const SupervisionEvent& event, Instant now) {
  Actions actions;
  if (state_ != State::over) std::visit([&](const auto& what) { on(what, now, actions); }, event);
  return actions;
}

void Supervision::on(const RankEnded& event, Instant now, Actions& actions) {
  if (running_.erase(event.rank) == 0) return;
  if (event.exit_code != 0 && !first_failure_) {
    first_failure_ = event.exit_code;
    if (state_ == State::running) {
      // With no rank left there may still be something to save: the state of the ranks outlives
      // them.
      become_saving(now);
      actions.emplace_back(SaveBecauseRankEnded{event.rank, event.exit_code});
      return;
    }
  }
  // While a breakpoint is being written the life is not over even when no rank runs any more.
  if (running_.empty() && state_ != State::saving) become_over(actions);
}

void Supervision::on(const SaveEnded&, Instant now, Actions& actions) {
  if (state_ != State::saving) return;
  if (running_.empty()) return become_over(actions);
  state_ = State::draining;
  until_ = now + kDrain;
}

void Supervision::on(const TerminateRequested&, Instant now, Actions& actions) {
  if (terminated_ || !settings_.saves_on_terminate) {
    // A second signal: the user does not wait for the save.
    terminated_ = true;
    if (state_ != State::ending && state_ != State::killing) become_ending(now, actions);
    return;
  }
  terminated_ = true;
  if (state_ != State::running) return;  // a breakpoint is already on its way
  become_saving(now);
  actions.emplace_back(SaveBecauseTerminated{});
}

void Supervision::on(const TimePassed&, Instant now, Actions& actions) {
  if (!until_ || now < *until_) return;
  switch (state_) {
    case State::saving:
      // Its sidecar was frozen with it, and goes on with the breakpoint.
      if (now - *until_ >= kFrozenAfter) return become_saving(now);
      if (running_.empty()) return become_over(actions);
      return become_ending(now, actions);
    case State::draining: return become_ending(now, actions);
    case State::ending:
      state_ = State::killing;
      until_ = now + kTerminate;
      actions.emplace_back(SignalRanks{SIGKILL});
      return;
    // processes that the kernel cannot end (stuck in a device)
    case State::killing: return become_over(actions);
    case State::running:
    case State::over: return;
  }
}

void Supervision::become_saving(Instant now) {
  state_ = State::saving;
  until_ = now + settings_.deadline;
}

void Supervision::become_ending(Instant now, Actions& actions) {
  if (running_.empty()) return become_over(actions);
  state_ = State::ending;
  until_ = now + kTerminate;
  actions.emplace_back(SignalRanks{SIGTERM});
}

void Supervision::become_over(Actions& actions) {
  state_ = State::over;
  until_.reset();
  const int code = terminated_ ? kStoppedExitCode : first_failure_.value_or(0);
  actions.emplace_back(LifeOver{.exit_code = code, .terminated = terminated_});
}

}  // namespace rekindle::launcher
