// The manifest: read as it is, and sealed anew with a right hash, as somebody would who edits one
// and means to be believed. What is accepted encodes to the same bytes, names nothing outside its
// folder, and a restore from it reads inside its files and writes inside memory.
#include "common/base/json_fields.h"
#include "tests/fuzz/support/fuzzing.h"
#include "worker-sidecar/checkpoint/hash.h"
#include "worker-sidecar/checkpoint/manifest.h"
#include "worker-sidecar/checkpoint/restore_plan.h"

namespace rekindle {
namespace {

void check_file(const Manifest& manifest, std::string_view name, std::uint64_t begin_byte, std::uint64_t end_byte) {
  const ManifestFile* file = find_file(manifest, name);
  RK_ASSERT(file != nullptr && begin_byte <= end_byte && end_byte <= file->bytes);
}

// What this manifest would have a rank read that registers its tensors whole.
void check_restore(const Manifest& manifest) {
  RestoreTarget target{.rank = 0, .world_size = manifest.world_size, .layout = {}, .states = {}};
  for (const ManifestTensor& tensor : manifest.tensors)
    target.layout.tensors.push_back(whole_tensor(tensor.name, tensor.dtype, tensor.global_shape));
  for (const ManifestState& state : manifest.states) {
    if (state.rank == 0) target.states.push_back({state.name, state.bytes});
  }
  std::uint64_t wanted = 0;  // of all sums here only the low 64 bits count
  for (const TensorDescription& tensor : target.layout.tensors) wanted += tensor_bytes(tensor);
  const Result<RestorePlan> plan = plan_restore(manifest, target);
  if (!plan) return expect_sentence(plan.error());
  std::size_t parts = manifest.states.size();
  for (const ManifestTensor& tensor : manifest.tensors) parts += tensor.pieces.size();
  std::uint64_t filled = 0;
  for (const FileReads& reads : plan->files) {
    RK_ASSERT(reads.ranges.size() <= parts);
    for (const ReadRange& range : reads.ranges) {
      RK_ASSERT(run_count(range) * range.bytes <= kTensorBytesMax);
      check_file(manifest, reads.file, range.begin_byte, end_byte(range));
      const bool is_tensor = range.kind == TargetKind::tensor;
      RK_ASSERT(range.index < (is_tensor ? target.layout.tensors.size() : target.states.size()));
      const std::uint64_t room =
          is_tensor ? tensor_bytes(target.layout.tensors[range.index]) : target.states[range.index].bytes;
      RK_ASSERT(range.target_byte <= room && target_end_byte(range) <= room);
      filled += is_tensor ? run_count(range) * range.bytes : 0;
    }
  }
  RK_ASSERT(filled == wanted);
}

void check(std::string_view text) {
  const Result<SealedManifest> sealed = decode_manifest(text);
  if (!sealed) return expect_sentence(sealed.error());
  const Manifest& manifest = sealed->manifest;
  RK_ASSERT(check_manifest(manifest).has_value());
  RK_ASSERT(encode_manifest(manifest).text == text);
  for (const ManifestFile& file : manifest.files) {
    RK_ASSERT(!leads_out_of_its_folder(file.name) && file.name != "manifest.json");
    RK_ASSERT(file.chunks.size() <= text.size());
  }
  RK_ASSERT(!leads_out_of_its_folder(manifest.job.namespace_name) && !leads_out_of_its_folder(manifest.job.name));
  if (manifest.parent)
    RK_ASSERT(!leads_out_of_its_folder(manifest.parent->path) && manifest.parent->attempt < manifest.attempt);
  for (const ManifestTensor& tensor : manifest.tensors) {
    for (const ManifestPiece& piece : tensor.pieces) check_file(manifest, piece.file, piece.begin_byte, piece.end_byte);
  }
  for (const ManifestState& state : manifest.states) check_file(manifest, state.file, state.begin_byte, state.end_byte);
  RK_ASSERT(manifest.tensors.size() + manifest.states.size() + manifest.files.size() <= text.size());
  check_restore(manifest);
}

}  // namespace
}  // namespace rekindle

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace rekindle;
  const std::string_view text = text_of(data, bytes);
  check(text);
  if (const Result<Json> body = parse_json(text, "the manifest"); body && body->is_object()) {
    const std::string spelled = dump_json(*body);
    check(R"({"hash":")" + hash_of(spelled) + R"(","manifest":)" + spelled + "}");
  }
  return 0;
}
