// What the sidecar does with the checkpoint folder, each a call that blocks on the storage: made on
// the disk pool, never on the loop. Holds the identity of the job and where its folder is; decides
// nothing. Threads: after open() the calls may be made from several threads at once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "worker-sidecar/checkpoint/candidates.h"
#include "worker-sidecar/checkpoint/interval.h"
#include "worker-sidecar/checkpoint/manifest.h"
#include "worker-sidecar/coordination/output.h"
#include "worker-sidecar/sidecar/control_file.h"
#include "worker-sidecar/sidecar/settings.h"
#include "worker-sidecar/storage/file_system.h"
#include "worker-sidecar/storage/prune.h"

namespace rekindle::sidecar {

// The small state of one rank at one step, as taken from its slot.
struct RankState {
  std::uint32_t rank = 0;
  CapturedState captured;
};

struct WrittenStates {
  ManifestFile file;
  std::vector<ManifestState> states;
};

class CheckpointRepository {
 public:
  CheckpointRepository(FileSystem& file_system, const HostSettings& settings, bool create_root);

  // Finds or makes the job's folder and tries it out. The error's sentence is what the user is
  // told.
  Status open();
  const std::string& job_folder() const { return job_folder_; }
  const JobIdentity& job() const { return job_; }

  Result<CandidateOrder> candidates();
  // The manifest is the one that was offered and its files are there with their sizes. Their bytes
  // are hashed by the ranks, each file by the rank that reads it, before any rank takes the offer.
  Status verify(const VerifyCandidate& wanted);
  Result<AttemptRecord> claim(AttemptRecord record);
  // That the attempt which another pod has claimed is in this pod's folder as well. The error's
  // sentence is what the user is told.
  Status find_attempt(std::uint64_t attempt);
  // How often the job has failed before the attempt that was claimed.
  FailureHistory failures_before(std::uint64_t attempt);
  // Name of the new folder inside the job's folder.
  Result<std::string> create_folder(std::uint64_t attempt, std::uint64_t step);
  // `state-<ordinal>.safetensors`. Without entries nothing is written and the file's name is empty.
  Result<WrittenStates> write_states(const std::string& folder, std::uint32_t ordinal,
                                     const std::vector<RankState>& states);
  Result<std::string> publish(const std::string& folder, const Manifest& manifest);
  Result<PruneReport> prune(std::uint64_t own_attempt);
  Status remove(const std::string& folder);

 private:
  FileSystem& file_system_;
  const std::string root_;
  const JobIdentity job_;
  const bool create_root_;
  const CheckpointSettings policy_;
  std::string job_folder_;
};

}  // namespace rekindle::sidecar
