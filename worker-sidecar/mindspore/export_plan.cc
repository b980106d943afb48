#include "worker-sidecar/mindspore/export_plan.h"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

#include "common/base/format.h"
#include "worker-sidecar/checkpoint/coverage.h"
#include "worker-sidecar/mindspore/dtype_names.h"

namespace rekindle {
namespace {

std::vector<MindSporeFilePlan> plan_files(const Manifest& manifest, MindSporePlace place,
                                          const MindSporeExportOptions& options) {
  const std::string prefix = options.prefix.empty() ? manifest.job.name : options.prefix;
  const std::string name = manifest.kind == CheckpointKind::breakpoint ? breakpoint_file_name(prefix, place)
                                                                       : periodic_file_name(prefix, place);
  const std::vector<AppendedValue> place_values{appended_number(kEpochNumber, place.epoch),
                                                appended_number(kStepNumber, manifest.step)};
  if (options.layout == MindSporeLayout::merged) return {{.folders = {}, .name = name, .appended = place_values}};
  std::vector<MindSporeFilePlan> files;
  for (std::uint32_t rank = 0; rank < manifest.world_size; ++rank) {
    MindSporeFilePlan file{.folders = {rank_folder_name(rank)}, .name = name, .rank = rank, .appended = place_values};
    if (options.layout == MindSporeLayout::tft) {
      file.folders.insert(file.folders.begin(), dying_folder_name(manifest.step));
      file.name = dying_file_name(rank, place);
      file.appended.push_back(appended_flag("__exception_save__"));
      file.appended.push_back(appended_number(kRankNumber, rank));
      if (options.steps_per_epoch) file.appended.push_back(appended_number("batch_num", *options.steps_per_epoch));
    }
    files.push_back(std::move(file));
  }
  return files;
}

}  // namespace

Result<MindSporePlace> choose_place(const std::string& checkpoint, std::uint64_t step,
                                    std::optional<std::uint64_t> kept_epoch, const MindSporeExportOptions& options) {
  const std::uint64_t step_in_epoch = options.steps_per_epoch ? (step - 1) % *options.steps_per_epoch + 1 : step;
  if (kept_epoch && options.epoch && *kept_epoch != *options.epoch) {
    return fail(ErrorCode::invalid_input, format("--epoch says {}, but the checkpoint says epoch {}; leave --epoch out",
                                                 *options.epoch, *kept_epoch));
  }
  if (kept_epoch) return MindSporePlace{*kept_epoch, step_in_epoch};
  if (options.epoch) return MindSporePlace{*options.epoch, step_in_epoch};
  if (options.steps_per_epoch) return MindSporePlace{(step - 1) / *options.steps_per_epoch + 1, step_in_epoch};
  return fail(ErrorCode::invalid_input,
              checkpoint +
                  " does not say its epoch (training registered no cursor), and MindSpore's names have it: "
                  "give --epoch or --steps-per-epoch");
}

Result<MindSporeExportPlan> MindSporeExportPlan::make(const Manifest& manifest,
                                                      std::vector<const ManifestTensor*> tensors, MindSporePlace place,
                                                      const MindSporeExportOptions& options) {
  MindSporeExportPlan plan;
  plan.world_size_ = manifest.world_size;
  plan.tensors_ = std::move(tensors);
  if (options.layout != MindSporeLayout::merged) {
    if (Status status = plan.find_cuts(options.sharded); !status) return std::unexpected(status.error());
  }
  plan.files_ = plan_files(manifest, place, options);
  if (Status status = plan.check_tensors(); !status) return std::unexpected(status.error());
  return plan;
}

TensorBox MindSporeExportPlan::part_of(const ManifestTensor& tensor, const MindSporeFilePlan& file) const {
  TensorBox box = whole_box(tensor);
  if (const auto cut = cuts_.find(&tensor); cut != cuts_.end()) {
    box.shape[cut->second] /= world_size_;
    box.offset[cut->second] = box.shape[cut->second] * file.rank;
  }
  return box;
}

std::uint64_t MindSporeExportPlan::bytes_of(const MindSporeFilePlan& file) const {
  std::uint64_t bytes = 0;
  for (const ManifestTensor* tensor : tensors_) {
    const TensorBox part = part_of(*tensor, file);
    for (const std::uint64_t slice : slices_of(box_bytes(*tensor, part)))
      bytes += slice_header(*tensor, part, slice).size() + slice;
  }
  for (const AppendedValue& value : file.appended) bytes += encode(value).size();
  return bytes;
}

Status MindSporeExportPlan::find_cuts(const std::vector<std::string>& sharded) {
  for (const std::string& each : sharded) {
    const std::size_t equals = each.rfind('=');
    std::size_t dimension = 0;
    const char* const end = each.data() + each.size();
    if (equals == std::string::npos ||
        std::from_chars(each.data() + equals + 1, end, dimension) != std::from_chars_result{end, std::errc()}) {
      return fail(ErrorCode::invalid_input, format("--sharded {} is not NAME=DIMENSION", each));
    }
    std::string name = each.substr(0, equals);
    const bool any = name.ends_with('*');
    if (any) name.pop_back();
    bool found = false;
    for (const ManifestTensor* tensor : tensors_) {
      if (any ? !tensor->name.starts_with(name) : tensor->name != name) continue;
      found = true;
      if (dimension >= tensor->global_shape.size() || tensor->global_shape[dimension] % world_size_ != 0) {
        return fail(ErrorCode::invalid_input,
                    format("\"{}\" is {}; {} ranks cannot hold equal parts of it along dimension {}", tensor->name,
                           describe_shape(tensor->global_shape), world_size_, dimension));
      }
      cuts_[tensor] = dimension;
    }
    if (!found)
      return fail(ErrorCode::invalid_input,
                  format("--sharded names \"{}\", which is not in the checkpoint", each.substr(0, equals)));
  }
  for (const ManifestTensor* tensor : tensors_) {
    // Rows are also cut to share the writing; anything else only because ranks hold parts.
    const bool in_shards = std::ranges::any_of(tensor->pieces, [&](const ManifestPiece& piece) {
      return !piece.shape.empty() && !std::ranges::equal(piece.shape.begin() + 1, piece.shape.end(),
                                                         tensor->global_shape.begin() + 1, tensor->global_shape.end());
    });
    if (in_shards && !cuts_.contains(tensor)) {
      return fail(ErrorCode::invalid_input,
                  format("\"{}\" was held in parts by the ranks, and the checkpoint does not keep by which: name it "
                         "with --sharded \"{}=DIMENSION\", or export one merged file",
                         tensor->name, tensor->name));
    }
  }
  return {};
}

Status MindSporeExportPlan::check_tensors() const {
  const std::vector<AppendedValue>& appended = files_.front().appended;
  for (const ManifestTensor* tensor : tensors_) {
    const std::string subject = format("tensor \"{}\"", tensor->name);
    if (!mindspore_name(tensor->dtype)) {
      return fail(ErrorCode::invalid_input,
                  format("{} is {}, which MindSpore does not read from its checkpoint files: export as safetensors",
                         subject, to_string(tensor->dtype)));
    }
    if (tensor->global_shape == Extents{0}) {
      return fail(ErrorCode::invalid_input,
                  subject + " has the shape [0], which MindSpore would read as a scalar: export as safetensors");
    }
    if (std::ranges::find(appended, tensor->name, &AppendedValue::name) != appended.end()) {
      return fail(ErrorCode::invalid_input,
                  subject + " has the name under which MindSpore keeps a number of its own: export as safetensors");
    }
  }
  return {};
}

std::string slice_header(const ManifestTensor& tensor, const TensorBox& part, std::uint64_t slice_bytes) {
  return slice_header(tensor.name, *mindspore_name(tensor.dtype), part.shape, slice_bytes);
}

}  // namespace rekindle
