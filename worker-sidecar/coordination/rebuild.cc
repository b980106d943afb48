#include "worker-sidecar/coordination/rebuild.h"

#include <algorithm>

#include "common/base/format.h"

namespace rekindle::sidecar {
namespace {

std::string rank_text(const CollectedRank& rank) { return format("rank {}", rank.rank); }

// Dirty just now, and will not be beyond the step when it comes to a gate, where it finds the
// order: one that loads for an earlier order, one that makes an update that does not lead further.
bool comes_along(const CollectedRank& rank, std::uint64_t step) {
  return rank.phase == RankPhase::restoring || (rank.phase == RankPhase::updating && rank.step < step);
}

bool is_at(const CollectedRank& rank, std::uint64_t step) { return rank.clean && rank.step == step; }

}  // namespace

bool only_communicators_failed(const std::set<TriggerCause>& causes) {
  return std::ranges::all_of(causes, [](TriggerCause cause) {
    return cause == TriggerCause::collective_failed || cause == TriggerCause::user || cause == TriggerCause::sidecar;
  });
}

bool rebuild_orders_differ(const std::vector<CollectedRank>& ranks) {
  return std::ranges::any_of(
      ranks, [&](const CollectedRank& rank) { return rank.rebuild_term != ranks.front().rebuild_term; });
}

std::string why_not_rebuild(const RebuildInput& input) {
  if (input.ranks.size() != input.world_size) return "not every rank has answered";
  for (const CollectedRank& rank : input.ranks) {
    if (!rank.alive || rank.phase == RankPhase::finished) return rank_text(rank) + " has ended";
  }
  for (const CollectedRank& rank : input.ranks) {
    if (!rank.rebuilds) return rank_text(rank) + " cannot make its communicators anew (RK_REBUILDS)";
    if (!rank.clean && !comes_along(rank, input.step))
      return rank_text(rank) + " stopped in the middle of an update or has other weights in its memory";
    if (rank.step > input.step)
      return rank_text(rank) + format(" is beyond step {}, at step {}", input.step, rank.step);
  }
  for (const CollectedRank& rank : input.ranks) {
    if (is_at(rank, input.step)) continue;
    const bool has_twin = std::ranges::any_of(input.ranks, [&](const CollectedRank& other) {
      return is_at(other, input.step) && input.alike(rank.rank, other.rank);
    });
    if (!has_twin)
      return rank_text(rank) + format(" is behind step {} and no rank there has registered the same", input.step);
  }
  return {};
}

void RebuildCount::note(const CommittedMessage& committed) {
  if (committed.after != AfterBreakpoint::rebuild || committed.term <= term_) return;
  count_ = at(committed.step) + 1;
  step_ = committed.step;
  term_ = committed.term;
}

}  // namespace rekindle::sidecar
