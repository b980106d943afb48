#include "worker-sidecar/coordination/writing_round.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "worker-sidecar/checkpoint/written.h"
#include "worker-sidecar/coordination/message_parts.h"

namespace rekindle::sidecar {

void WritingRound::clear() {
  path_.clear();
  writers_.clear();
  pods_.clear();
  files_.clear();
  whole_.clear();
}

std::string WritingRound::abandon() {
  std::string path = std::exchange(path_, {});
  clear();
  return path;
}

void WritingRound::begin(std::uint64_t term, std::uint64_t step, std::string path, std::vector<WriterPlan> writers,
                         std::set<std::uint32_t> pods) {
  clear();
  term_ = term;
  step_ = step;
  path_ = std::move(path);
  writers_ = std::move(writers);
  pods_ = std::move(pods);
}

void WritingRound::send_order(std::uint32_t pod, CoordinationOutputs& out) const {
  AssignMessage order{.term = term_, .step = step_, .path = path_, .writers = {}};
  std::ranges::copy_if(writers_, std::back_inserter(order.writers),
                       [&](const WriterPlan& writer) { return config_.pod_of(writer.rank) == pod; });
  send_in_parts(pod, order, out);
}

ReportState WritingRound::add(const PodWrittenMessage& written) {
  for (const RankWrittenFile& file : written.ranks) {
    if (config_.pod_of(file.rank) == written.ordinal) files_[file.rank] = file.written;
  }
  if (written.more) return ReportState::part;
  const bool whole = std::ranges::all_of(writers_, [&](const WriterPlan& writer) {
    return config_.pod_of(writer.rank) != written.ordinal || files_.contains(writer.rank);
  });
  if (!whole) return ReportState::incomplete;
  whole_[written.ordinal] = written;
  return ReportState::whole;
}

bool WritingRound::has_every_writer() const {
  return std::ranges::all_of(writers_, [&](const WriterPlan& writer) { return has(config_.pod_of(writer.rank)); });
}

bool WritingRound::has_every_pod() const {
  return std::ranges::all_of(pods_, [&](std::uint32_t pod) { return has(pod); });
}

Status WritingRound::add_to(Manifest& manifest, const JobShards& shards) const {
  std::vector<WrittenStripe> stripes;
  for (const WriterPlan& writer : writers_)
    stripes.push_back({shards.layouts[writer.rank].get(), files_.at(writer.rank)});
  if (Status added = add_tensors(manifest, stripes); !added) return added;
  for (const auto& [pod, written] : whole_) {
    if (!written.states_file.name.empty()) add_states(manifest, written.states_file, written.states);
  }
  return {};
}

std::vector<std::uint32_t> WritingRound::inexact_ranks(bool has_states) const {
  std::set<std::uint32_t> saved;
  std::set<std::uint32_t> inexact;
  for (const auto& [pod, written] : whole_) {
    for (const ManifestState& state : written.states) saved.insert(state.rank);
    inexact.insert(written.inexact_ranks.begin(), written.inexact_ranks.end());
  }
  for (std::uint32_t rank = 0; has_states && rank < config_.world_size(); ++rank) {
    if (!saved.contains(rank)) inexact.insert(rank);
  }
  return {inexact.begin(), inexact.end()};
}

}  // namespace rekindle::sidecar
