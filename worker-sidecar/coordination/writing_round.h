// One round of writing: which rank writes what into which folder, and what the pods have reported
// of it. The same for breakpoints and periodic checkpoints. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "worker-sidecar/checkpoint/manifest.h"
#include "worker-sidecar/checkpoint/plan.h"
#include "worker-sidecar/coordination/config.h"
#include "worker-sidecar/coordination/job_layouts.h"
#include "worker-sidecar/coordination/output.h"

namespace rekindle::sidecar {

// What a report has brought. `incomplete`: it is said to be all, and the file of a rank is not in
// it.
enum class ReportState : std::uint8_t { part, incomplete, whole };

class WritingRound {
 public:
  explicit WritingRound(const CoordinationConfig& config) : config_(config) {}

  void clear();
  // Nothing is awaited any more; the folder, for the caller to remove.
  std::string abandon();
  // `pods` are ordered to write; those without a writer have small state to save.
  void begin(std::uint64_t term, std::uint64_t step, std::string path, std::vector<WriterPlan> writers,
             std::set<std::uint32_t> pods);

  // Empty before begin().
  const std::string& path() const { return path_; }
  const std::vector<WriterPlan>& writers() const { return writers_; }
  const std::set<std::uint32_t>& pods() const { return pods_; }

  void send_order(std::uint32_t pod, CoordinationOutputs& out) const;
  // A successful report of a pod of this round. What it says of other pods' ranks is not
  // believed.
  ReportState add(const PodWrittenMessage& written);
  bool has(std::uint32_t pod) const { return whole_.contains(pod); }
  bool has_every_writer() const;
  bool has_every_pod() const;

  // Tensors and small states of what has come. Every writer is there.
  Status add_to(Manifest& manifest, const JobShards& shards) const;
  // Whose small state of that step is lost, in order: what the pods say of their ranks, and where
  // every rank `has_states` also those that no pod has saved.
  std::vector<std::uint32_t> inexact_ranks(bool has_states) const;

 private:
  const CoordinationConfig& config_;
  std::uint64_t term_ = 0;
  std::uint64_t step_ = 0;
  std::string path_;
  std::vector<WriterPlan> writers_;
  std::set<std::uint32_t> pods_;
  // by rank; those of pods that have more to say as well
  std::map<std::uint32_t, WrittenFile> files_;
  std::map<std::uint32_t, PodWrittenMessage> whole_;
};

}  // namespace rekindle::sidecar
