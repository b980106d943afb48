#include "worker-sidecar/checkpoint/retention.h"

#include <algorithm>
#include <map>
#include <utility>

namespace rekindle {

std::vector<Removal> plan_retention(const FolderScan& scan, const JobIdentity& job, const RetentionPolicy& policy) {
  const CandidateOrder order = order_candidates(scan, job);
  if (order.usable.empty() || newest_attempt(scan) > policy.own_attempt) return {};

  const std::size_t keep = std::max<std::size_t>(policy.keep, 1);
  std::vector<Removal> removals;
  for (std::size_t i = keep; i < order.usable.size(); ++i) {
    removals.push_back({order.usable[i].path, "older than the " + std::to_string(keep) + " newest"});
  }
  const auto newest = std::pair(order.usable.front().attempt, order.usable.front().step);
  std::map<std::string_view, const FoundFolder*> folders;
  for (const FoundFolder& folder : scan.folders) folders.emplace(folder.path, &folder);
  for (const RefusedFolder& refused : order.refused) {
    const FoundFolder& folder = *folders.at(refused.path);
    // A live writer of our own attempt may still be in an incomplete one; of earlier attempts nobody lives.
    if (folder.name.attempt >= policy.own_attempt || std::pair(folder.name.attempt, folder.name.step) >= newest) continue;
    if (!folder.manifest) {
      removals.push_back({refused.path, "the save of attempt " + std::to_string(folder.name.attempt) + " did not finish"});
    } else if (refused.complete && check_job((*folder.manifest)->manifest, job) &&
               (*folder.manifest)->manifest.attempt == folder.name.attempt && (*folder.manifest)->manifest.step == folder.name.step) {
      removals.push_back({refused.path, refused.reason});
    }
  }
  return removals;
}

}  // namespace rekindle
