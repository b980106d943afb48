// What every rank of the job has registered, as far as this sidecar knows: its own ranks', and what
// the other pods reported. Ranks of one layout share it. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "worker-sidecar/checkpoint/plan.h"
#include "worker-sidecar/checkpoint/shards.h"
#include "worker-sidecar/coordination/config.h"
#include "worker-sidecar/protocol/peer_message.h"

namespace rekindle::sidecar {

// Groups with the layouts that they point into.
struct JobShards {
  std::vector<std::shared_ptr<const Layout>> layouts;  // by rank
  std::vector<ReplicaGroup> groups;
  std::vector<std::vector<std::uint32_t>> sharers;  // by group: ranks_with_shares
};

class JobLayouts {
 public:
  explicit JobLayouts(const CoordinationConfig& config) : config_(config) {}

  // A rank of this pod said so.
  void set(std::uint32_t rank, const Layout& layout);

  // What pod `from` said. Of its own ranks it is believed; of others only while nothing is known of
  // them, or when it leads the start. Also of ranks of this pod: one that died while this
  // sidecar was away cannot say any more what it held, and the others know.
  void adopt(std::uint32_t from, const std::vector<HeldLayout>& layouts, bool leads = false);

  // The layout itself is here, not only its hash.
  bool knows(std::uint32_t rank) const;
  bool knows_all() const;

  // The hash that all ranks from `first` on share, or empty.
  std::string common_hash(std::uint32_t first, std::uint32_t count) const;
  bool all_alike() const { return !common_hash(0, config_.world_size()).empty(); }

  // Both are known, and are one layout.
  bool alike(std::uint32_t one, std::uint32_t other) const;

  // Layouts that are here, without doubles.
  std::vector<std::string> hashes() const;
  // Of all that is known; equal for two sidecars that know the same.
  std::string job_hash() const;

  // The leader's job_hash came: where it is that of a job whose ranks all hold what ours do, they
  // are known from here on.
  void learn_if_alike(const std::string& job_hash);

  // What is known of `count` ranks from `first` on, a layout an element, tensors left out where
  // `receiver_has` names the hash.
  std::vector<HeldLayout> list(std::uint32_t first, std::uint32_t count,
                               const std::vector<std::string>& receiver_has) const;

  // Groups of all ranks of the job, or why there are none: layouts that cannot be one job, or a
  // rank of which it is not known what it held. Kept until something changes.
  Result<std::shared_ptr<const JobShards>> shards() const;

 private:
  void note(std::uint32_t rank, const std::string& hash);
  std::string keep(const Layout& layout);
  void forget_unused();

  const CoordinationConfig& config_;
  std::map<std::uint32_t, std::string> hash_of_rank_;
  std::map<std::string, std::shared_ptr<const Layout>> layouts_;
  mutable std::optional<Result<std::shared_ptr<const JobShards>>> shards_;
};

// Each element with tensors by itself, since what one rank holds fits a message and what several
// hold need not; those without together in the first.
std::vector<std::vector<HeldLayout>> one_layout_each(std::vector<HeldLayout> layouts);

}  // namespace rekindle::sidecar
