#include "worker-sidecar/sidecar/checkpoint_repository.h"

#include <cerrno>

#include "common/base/format.h"
#include "common/contract/wall_time.h"
#include "common/system/clock.h"
#include "worker-sidecar/checkpoint/names.h"
#include "worker-sidecar/checkpoint/restore_plan.h"
#include "worker-sidecar/checkpoint/restore_policy.h"
#include "worker-sidecar/checkpoint/safetensors.h"
#include "worker-sidecar/storage/attempt_store.h"
#include "worker-sidecar/storage/checkpoint_root.h"
#include "worker-sidecar/storage/file_writer.h"
#include "worker-sidecar/storage/files.h"
#include "worker-sidecar/storage/folder.h"
#include "worker-sidecar/storage/nonce.h"
#include "worker-sidecar/storage/publisher.h"
#include "worker-sidecar/storage/scan.h"

namespace rekindle::sidecar {
namespace {

// What one machine has written to a network file system, the others see within it.
constexpr Duration kSharedFolderPatience = std::chrono::seconds(5);

}  // namespace

CheckpointRepository::CheckpointRepository(FileSystem& file_system, const HostSettings& settings, bool create_root)
    : file_system_(file_system),
      root_(settings.checkpoint_folder),
      job_{.namespace_name = settings.job_namespace, .name = settings.job, .uid = settings.job_uid},
      create_root_(create_root),
      policy_(settings.checkpoints) {}

Status CheckpointRepository::open() {
  Result<JobFolder> folder =
      open_job_folder(file_system_, {.root = root_, .job = job_, .nonce = draw_nonce(), .create_root = create_root_});
  if (!folder) return std::unexpected(folder.error());
  job_folder_ = folder->path;
  return {};
}

Result<CandidateOrder> CheckpointRepository::candidates() {
  Result<FolderScan> scan = scan_job_folder(file_system_, job_folder_);
  if (!scan) return std::unexpected(scan.error());
  CandidateOrder order = order_candidates(*scan, job_);
  if (order.unread) return std::unexpected(*order.unread);
  if (policy_.resume_from == ResumeFrom::same_job) leave_out_other_jobs(order, job_.uid);
  if (Status fine = may_start_afresh(order, job_folder_); !fine) return std::unexpected(fine.error());
  return order;
}

Status CheckpointRepository::verify(const VerifyCandidate& wanted) {
  const std::string& path = wanted.path;
  Result<SealedManifest> sealed = read_manifest(file_system_, job_folder_, path);
  if (!sealed) return std::unexpected(as_damage(sealed.error()));
  if (sealed->hash != wanted.manifest_hash) {
    return fail(ErrorCode::corrupt, format("{} has a manifest with another hash than the one that was listed", path));
  }
  if (Status ours = check_job(sealed->manifest, job_); !ours) return ours;
  std::vector<const Layout*> layouts;
  for (const std::shared_ptr<const Layout>& layout : wanted.layouts) layouts.push_back(layout.get());
  if (const std::vector<std::string> differences = list_job_differences(sealed->manifest, layouts);
      !differences.empty()) {
    return fail(ErrorCode::invalid_input, format("the checkpoint of step {} does not fit what the job has "
                                                 "registered: {}. Restore the program as it was, or give the new one "
                                                 "another name or checkpoint folder",
                                                 sealed->manifest.step, describe_differences(differences)));
  }
  for (const ManifestFile& file : sealed->manifest.files) {
    const std::string name = join_path(join_path(job_folder_, path), file.name);
    Result<FileInfo> info = info_of(file_system_, name);
    if (!info) return std::unexpected(info.error());
    if (info->bytes != file.bytes) {
      return fail(ErrorCode::corrupt, format("{} has {} bytes, the manifest says {}", name, info->bytes, file.bytes));
    }
  }
  return {};
}

Result<AttemptRecord> CheckpointRepository::claim(AttemptRecord record) {
  return claim_attempt(file_system_, job_folder_, std::move(record), draw_nonce());
}

Status CheckpointRepository::find_attempt(std::uint64_t attempt) {
  const Status found = await_attempt(file_system_, job_folder_, attempt, kSharedFolderPatience, real_waiter());
  if (found) return {};
  return fail(
      ErrorCode::not_found,
      format("attempt {} of this job is not in {}, where another pod has written it ({}): the pods do not share "
             "this folder, so no checkpoint would be complete. Mount one volume in all pods of the job that "
             "all of them can write to",
             attempt, job_folder_, found.error().message));
}

FailureHistory CheckpointRepository::failures_before(std::uint64_t attempt) {
  std::optional<WallTime> first;
  if (const Result<std::vector<FoundAttempt>> attempts = list_attempts(file_system_, job_folder_)) {
    for (const FoundAttempt& found : *attempts) {
      if (!first && found.record) first = parse_wall_time(found.record->time);
    }
  }
  return history_of(attempt, first, wall_now());
}

Result<std::string> CheckpointRepository::create_folder(std::uint64_t attempt, std::uint64_t step) {
  return create_checkpoint_folder(file_system_, job_folder_, {.attempt = attempt, .step = step, .nonce = draw_nonce()});
}

Result<WrittenStates> CheckpointRepository::write_states(const std::string& folder, std::uint32_t ordinal,
                                                         const std::vector<RankState>& states) {
  std::vector<MemoryPiece> pieces;
  WrittenStates result;
  const std::string name = state_file_name(ordinal);
  for (const RankState& state : states) {
    for (const auto& [entry, value] : state.captured.entries) {
      pieces.push_back(
          {.entry = entry_of_state(state.rank, {.name = entry, .bytes = value.size()}), .data = value.data()});
      result.states.push_back({.rank = state.rank,
                               .name = entry,
                               .file = name,
                               .key = state_key(state.rank, entry),
                               .bytes = value.size()});
    }
  }
  if (pieces.empty()) return result;
  Result<WrittenDataFile> written = write_data_file(file_system_, join_path(job_folder_, folder), name, pieces);
  if (!written) return std::unexpected(written.error());
  for (std::size_t i = 0; i < result.states.size(); ++i) {
    result.states[i].begin_byte = written->entries[i].begin_byte;
    result.states[i].end_byte = written->entries[i].end_byte;
  }
  result.file = {.name = name, .bytes = written->bytes, .hash = written->hash, .chunks = written->chunks};
  return result;
}

Result<std::string> CheckpointRepository::publish(const std::string& folder, const Manifest& manifest) {
  return publish_manifest(file_system_, job_folder_, folder, manifest, draw_nonce());
}

Result<PruneReport> CheckpointRepository::prune(std::uint64_t own_attempt) {
  RetentionPolicy retention = policy_.retention;
  retention.own_attempt = own_attempt;
  return prune_checkpoints(file_system_, job_folder_, job_, retention);
}

Status CheckpointRepository::remove(const std::string& folder) {
  return remove_checkpoint_folder(file_system_, job_folder_, folder);
}

}  // namespace rekindle::sidecar
