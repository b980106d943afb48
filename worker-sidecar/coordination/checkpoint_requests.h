// Requests of this pod's ranks for a checkpoint (rk_checkpoint), until each is answered: a rank
// that closes its session waits for that, so what it asked for last is durable or known not to be.
// Pure.
//
// Guarantees: each request is answered once, before its time is over; "durable" only for a step
// that is at least the one that the rank had committed when it asked.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "common/base/instant.h"
#include "worker-sidecar/coordination/outcome.h"
#include "worker-sidecar/coordination/output.h"

namespace rekindle::sidecar {

class CheckpointRequests {
 public:
  // A second request of a rank replaces its first, which is of an older step and answered with it.
  void add(std::uint32_t rank, std::uint64_t step, Instant until) { waiting_[rank] = {.step = step, .until = until}; }

  // A rank that is over waits for nothing.
  void forget(std::uint32_t rank) { waiting_.erase(rank); }

  bool empty() const { return waiting_.empty(); }

  // Answers those that this outcome covers, or after which no other breakpoint follows. What stays
  // asked for a newer step than the one that is durable, while training goes on: the caller raises
  // a breakpoint for it, once.
  void settle(const Outcome& outcome, CoordinationOutputs& out);

  // With why there will be no checkpoint.
  void refuse(std::uint32_t rank, const std::string& why, CoordinationOutputs& out);

  void give_up_overdue(Instant now, CoordinationOutputs& out);
  // Nothing has run for so long.
  void pass_over(Duration frozen);
  std::optional<Instant> next_wake() const;

 private:
  struct Request {
    std::uint64_t step = 0;
    Instant until;
    // a breakpoint has ended with an older step
    bool missed = false;
  };

  std::map<std::uint32_t, Request> waiting_;  // by rank
};

// What a rank is told that asked when `step` was its last committed one; none while the outcome
// says nothing about that step and training goes on.
std::optional<CheckpointDoneMessage> answer_of(const Outcome& outcome, std::uint64_t step);

}  // namespace rekindle::sidecar
