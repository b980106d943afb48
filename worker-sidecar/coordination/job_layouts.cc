#include "worker-sidecar/coordination/job_layouts.h"

#include <algorithm>
#include <set>

#include "common/base/format.h"
#include "worker-sidecar/checkpoint/hash.h"

namespace rekindle::sidecar {
namespace {

std::string job_hash_of(const std::map<std::uint32_t, std::string>& hash_of_rank) {
  std::string text;
  for (const auto& [rank, hash] : hash_of_rank) text += format("{}:{};", rank, hash);
  return text.empty() ? "" : hash_of(text);
}

}  // namespace

std::string JobLayouts::keep(const Layout& layout) {
  std::string hash = layout_hash(layout);
  auto& place = layouts_[hash];
  if (!place) place = std::make_shared<const Layout>(layout);
  return hash;
}

void JobLayouts::note(std::uint32_t rank, const std::string& hash) {
  std::string& known = hash_of_rank_[rank];
  if (known == hash) return;
  known = hash;
  shards_.reset();
}

// A program that registers more and more leaves no trail of layouts behind.
void JobLayouts::forget_unused() {
  std::set<std::string_view> used;
  for (const auto& [rank, hash] : hash_of_rank_) used.insert(hash);
  std::erase_if(layouts_, [&](const auto& entry) { return !used.contains(entry.first); });
}

void JobLayouts::set(std::uint32_t rank, const Layout& layout) {
  note(rank, keep(layout));
  shards_.reset();
  forget_unused();
}

void JobLayouts::adopt(std::uint32_t from, const std::vector<HeldLayout>& layouts, bool leads) {
  for (const HeldLayout& held : layouts) {
    const std::size_t before = layouts_.size();
    const std::string hash = held.layout ? keep(*held.layout) : held.hash;
    if (layouts_.size() != before) shards_.reset();
    for (const std::uint32_t rank : held.ranks) {
      if (rank >= config_.world_size()) continue;
      const bool believed = config_.pod_of(rank) == from || (leads && !config_.hosts(rank));
      if (believed || !hash_of_rank_.contains(rank)) note(rank, hash);
    }
  }
  forget_unused();
}

bool JobLayouts::knows(std::uint32_t rank) const {
  const auto found = hash_of_rank_.find(rank);
  return found != hash_of_rank_.end() && layouts_.contains(found->second);
}

bool JobLayouts::knows_all() const {
  if (hash_of_rank_.size() != config_.world_size()) return false;
  return std::all_of(hash_of_rank_.begin(), hash_of_rank_.end(),
                     [&](const auto& entry) { return layouts_.contains(entry.second); });
}

std::string JobLayouts::common_hash(std::uint32_t first, std::uint32_t count) const {
  std::string common;
  for (std::uint32_t rank = first; rank < first + count; ++rank) {
    const auto found = hash_of_rank_.find(rank);
    if (found == hash_of_rank_.end() || (rank != first && found->second != common)) return {};
    common = found->second;
  }
  return common;
}

bool JobLayouts::alike(std::uint32_t one, std::uint32_t other) const {
  const auto found = hash_of_rank_.find(one);
  const auto twin = hash_of_rank_.find(other);
  return found != hash_of_rank_.end() && twin != hash_of_rank_.end() && found->second == twin->second;
}

std::vector<std::string> JobLayouts::hashes() const {
  std::vector<std::string> hashes;
  for (const auto& [hash, layout] : layouts_) hashes.push_back(hash);
  return hashes;
}

std::string JobLayouts::job_hash() const {
  std::map<std::uint32_t, std::string> known;
  for (const auto& [rank, hash] : hash_of_rank_) {
    if (layouts_.contains(hash)) known.emplace(rank, hash);
  }
  return job_hash_of(known);
}

void JobLayouts::learn_if_alike(const std::string& job_hash) {
  // A rank of ours may have died before it could say; the others' layout has to be that of all, or
  // the hash is another.
  std::string ours;
  for (auto known = hash_of_rank_.lower_bound(config_.first_rank());
       known != hash_of_rank_.end() && config_.hosts(known->first); ++known) {
    if (!ours.empty() && known->second != ours) return;
    ours = known->second;
  }
  if (ours.empty()) return;
  std::map<std::uint32_t, std::string> alike;
  for (std::uint32_t rank = 0; rank < config_.world_size(); ++rank) alike.emplace(rank, ours);
  if (job_hash_of(alike) != job_hash) return;
  hash_of_rank_ = std::move(alike);
  shards_.reset();
  forget_unused();
}

std::vector<HeldLayout> JobLayouts::list(std::uint32_t first, std::uint32_t count,
                                         const std::vector<std::string>& receiver_has) const {
  std::map<std::string, HeldLayout> by_hash;
  for (auto entry = hash_of_rank_.lower_bound(first); entry != hash_of_rank_.end() && entry->first < first + count;
       ++entry) {
    if (layouts_.contains(entry->second)) by_hash[entry->second].ranks.push_back(entry->first);
  }
  const std::set<std::string_view> has(receiver_has.begin(), receiver_has.end());
  std::vector<HeldLayout> layouts;
  for (auto& [hash, held] : by_hash) {
    held.hash = hash;
    if (!has.contains(hash)) held.layout = *layouts_.at(hash);
    layouts.push_back(std::move(held));
  }
  return layouts;
}

Result<std::shared_ptr<const JobShards>> JobLayouts::shards() const {
  if (shards_) return *shards_;
  const auto make = [this]() -> Result<std::shared_ptr<const JobShards>> {
    auto shards = std::make_shared<JobShards>();
    shards->layouts.resize(config_.world_size());
    std::vector<std::uint32_t> unknown;
    for (std::uint32_t rank = 0; rank < config_.world_size(); ++rank) {
      if (knows(rank)) shards->layouts[rank] = layouts_.at(hash_of_rank_.at(rank));
      else unknown.push_back(rank);
    }
    if (!unknown.empty()) {
      // Taking them to hold the same as the others would publish checkpoints without the tensors of
      // a lost pipeline stage.
      return fail(ErrorCode::unavailable,
                  format("no sidecar that can be reached knows what {} had registered", describe_ranks(unknown)));
    }
    std::vector<RankLayout> ranks;
    for (std::uint32_t rank = 0; rank < config_.world_size(); ++rank)
      ranks.push_back({rank, shards->layouts[rank].get()});
    Result<std::vector<ReplicaGroup>> groups = group_shards(std::move(ranks));
    if (!groups) return std::unexpected(groups.error());
    shards->groups = std::move(*groups);
    shards->sharers = ranks_with_shares(shards->groups);
    return shards;
  };
  shards_ = make();
  return *shards_;
}

std::vector<std::vector<HeldLayout>> one_layout_each(std::vector<HeldLayout> layouts) {
  std::vector<std::vector<HeldLayout>> messages(1);
  for (HeldLayout& held : layouts) {
    if (held.layout && !messages.back().empty()) messages.emplace_back();
    messages.back().push_back(std::move(held));
  }
  return messages;
}

}  // namespace rekindle::sidecar
