#include "worker-sidecar/runtime/src/stand_alone.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <ctime>
#include <utility>
#include <vector>

#include "common/base/format.h"
#include "common/contract/wall_time.h"
#include "common/system/clock.h"
#include "worker-sidecar/checkpoint/candidates.h"
#include "worker-sidecar/checkpoint/names.h"
#include "worker-sidecar/checkpoint/plan.h"
#include "worker-sidecar/checkpoint/written.h"
#include "worker-sidecar/runtime/src/say.h"
#include "worker-sidecar/runtime/src/shard_writer.h"
#include "worker-sidecar/storage/attempt_store.h"
#include "worker-sidecar/storage/checkpoint_root.h"
#include "worker-sidecar/storage/file_writer.h"
#include "worker-sidecar/storage/files.h"
#include "worker-sidecar/storage/folder.h"
#include "worker-sidecar/storage/nonce.h"
#include "worker-sidecar/storage/prune.h"
#include "worker-sidecar/storage/publisher.h"
#include "worker-sidecar/storage/scan.h"

namespace rekindle::runtime {
namespace {

Result<std::vector<MemoryPiece>> tensor_pieces(const Registry& registry, const SmallState& small_state,
                                               std::uint8_t slot) {
  std::vector<MemoryPiece> pieces;
  for (const RegisteredTensor& tensor : registry.tensors()) {
    Result<MemoryPiece> piece = piece_of(tensor, 0, row_count(tensor.description), small_state, slot);
    if (!piece) return std::unexpected(piece.error());
    pieces.push_back(*std::move(piece));
  }
  return pieces;
}

// What is written of a copy counts only if the copy was that of the step before and after.
Done check_stamp(const StandAlone::Snapshot& snapshot) {
  if (!snapshot.copy) return {};
  std::atomic_thread_fence(std::memory_order_acquire);
  const ShadowMapping& mapping = *snapshot.copy;
  const std::uint64_t step = mapping.header_of(mapping.plan().snapshot_slot).step.load(std::memory_order_acquire);
  if (step == snapshot.step) return {};
  return refuse(RK_ERROR_STATE,
                format("the copy that was made of step {} now is of step {}; nothing was saved, and the next "
                       "periodic checkpoint is made as usual",
                       snapshot.step, step));
}

}  // namespace

Outcome<StandAlone> StandAlone::open(FileSystem& file_system, const OpenOptions& options, Waiter& waiter) {
  JobIdentity job{.namespace_name = "local", .name = options.job, .uid = options.job_uid};
  if (options.checkpoint_dir.empty()) return StandAlone(file_system, waiter, std::move(job), "", options.checkpoints);
  if (const Result<std::string> name = job_folder_name(job.namespace_name, job.name); !name) {
    return refuse(RK_ERROR_ARGUMENT, name.error().message);
  }
  const Result<JobFolder> folder = open_job_folder(
      file_system, {.root = options.checkpoint_dir, .job = job, .nonce = draw_nonce(), .create_root = true});
  if (!folder) return refuse(RK_ERROR_STORAGE, folder.error().message);
  return StandAlone(file_system, waiter, std::move(job), folder->path, options.checkpoints);
}

Outcome<StandAlone::Found> StandAlone::find_checkpoints() {
  for (RestoreTries tries(*waiter_);;) {
    Result<FolderScan> scan = scan_job_folder(*file_system_, job_folder_);
    std::optional<Error> failure;
    if (scan) {
      CandidateOrder order = order_candidates(*scan, job_);
      if (!order.unread) return Found{.scan = *std::move(scan), .order = std::move(order)};
      failure = std::move(order.unread);
    } else {
      failure = scan.error();
    }
    if (tries.after(failure->code) != AfterFailure::try_again) return refuse(*failure);
  }
}

Outcome<StandAlone::Restored> StandAlone::restore(const Registry& registry) {
  if (job_folder_.empty()) {
    attempt_.attempt = 1;
    return Restored{};
  }
  Outcome<Found> found = find_checkpoints();
  if (!found) return std::unexpected(found.error());
  const FolderScan& scan = found->scan;
  CandidateOrder& order = found->order;
  if (settings_.resume_from == ResumeFrom::same_job) leave_out_other_jobs(order, job_.uid);
  std::string refused;
  for (const FoundFolder& folder : scan.folders) {
    if (folder.manifest && !*folder.manifest)
      refused += format(" {}: {}.", folder.path, folder.manifest->error().message);
  }
  Restored restored;
  for (const Candidate& candidate : order.usable) {
    AfterFailure then{};
    const Loading loading = load_patiently(
        *file_system_, {.job_folder = job_folder_, .path = candidate.path, .manifest_hash = candidate.sealed.hash}, {},
        registry, RestoreTries(*waiter_), then);
    if (loading.result) {
      if (Done done = hand_over(loading.held, registry); !done) return std::unexpected(done.error());
      restored = {.attempt = 1,
                  .step = candidate.step,
                  .path = join_path(job_folder_, candidate.path),
                  .state_missing = loading.state_missing};
      attempt_.parent = ParentPoint{.attempt = candidate.attempt, .step = candidate.step, .path = candidate.path};
      break;
    }
    if (then == AfterFailure::stop) {
      Failure failure = loading.result.error();
      if (failure.status != RK_ERROR_MISMATCH) failure.message += why_no_older(candidate.path);
      return std::unexpected(std::move(failure));
    }
    refused += format(" {}: {}.", candidate.path, loading.result.error().message);
  }
  if (restored.path.empty() && !refused.empty()) {
    return refuse(
        RK_ERROR_CORRUPT,
        format("no checkpoint in {} passes verification.{} Restore the folder from a copy, or move it away to begin at "
               "step 0",
               job_folder_, refused));
  }
  if (!refused.empty()) say(format("restored {} after refusing newer checkpoints.{}", restored.path, refused));
  attempt_.job_uid = job_.uid;
  attempt_.time = to_micro_text(wall_now());
  Result<AttemptRecord> claimed = claim_attempt(*file_system_, job_folder_, attempt_, draw_nonce());
  if (!claimed) return refuse(claimed.error());
  attempt_ = *std::move(claimed);
  restored.attempt = attempt_.attempt;
  const auto first =
      std::ranges::find_if(scan.attempts, [](const FoundAttempt& each) { return each.record.has_value(); });
  failures_ = history_of(
      attempt_.attempt, first != scan.attempts.end() ? parse_wall_time(first->record->time) : std::nullopt, wall_now());
  return restored;
}

// Of a rank whose small state is not complete nothing is kept, as under a sidecar.
StandAlone::Snapshot StandAlone::describe(const Registry& registry, const SmallState& small_state, std::uint64_t step,
                                          std::uint8_t slot) {
  Snapshot snapshot{.step = step, .layout = registry.layout(), .states = {}, .states_incomplete = false};
  for (const RegisteredState& state : registry.states()) {
    const std::byte* const value = small_state.value(slot, state.captured_index);
    if (value == nullptr) {
      snapshot.states.clear();
      snapshot.states_incomplete = true;
      return snapshot;
    }
    snapshot.states.push_back(
        {state.description.name,
         std::string(reinterpret_cast<const char*>(value), small_state.value_bytes(slot, state.captured_index))});
  }
  return snapshot;
}

Done StandAlone::checkpoint(const Registry& registry, const SmallState& small_state, std::uint64_t step,
                            std::uint8_t slot) {
  if (job_folder_.empty()) {
    return refuse(RK_ERROR_STATE,
                  "there is no folder for checkpoints: set REKINDLE_CHECKPOINT_DIR or rk_options.checkpoint_dir");
  }
  if (registry.tensors().empty() && registry.states().empty())
    return refuse(RK_ERROR_STATE, "nothing is registered, so there is nothing to save");
  const Result<std::vector<MemoryPiece>> tensors = tensor_pieces(registry, small_state, slot);
  if (!tensors) return refuse(tensors.error());
  const Outcome<std::string> written =
      write(describe(registry, small_state, step, slot), *tensors, {.cause = "user", .detail = "rk_checkpoint"});
  if (!written) return std::unexpected(written.error());
  return {};
}

Outcome<std::string> StandAlone::save(const Snapshot& snapshot, std::string rhythm) {
  const ShadowMapping& mapping = *snapshot.copy;
  if (Done stamped = check_stamp(snapshot); !stamped) return std::unexpected(stamped.error());
  const std::vector<ShadowPiece>& pieces = mapping.plan().pieces;
  const std::byte* const slot = mapping.slot_begin(mapping.plan().snapshot_slot);
  std::vector<MemoryPiece> tensors;
  for (std::size_t i = 0; i < snapshot.layout.tensors.size(); ++i) {
    const TensorDescription& tensor = snapshot.layout.tensors[i];
    if (i >= pieces.size() || pieces[i].piece.tensor != tensor.name || pieces[i].bytes != tensor_bytes(tensor))
      return refuse(RK_ERROR_STATE, "what is registered has changed since the snapshot was planned");
    tensors.push_back({.entry = entry_of_piece(tensor, 0, row_count(tensor)), .data = slot + pieces[i].offset});
  }
  return write(snapshot, tensors, {.cause = "periodic", .detail = std::move(rhythm)});
}

Outcome<std::string> StandAlone::write(const Snapshot& snapshot, const std::vector<MemoryPiece>& tensors,
                                       CheckpointTrigger trigger) {
  const std::lock_guard one_at_a_time(*writing_);
  const std::string nonce = draw_nonce();
  const Result<std::string> name = create_checkpoint_folder(
      *file_system_, job_folder_, {.attempt = attempt_.attempt, .step = snapshot.step, .nonce = nonce});
  if (!name) return refuse(name.error());
  const Done filled = fill(*name, nonce, snapshot, tensors, std::move(trigger));
  if (!filled) {
    // Its space is given back; what cannot be removed is removed after the next restart.
    [[maybe_unused]] const Status removed = remove_checkpoint_folder(*file_system_, job_folder_, *name);
    return std::unexpected(filled.error());
  }
  // The checkpoint is durable; earlier ones that cannot be removed are no reason to fail.
  RetentionPolicy retention = settings_.retention;
  retention.own_attempt = attempt_.attempt;
  const Result<PruneReport> pruned = prune_checkpoints(*file_system_, job_folder_, job_, retention);
  if (!pruned) say(format("old checkpoints in {} stay: {}", job_folder_, pruned.error().message));
  return *name;
}

Done StandAlone::fill(const std::string& name, const std::string& nonce, const Snapshot& snapshot,
                      const std::vector<MemoryPiece>& tensors, CheckpointTrigger trigger) {
  const std::string folder = join_path(job_folder_, name);
  Manifest manifest{.kind = CheckpointKind::periodic,
                    .job = job_,
                    .attempt = attempt_.attempt,
                    .step = snapshot.step,
                    .term = 0,
                    .world_size = 1,
                    .live_ranks = 1,
                    .trigger = std::move(trigger),
                    .parent = attempt_.parent,
                    .time = to_micro_text(wall_now())};
  WriteOptions options;
  options.bytes_per_second_max = settings_.bytes_per_second_max;
  if (!tensors.empty()) {
    const std::string file = rank_file_name(0);
    Result<WrittenDataFile> written = write_data_file(*file_system_, folder, file, tensors, options);
    if (!written) return refuse(written.error());
    WrittenFile report{
        .file = file, .bytes = written->bytes, .hash = written->hash, .chunks = written->chunks, .entries = {}};
    for (std::size_t index = 0; index < tensors.size(); ++index) {
      const TensorDescription& tensor = snapshot.layout.tensors[index];
      const DataEntry& entry = written->entries[index];
      report.entries.push_back({.key = entry.key,
                                .tensor = tensor.name,
                                .begin_row = 0,
                                .end_row = row_count(tensor),
                                .begin_byte = entry.begin_byte,
                                .end_byte = entry.end_byte});
    }
    if (Done stamped = check_stamp(snapshot); !stamped) return stamped;
    if (Status status = add_tensors(manifest, {{.layout = &snapshot.layout, .written = std::move(report)}}); !status)
      return refuse(status.error());
  }
  if (snapshot.states_incomplete) manifest.inexact_ranks.push_back(0);
  if (!snapshot.states.empty()) {
    const std::string file = state_file_name(0);
    std::vector<MemoryPiece> states;
    for (const NamedState& state : snapshot.states) {
      states.push_back(
          {.entry = entry_of_state(0, {.name = state.name, .bytes = state.bytes.size()}), .data = state.bytes.data()});
    }
    Result<WrittenDataFile> written = write_data_file(*file_system_, folder, file, states, options);
    if (!written) return refuse(written.error());
    std::vector<ManifestState> entries;
    for (std::size_t index = 0; index < states.size(); ++index) {
      const DataEntry& entry = written->entries[index];
      entries.push_back({.rank = 0,
                         .name = snapshot.states[index].name,
                         .file = file,
                         .key = entry.key,
                         .bytes = entry.end_byte - entry.begin_byte,
                         .begin_byte = entry.begin_byte,
                         .end_byte = entry.end_byte});
    }
    add_states(manifest, {.name = file, .bytes = written->bytes, .hash = written->hash, .chunks = written->chunks},
               entries);
  }
  if (const Result<std::string> hash = publish_manifest(*file_system_, job_folder_, name, manifest, nonce); !hash)
    return refuse(hash.error());
  return {};
}

}  // namespace rekindle::runtime
