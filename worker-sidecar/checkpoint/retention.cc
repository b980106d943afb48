#include "worker-sidecar/checkpoint/retention.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <utility>

#include "common/base/format.h"
#include "common/contract/wall_time.h"

namespace rekindle {
namespace {

void remove_all_but_newest(const std::vector<Candidate>& usable, std::size_t keep, std::vector<Removal>& removals) {
  for (std::size_t i = keep; i < usable.size(); ++i)
    removals.push_back({usable[i].path, format("older than the {} newest", keep)});
}

// From the oldest on: one stays, and the next that stays is at least so much younger. The newest
// always stays. One that was made while the clock was ahead does not reach those after it.
void remove_all_but_one_each(const std::vector<Candidate>& usable, std::chrono::seconds apart,
                             std::vector<Removal>& removals) {
  std::optional<WallTime> last_kept;
  for (std::size_t i = usable.size(); i-- > 1;) {
    const std::optional<WallTime> made = parse_wall_time(usable[i].sealed.manifest.time);
    if (made && last_kept && *made >= *last_kept && *made - *last_kept < apart) {
      removals.push_back({usable[i].path, format("another one stays for these {} s", apart.count())});
    } else if (made) {
      last_kept = made;
    }
  }
}

}  // namespace

std::vector<Removal> plan_retention(const FolderScan& scan, const JobIdentity& job, const RetentionPolicy& policy) {
  const CandidateOrder order = order_candidates(scan, job);
  if (order.usable.empty() || newest_attempt(scan) > policy.own_attempt) return {};

  std::vector<Removal> removals;
  if (policy.keep_one_each.count() > 0) remove_all_but_one_each(order.usable, policy.keep_one_each, removals);
  else remove_all_but_newest(order.usable, std::max<std::size_t>(policy.keep, 1), removals);
  const auto newest = std::pair(order.usable.front().attempt, order.usable.front().step);
  std::map<std::string_view, const FoundFolder*> folders;
  for (const FoundFolder& folder : scan.folders) folders.emplace(folder.path, &folder);
  for (const RefusedFolder& refused : order.refused) {
    const FoundFolder& folder = *folders.at(refused.path);
    // A live writer of our own attempt may still be in an incomplete one; of earlier attempts
    // no writer lives.
    if (folder.name.attempt >= policy.own_attempt || std::pair(folder.name.attempt, folder.name.step) >= newest)
      continue;
    if (!folder.manifest) {
      removals.push_back({refused.path, format("the save of attempt {} did not finish", folder.name.attempt)});
    } else if (refused.complete && check_job((*folder.manifest)->manifest, job) &&
               (*folder.manifest)->manifest.attempt == folder.name.attempt &&
               (*folder.manifest)->manifest.step == folder.name.step) {
      removals.push_back({refused.path, refused.reason});
    }
  }
  return removals;
}

}  // namespace rekindle
