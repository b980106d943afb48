#include "worker-sidecar/coordination/checkpoint_requests.h"

#include <algorithm>
#include <utility>

#include "common/base/format.h"

namespace rekindle::sidecar {

std::optional<CheckpointDoneMessage> answer_of(const Outcome& outcome, std::uint64_t step) {
  CheckpointDoneMessage done{.requested = step};
  if (const auto* failed = std::get_if<FailedMessage>(&outcome)) {
    done.message = failed->error.message;
    return done;
  }
  const auto& committed = std::get<CommittedMessage>(outcome);
  done.step = committed.step;
  done.path = committed.path;
  if (committed.path.empty()) {
    done.outcome = HookOutcome::nothing_to_save;
    done.message = "there is nothing to save: no step has been made since the start, or every rank has finished";
  } else if (committed.step >= step) {
    done.outcome = HookOutcome::durable;
    done.message = format("step {} is durable", committed.step);
  } else if (goes_on(committed.after)) {
    return std::nullopt;
  } else {
    done.message = format("the job stops with the checkpoint of step {}", committed.step);
  }
  return done;
}

void CheckpointRequests::settle(const Outcome& outcome, CoordinationOutputs& out) {
  for (auto entry = waiting_.begin(); entry != waiting_.end();) {
    auto& [rank, request] = *entry;
    std::optional<CheckpointDoneMessage> done = answer_of(outcome, request.step);
    if (!done && !std::exchange(request.missed, true)) {
      ++entry;
      continue;
    }
    if (!done) {
      // The one after it would be no newer either: some rank makes no step any more.
      const std::uint64_t durable = std::get<CommittedMessage>(outcome).step;
      done = {.requested = request.step,
              .step = durable,
              .message = format("step {} is durable; not all ranks have made step {}", durable, request.step)};
    }
    out.push_back(AnswerCheckpoint{rank, *std::move(done)});
    entry = waiting_.erase(entry);
  }
}

void CheckpointRequests::refuse(std::uint32_t rank, const std::string& why, CoordinationOutputs& out) {
  const auto request = waiting_.extract(rank);
  if (request) out.push_back(AnswerCheckpoint{rank, {.requested = request.mapped().step, .message = why}});
}

void CheckpointRequests::give_up_overdue(Instant now, CoordinationOutputs& out) {
  std::erase_if(waiting_, [&](const auto& entry) {
    const auto& [rank, request] = entry;
    if (now < request.until) return false;
    out.push_back(AnswerCheckpoint{rank,
                                   {.requested = request.step,
                                    .message = "the checkpoint is not durable yet and its time is over; raise the "
                                               "job's deadline or give the volume more bandwidth"}});
    return true;
  });
}

void CheckpointRequests::pass_over(Duration frozen) {
  for (auto& [rank, request] : waiting_) request.until += frozen;
}

std::optional<Instant> CheckpointRequests::next_wake() const {
  std::optional<Instant> wake;
  for (const auto& [rank, request] : waiting_) wake = wake ? std::min(*wake, request.until) : request.until;
  return wake;
}

}  // namespace rekindle::sidecar
