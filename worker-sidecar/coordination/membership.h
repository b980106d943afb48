// Which pods of the job can be reached, as this sidecar sees it: connections, and what the
// operator's table says. Pure.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "worker-sidecar/coordination/config.h"
#include "worker-sidecar/coordination/event.h"

namespace rekindle::sidecar {

class Membership {
 public:
  explicit Membership(const CoordinationConfig& config) : config_(config) {}

  void connect(std::uint32_t ordinal) {
    if (ordinal != config_.ordinal && ordinal < config_.pods) connected_.insert(ordinal);
  }
  void lose(std::uint32_t ordinal) { connected_.erase(ordinal); }
  void see(const PeerTableSeen& table) {
    table_.clear();
    for (const PeerTableEntry& pod : table.pods) table_[pod.ordinal] = pod.stale;
    table_seen_ = true;
    start_allowed_ = start_allowed_ || table.start_allowed;
  }
  void finish(std::uint32_t ordinal) { finished_.insert(ordinal); }

  // Itself always can.
  bool reachable(std::uint32_t ordinal) const { return ordinal == config_.ordinal || connected_.contains(ordinal); }

  // Itself and every pod that is connected, lowest first.
  std::vector<std::uint32_t> reachable_pods() const {
    std::set<std::uint32_t> pods = connected_;
    pods.insert(config_.ordinal);
    return {pods.begin(), pods.end()};
  }
  std::uint32_t lowest_reachable() const {
    return connected_.empty() ? config_.ordinal : std::min(config_.ordinal, *connected_.begin());
  }
  bool all_reachable() const { return connected_.size() + 1 == config_.pods; }

  // The operator knows that this pod has no future: deleted, being deleted, or over.
  bool gone_or_stale(std::uint32_t ordinal) const {
    if (!table_seen_) return false;
    const auto found = table_.find(ordinal);
    return found == table_.end() || found->second;
  }
  // All its ranks said that they have finished.
  bool finished(std::uint32_t ordinal) const { return finished_.contains(ordinal); }

  // Once given it stays, so that an operator that is away stops no job.
  bool start_allowed() const { return start_allowed_ || !config_.wait_for_go; }

 private:
  const CoordinationConfig& config_;
  std::set<std::uint32_t> connected_;  // without itself
  std::map<std::uint32_t, bool> table_;
  std::set<std::uint32_t> finished_;
  bool table_seen_ = false;
  bool start_allowed_ = false;
};

}  // namespace rekindle::sidecar
