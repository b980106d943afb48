// What is known of the ranks of this pod. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "worker-sidecar/coordination/config.h"
#include "worker-sidecar/protocol/control_block.h"
#include "worker-sidecar/protocol/local_message.h"
#include "worker-sidecar/protocol/peer_message.h"

namespace rekindle::sidecar {

struct LocalRank {
  bool alive = false;  // connected, and its process has not ended
  bool finished = false;
  RankStatus word;
  std::uint32_t attempt = 0;  // that it said in its hello
  std::optional<RegisteredMessage> registered;
  std::optional<LoadedMessage> loaded;  // answer to the newest offer
  std::vector<std::uint64_t> shadow_steps;
  bool rebuilds = false;           // it can make its communicators anew in the process
  std::uint64_t rebuild_term = 0;  // of the newest order to do so
};

class LocalRanks {
 public:
  explicit LocalRanks(const CoordinationConfig& config) : config_(config) {}

  LocalRank* find(std::uint32_t rank) {
    const auto found = ranks_.find(rank);
    return found == ranks_.end() ? nullptr : &found->second;
  }
  LocalRank& connect(std::uint32_t rank) { return ranks_[rank]; }
  const std::map<std::uint32_t, LocalRank>& all() const { return ranks_; }

  bool is_live(std::uint32_t rank) const {
    const auto found = ranks_.find(rank);
    return found != ranks_.end() && found->second.alive && !found->second.finished;
  }
  std::vector<std::uint32_t> live() const {
    std::vector<std::uint32_t> ranks;
    for (const auto& [number, rank] : ranks_) {
      if (rank.alive && !rank.finished) ranks.push_back(number);
    }
    return ranks;
  }
  bool all_connected() const {
    for (std::uint32_t i = 0; i < config_.ranks_per_pod; ++i) {
      const auto found = ranks_.find(config_.first_rank() + i);
      if (found == ranks_.end() || !found->second.alive) return false;
    }
    return true;
  }
  // Of each rank it is known whether it lives.
  bool all_known() const { return ranks_.size() == config_.ranks_per_pod; }
  bool all_finished() const {
    if (ranks_.size() < config_.ranks_per_pod) return false;
    for (const auto& [number, rank] : ranks_) {
      if (!rank.finished) return false;
    }
    return true;
  }
  bool has_states() const {
    for (const auto& [number, rank] : ranks_) {
      if (rank.registered && !rank.registered->states.empty()) return true;
    }
    return false;
  }
  std::vector<CollectedRank> collected() const {
    std::vector<CollectedRank> list;
    for (const auto& [number, rank] : ranks_) {
      list.push_back({.rank = number,
                      .alive = rank.alive,
                      .clean = rank.alive && is_clean(rank.word),
                      .step = rank.word.step,
                      .phase = rank.finished ? RankPhase::finished : rank.word.phase,
                      .shadow_steps = rank.shadow_steps,
                      .rebuilds = rank.rebuilds,
                      .rebuild_term = rank.rebuild_term});
    }
    return list;
  }

 private:
  const CoordinationConfig& config_;
  std::map<std::uint32_t, LocalRank> ranks_;
};

}  // namespace rekindle::sidecar
