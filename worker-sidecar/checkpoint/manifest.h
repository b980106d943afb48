// The manifest of a checkpoint: what counts as one, published once. encode seals it with its own
// hash, decode believes nothing: every rule of docs/formats/checkpoint.md that can be checked
// without opening a data file is checked. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/enum_names.h"
#include "common/base/error.h"
#include "worker-sidecar/checkpoint/attempt.h"
#include "worker-sidecar/checkpoint/layout.h"

namespace rekindle {

inline constexpr std::uint64_t kManifestVersion = 1;
inline constexpr std::size_t kManifestBytesMax = 64u << 20;
inline constexpr std::uint64_t kHashChunkBytes = 4u << 20;

enum class CheckpointKind : std::uint8_t { breakpoint, periodic };
constexpr auto enum_names(CheckpointKind) {
  return std::to_array<EnumName<CheckpointKind>>(
      {{CheckpointKind::breakpoint, "breakpoint"}, {CheckpointKind::periodic, "periodic"}});
}

struct JobIdentity {
  std::string namespace_name;
  std::string name;
  // not compared at restore: a job of the same name that comes later resumes
  std::string uid;

  bool operator==(const JobIdentity&) const = default;
};

struct CheckpointTrigger {
  std::string cause;
  std::string detail;

  bool operator==(const CheckpointTrigger&) const = default;
};

// A box of a tensor: `shape` elements at `offset` of the global tensor, row-major in [begin_byte,
// end_byte) of the file.
struct ManifestPiece {
  std::string file;
  std::string key;
  Extents offset;
  Extents shape;
  std::uint64_t begin_byte = 0;
  std::uint64_t end_byte = 0;

  bool operator==(const ManifestPiece&) const = default;
};

struct ManifestTensor {
  std::string name;
  Dtype dtype = Dtype::f32;
  Extents global_shape;
  std::vector<ManifestPiece> pieces;

  bool operator==(const ManifestTensor&) const = default;
};

struct ManifestState {
  std::uint32_t rank = 0;
  std::string name;
  std::string file;
  std::string key;
  std::uint64_t bytes = 0;
  std::uint64_t begin_byte = 0;
  std::uint64_t end_byte = 0;

  bool operator==(const ManifestState&) const = default;
};

struct ManifestFile {
  std::string name;
  std::uint64_t bytes = 0;
  std::string hash;  // xxh3_128 of the whole file
  // xxh3_64 of each kHashChunkBytes of it, to say where damage is; may be empty
  std::vector<std::string> chunks;

  bool operator==(const ManifestFile&) const = default;
};

struct Manifest {
  CheckpointKind kind = CheckpointKind::breakpoint;
  JobIdentity job;
  std::uint64_t attempt = 0;
  std::uint64_t step = 0;
  std::uint64_t term = 0;
  std::uint32_t world_size = 0;
  // that lived when it was made
  std::uint32_t live_ranks = 0;
  // from the trigger until all agreed on the step; 0: not known
  std::uint64_t agreed_milliseconds = 0;
  CheckpointTrigger trigger;
  std::optional<ParentPoint> parent;
  std::string time;
  std::vector<ManifestTensor> tensors;
  std::vector<ManifestState> states;
  std::vector<std::uint32_t> inexact_ranks;
  std::vector<ManifestFile> files;

  bool operator==(const Manifest&) const = default;
};

// What is reported about a checkpoint to those who do not read its manifest.
struct CheckpointSummary {
  std::uint64_t bytes = 0;  // of all files
  std::uint32_t world_size = 0;
  std::uint32_t live_ranks = 0;
  std::uint64_t agreed_milliseconds = 0;  // 0: not known

  bool operator==(const CheckpointSummary&) const = default;
};

struct SealedManifest {
  Manifest manifest;
  std::string hash;

  bool operator==(const SealedManifest&) const = default;
};

struct EncodedManifest {
  std::string text;
  std::string hash;
};

EncodedManifest encode_manifest(const Manifest& manifest);

// Errors: corrupt (cut short, changed, hash wrong), refused (a newer version, by its number),
// invalid_input (a rule broken under a right hash). Accepts only the exact bytes that
// encode_manifest gives for these values.
Result<SealedManifest> decode_manifest(std::string_view text);

// The rules of the format that do not depend on the text; a manifest is checked before it is
// published, too. Pieces that leave a gap or overlap, ranges outside a file or shared, names that
// lead out of the folder: errors.
Status check_manifest(const Manifest& manifest);

// The job's namespace and name are those expected; the message names both jobs.
Status check_job(const Manifest& manifest, const JobIdentity& expected);

const ManifestFile* find_file(const Manifest& manifest, std::string_view name);

// Bytes of data of all tensors and states, and bytes of all files.
std::uint64_t data_bytes(const Manifest& manifest);
std::uint64_t file_bytes(const Manifest& manifest);

CheckpointSummary summarize(const Manifest& manifest);

}  // namespace rekindle
