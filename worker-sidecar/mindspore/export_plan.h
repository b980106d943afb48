// How a checkpoint becomes MindSpore's files: which files, under which names, and which part of
// each tensor every file has (docs/formats/mindspore.md). Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/enum_names.h"
#include "common/base/error.h"
#include "worker-sidecar/checkpoint/manifest.h"
#include "worker-sidecar/checkpoint/tensor_box.h"
#include "worker-sidecar/mindspore/appended_value.h"
#include "worker-sidecar/mindspore/file_names.h"

namespace rekindle {

enum class MindSporeLayout : std::uint8_t {
  // one file with everything
  merged,
  // rank_<r>/..., as ModelCheckpoint saves them
  ranks,
  // tft_saved_checkpoints-step_<n>/rank_<r>/ttp_rank_<r>-..., as MindIO saves them
  tft,
};
constexpr auto enum_names(MindSporeLayout) {
  return std::to_array<EnumName<MindSporeLayout>>(
      {{MindSporeLayout::merged, "merged"}, {MindSporeLayout::ranks, "ranks"}, {MindSporeLayout::tft, "tft"}});
}

struct MindSporeExportOptions {
  MindSporeLayout layout = MindSporeLayout::merged;
  // empty: the job's name
  std::string prefix;
  // when the checkpoint does not say it
  std::optional<std::uint64_t> epoch;
  // file names then have the step within its epoch
  std::optional<std::uint64_t> steps_per_epoch;
  // "NAME=DIMENSION": ranks hold equal parts of it; NAME may end in *
  std::vector<std::string> sharded;
};

// Where training was. `kept_epoch`: what training itself kept in the checkpoint called
// `checkpoint`. Error (invalid_input): the options contradict it, or none has the epoch.
Result<MindSporePlace> choose_place(const std::string& checkpoint, std::uint64_t step,
                                    std::optional<std::uint64_t> kept_epoch, const MindSporeExportOptions& options);

struct MindSporeFilePlan {
  // one inside the other, the outermost inside the target; none: the target itself
  std::vector<std::string> folders;
  std::string name;
  // whose parts are in it, where tensors are in parts
  std::uint32_t rank = 0;
  std::vector<AppendedValue> appended;
};

class MindSporeExportPlan {
 public:
  // `tensors` are of `manifest`, which outlives the plan. Errors (invalid_input) name the tensor:
  // it cannot be in parts as the options say, has a type that MindSpore does not read, or a name
  // that MindSpore uses itself.
  static Result<MindSporeExportPlan> make(const Manifest& manifest, std::vector<const ManifestTensor*> tensors,
                                          MindSporePlace place, const MindSporeExportOptions& options);

  const std::vector<MindSporeFilePlan>& files() const { return files_; }
  // What every file has, or a part of it.
  const std::vector<const ManifestTensor*>& tensors() const { return tensors_; }
  TensorBox part_of(const ManifestTensor& tensor, const MindSporeFilePlan& file) const;
  std::uint64_t bytes_of(const MindSporeFilePlan& file) const;

 private:
  // By tensor, the dimension along which ranks hold equal parts of it.
  using Cuts = std::map<const ManifestTensor*, std::size_t>;

  Status find_cuts(const std::vector<std::string>& sharded);
  Status check_tensors() const;

  std::uint32_t world_size_ = 1;
  std::vector<const ManifestTensor*> tensors_;
  Cuts cuts_;
  std::vector<MindSporeFilePlan> files_;
};

// In front of `slice_bytes` bytes of the part.
std::string slice_header(const ManifestTensor& tensor, const TensorBox& part, std::uint64_t slice_bytes);

}  // namespace rekindle
