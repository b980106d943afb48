// Small whole checkpoints for tests: two ranks hold the same tensors, each writes its share, one
// manifest is published.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "worker-sidecar/checkpoint/plan.h"
#include "worker-sidecar/checkpoint/restore_plan.h"
#include "worker-sidecar/checkpoint/written.h"
#include "worker-sidecar/storage/checkpoint_root.h"
#include "worker-sidecar/storage/file_writer.h"
#include "worker-sidecar/storage/folder.h"
#include "worker-sidecar/storage/piece_reader.h"
#include "worker-sidecar/storage/publisher.h"

namespace rekindle {

inline JobIdentity make_job(std::string name = "digits") { return {"team-a", std::move(name), "5f1c"}; }

// Registered memory of one rank, filled from a seed: equal seeds, equal bytes.
struct RankMemory {
  Layout layout;
  std::vector<StateDescription> states;
  std::vector<std::string> tensor_bytes_held;
  std::vector<std::string> state_bytes_held;

  bool operator==(const RankMemory&) const = default;
};

inline std::string make_bytes(std::uint64_t count, std::uint64_t seed) {
  std::string bytes(count, '\0');
  std::uint64_t value = seed * 0x9e3779b97f4a7c15u + 1;
  for (char& byte : bytes) {
    value = value * 6364136223846793005u + 1442695040888963407u;
    byte = static_cast<char>(value >> 56);
  }
  return bytes;
}

inline RankMemory make_memory(std::uint64_t seed, Layout layout,
                              std::vector<StateDescription> states = {{"sampler", 24}}) {
  RankMemory memory{std::move(layout), std::move(states), {}, {}};
  for (std::size_t i = 0; i < memory.layout.tensors.size(); ++i) {
    memory.tensor_bytes_held.push_back(make_bytes(tensor_bytes(memory.layout.tensors[i]), seed * 1000 + i));
  }
  for (std::size_t i = 0; i < memory.states.size(); ++i)
    memory.state_bytes_held.push_back(make_bytes(memory.states[i].bytes, seed * 1000 + 500 + i));
  return memory;
}

inline Layout small_layout() {
  return {{whole_tensor("w1", Dtype::f32, {5, 3}), whole_tensor("b1", Dtype::f32, {5}),
           whole_tensor("empty", Dtype::f32, {0, 4}), whole_tensor("step_scale", Dtype::f64, {}),
           whole_tensor("seen", Dtype::u8, {3}, WrittenIn::anywhere)}};
}

// Saves `memory` for a job of `world_size` ranks the way the real parts do: every rank writes its
// share, one state file, publish. `turn` is told whose calls follow: 0 is the coordinating sidecar,
// 1 the first rank.
inline Result<std::string> save_checkpoint(FileSystem& file_system, const std::string& job_folder,
                                           const JobIdentity& job, const FolderName& name, const RankMemory& memory,
                                           std::optional<ParentPoint> parent = {}, std::uint32_t world_size = 2,
                                           const std::function<void(std::size_t)>& turn = {}) {
  Result<std::string> folder_name = create_checkpoint_folder(file_system, job_folder, name);
  if (!folder_name) return folder_name;
  const std::string folder = job_folder + "/" + *folder_name;
  Manifest manifest{.job = job,
                    .attempt = name.attempt,
                    .step = name.step,
                    .term = 65536,
                    .world_size = world_size,
                    .live_ranks = world_size,
                    .trigger = {"pre_stop", "digits-worker-0"},
                    .parent = std::move(parent),
                    .time = "2026-01-02T03:04:05Z"};
  std::vector<std::uint32_t> writers;
  for (std::uint32_t rank = 0; rank < world_size; ++rank) writers.push_back(rank);
  std::vector<WrittenStripe> stripes;
  for (const WriterPlan& plan : split_for_writers(memory.layout, writers)) {
    std::vector<MemoryPiece> pieces;
    for (const PiecePlan& piece : plan.pieces) {
      for (std::size_t i = 0; i < memory.layout.tensors.size(); ++i) {
        const TensorDescription& tensor = memory.layout.tensors[i];
        if (tensor.name != piece.tensor) continue;
        pieces.push_back({entry_of_piece(tensor, piece.begin_row, piece.end_row),
                          memory.tensor_bytes_held[i].data() + rows_bytes(tensor, piece.begin_row)});
      }
    }
    if (turn) turn(stripes.size() + 1);
    Result<WrittenDataFile> written =
        write_data_file(file_system, folder, plan.file, pieces, {.block_bytes = plan.bytes < 4096 ? 32u : 4u << 20});
    if (!written) return std::unexpected(written.error());
    WrittenFile report{plan.file, written->bytes, written->hash, written->chunks, {}};
    for (std::size_t i = 0; i < plan.pieces.size(); ++i) {
      report.entries.push_back({written->entries[i].key, plan.pieces[i].tensor, plan.pieces[i].begin_row,
                                plan.pieces[i].end_row, written->entries[i].begin_byte, written->entries[i].end_byte});
    }
    stripes.push_back({&memory.layout, std::move(report)});
  }
  if (turn) turn(0);
  if (Status status = add_tensors(manifest, stripes); !status) return std::unexpected(status.error());

  std::vector<MemoryPiece> pieces;
  std::vector<ManifestState> states;
  for (std::uint32_t rank = 0; rank < world_size; ++rank) {
    for (std::size_t i = 0; i < memory.states.size(); ++i) {
      pieces.push_back({entry_of_state(rank, memory.states[i]), memory.state_bytes_held[i].data()});
      states.push_back(
          {rank, memory.states[i].name, state_file_name(0), pieces.back().entry.key, memory.states[i].bytes});
    }
  }
  Result<WrittenDataFile> written = write_data_file(file_system, folder, state_file_name(0), pieces);
  if (!written) return std::unexpected(written.error());
  for (std::size_t i = 0; i < states.size(); ++i) {
    states[i].begin_byte = written->entries[i].begin_byte;
    states[i].end_byte = written->entries[i].end_byte;
  }
  add_states(manifest, {state_file_name(0), written->bytes, written->hash, written->chunks}, states);
  if (Result<std::string> hash = publish_manifest(file_system, job_folder, *folder_name, manifest, name.nonce); !hash)
    return hash;
  return folder_name;
}

// Restores one rank into memory of the same shape, all bytes 0xee before.
inline Result<RankMemory> load_checkpoint(FileSystem& file_system, const std::string& job_folder,
                                          const std::string& folder_name, const Layout& layout,
                                          const std::vector<StateDescription>& states, std::uint32_t rank = 0,
                                          std::uint32_t world_size = 2) {
  const Result<SealedManifest> sealed = read_manifest(file_system, job_folder, folder_name);
  if (!sealed) return std::unexpected(sealed.error());
  const Result<RestorePlan> plan = plan_restore(sealed->manifest, {rank, world_size, layout, states});
  if (!plan) return std::unexpected(plan.error());
  RankMemory memory{layout, states, {}, {}};
  std::vector<Destination> tensors;
  std::vector<Destination> state_places;
  for (const TensorDescription& tensor : layout.tensors)
    memory.tensor_bytes_held.emplace_back(tensor_bytes(tensor), '\xee');
  for (const StateDescription& state : states) memory.state_bytes_held.emplace_back(state.bytes, '\xee');
  for (std::string& bytes : memory.tensor_bytes_held) tensors.push_back({bytes.data(), bytes.size()});
  for (std::string& bytes : memory.state_bytes_held) state_places.push_back({bytes.data(), bytes.size()});
  if (Status status =
          read_plan(file_system, job_folder + "/" + folder_name, sealed->manifest, *plan, {tensors, state_places});
      !status) {
    return std::unexpected(status.error());
  }
  return memory;
}

}  // namespace rekindle
