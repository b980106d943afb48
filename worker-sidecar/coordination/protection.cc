#include "worker-sidecar/coordination/protection.h"

#include <algorithm>

#include "common/base/assert.h"
#include "common/base/format.h"
#include "worker-sidecar/checkpoint/shards.h"

namespace rekindle::sidecar {

Protection protection_of(const std::vector<StepGroup>& groups, std::uint64_t shadow_every) {
  RK_ASSERT(!groups.empty());
  std::vector<std::uint32_t> alone;
  for (const StepGroup& group : groups) {
    if (group.ranks.size() == 1) alone.push_back(group.ranks.front());
  }
  std::sort(alone.begin(), alone.end());
  alone.erase(std::unique(alone.begin(), alone.end()), alone.end());
  const std::string only = alone.empty() ? ""
                                         : format("only {} {} of the state", describe_ranks(alone),
                                                  alone.size() == 1 ? "holds its part" : "hold their parts");

  if (shadow_every == 1) {
    if (alone.empty() && groups.size() == 1)
      return {true, "every rank holds the whole state, and each step is kept in shadows too"};
    return {true,
            "each step is kept in shadows; the loss of a whole pod, its shadows included, can still cost the steps "
            "since the newest checkpoint" +
                (only.empty() ? "" : ": " + only)};
  }
  if (alone.empty() && groups.size() == 1) return {true, "every rank holds the whole state: one that lives is enough"};
  const std::string cost = shadow_every == 0
                               ? "all steps since the newest checkpoint; a shadow of each step would prevent that"
                               : format("up to {} steps; a shadow of each step would prevent that", shadow_every);
  if (!alone.empty()) return {false, format("{}: the death of one of them costs {}", only, cost)};
  return {
      false,
      format(
          "each part of the state has several holders, but a death between the commits of two ranks can leave one part "
          "at a step that another has not reached, which costs {}",
          cost)};
}

}  // namespace rekindle::sidecar
