#include "worker-sidecar/cli/mindspore_export.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "common/base/format.h"
#include "worker-sidecar/checkpoint/coverage.h"
#include "worker-sidecar/checkpoint/cursor.h"
#include "worker-sidecar/cli/new_file.h"
#include "worker-sidecar/mindspore/checkpoint_file.h"
#include "worker-sidecar/mindspore/dtype_names.h"
#include "worker-sidecar/mindspore/file_names.h"
#include "worker-sidecar/storage/files.h"

namespace rekindle::cli {
namespace {

// A value beside the tensors: append_info, as MindSpore calls it.
struct AppendedValue {
  std::string name;
  std::string_view type;
  std::string content;
};

std::string little_endian(std::uint64_t value) {
  std::string bytes;
  for (int shift = 0; shift < 64; shift += 8) bytes += static_cast<char>(value >> shift & 0xff);
  return bytes;
}

AppendedValue appended_number(std::string name, std::uint64_t value) {
  return {std::move(name), "Int64", little_endian(value)};
}

// The epoch that training itself kept, or nothing.
Result<std::optional<std::uint64_t>> find_epoch(FileSystem& file_system, const OpenedCheckpoint& checkpoint) {
  std::string copies;
  std::vector<std::uint32_t> ranks;
  std::vector<char> bytes;
  for (const ManifestState* state : find_cursor(checkpoint.manifest)) {
    if (Status status = read_state(file_system, checkpoint, *state, bytes); !status)
      return std::unexpected(status.error());
    copies.append(bytes.begin(), bytes.end());
    ranks.push_back(state->rank);
  }
  if (ranks.empty()) return std::nullopt;
  const Result<Cursor> cursor = agree_on_cursor(copies, ranks);
  if (!cursor) return std::unexpected(cursor.error());
  return cursor->epoch;
}

Result<MindSporePlace> find_place(FileSystem& file_system, const OpenedCheckpoint& checkpoint,
                                  const ExportQuestion& question) {
  const std::uint64_t step = checkpoint.manifest.step;
  const std::uint64_t step_in_epoch = question.steps_per_epoch ? (step - 1) % *question.steps_per_epoch + 1 : step;
  const Result<std::optional<std::uint64_t>> kept = find_epoch(file_system, checkpoint);
  if (!kept) return std::unexpected(kept.error());
  if (*kept && question.epoch && **kept != *question.epoch) {
    return fail(ErrorCode::invalid_input, format("--epoch says {}, but the checkpoint says epoch {}; leave --epoch out",
                                                 *question.epoch, **kept));
  }
  if (*kept) return MindSporePlace{**kept, step_in_epoch};
  if (question.epoch) return MindSporePlace{*question.epoch, step_in_epoch};
  if (question.steps_per_epoch) return MindSporePlace{(step - 1) / *question.steps_per_epoch + 1, step_in_epoch};
  return fail(ErrorCode::invalid_input,
              checkpoint.name +
                  " does not say its epoch (training registered no cursor), and MindSpore's names have it: "
                  "give --epoch or --steps-per-epoch");
}

// By tensor, the dimension along which ranks hold equal parts of it.
using Cuts = std::map<const ManifestTensor*, std::size_t>;

Result<Cuts> find_cuts(const std::vector<const ManifestTensor*>& tensors, const Manifest& manifest,
                       const std::vector<std::string>& sharded) {
  Cuts cuts;
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
    for (const ManifestTensor* tensor : tensors) {
      if (any ? !tensor->name.starts_with(name) : tensor->name != name) continue;
      found = true;
      if (dimension >= tensor->global_shape.size() || tensor->global_shape[dimension] % manifest.world_size != 0) {
        return fail(ErrorCode::invalid_input,
                    format("\"{}\" is {}; {} ranks cannot hold equal parts of it along dimension {}", tensor->name,
                           describe_shape(tensor->global_shape), manifest.world_size, dimension));
      }
      cuts[tensor] = dimension;
    }
    if (!found)
      return fail(ErrorCode::invalid_input,
                  format("--sharded names \"{}\", which is not in the checkpoint", each.substr(0, equals)));
  }
  for (const ManifestTensor* tensor : tensors) {
    // Rows are also cut to share the writing; anything else only because ranks hold parts.
    const bool in_shards = std::ranges::any_of(tensor->pieces, [&](const ManifestPiece& piece) {
      return !piece.shape.empty() && !std::ranges::equal(piece.shape.begin() + 1, piece.shape.end(),
                                                         tensor->global_shape.begin() + 1, tensor->global_shape.end());
    });
    if (in_shards && !cuts.contains(tensor)) {
      return fail(ErrorCode::invalid_input,
                  format("\"{}\" was held in parts by the ranks, and the checkpoint does not keep by which: name it "
                         "with --sharded \"{}=DIMENSION\", or export one merged file",
                         tensor->name, tensor->name));
    }
  }
  return cuts;
}

Status check_tensors(const std::vector<const ManifestTensor*>& tensors, const std::vector<AppendedValue>& appended) {
  for (const ManifestTensor* tensor : tensors) {
    const std::string who = format("tensor \"{}\"", tensor->name);
    if (!mindspore_name(tensor->dtype)) {
      return fail(ErrorCode::invalid_input,
                  format("{} is {}, which MindSpore does not read from its checkpoint files: export as safetensors",
                         who, to_string(tensor->dtype)));
    }
    if (tensor->global_shape == Extents{0}) {
      return fail(ErrorCode::invalid_input,
                  who + " has the shape [0], which MindSpore would read as a scalar: export as safetensors");
    }
    if (std::ranges::find(appended, tensor->name, &AppendedValue::name) != appended.end()) {
      return fail(ErrorCode::invalid_input,
                  who + " has the name under which MindSpore keeps a number of its own: export as safetensors");
    }
  }
  return {};
}

// One file that is written.
struct FilePlan {
  std::string folder;
  std::string name;
  std::uint32_t rank = 0;  // whose parts are in it, where tensors are in parts
  std::vector<AppendedValue> appended;
};

class MindSporeWriter {
 public:
  MindSporeWriter(FileSystem& file_system, const OpenedCheckpoint& checkpoint,
                  const std::vector<const ManifestTensor*>& tensors, const Cuts& cuts, const std::string& nonce,
                  Progress& progress)
      : file_system_(file_system),
        checkpoint_(checkpoint),
        tensors_(tensors),
        cuts_(cuts),
        nonce_(nonce),
        progress_(progress) {}

  void expect(const FilePlan& plan) { all_bytes_ += bytes_of(plan); }

  Result<ExportedFile> write(const FilePlan& plan) {
    const std::uint64_t bytes = bytes_of(plan);
    Result<NewFile> file = NewFile::create(file_system_, plan.folder, plan.name, bytes, nonce_);
    if (!file) return std::unexpected(file.error());
    for (const ManifestTensor* tensor : tensors_) {
      if (Status status = write_tensor(*file, *tensor, box_of(*tensor, plan.rank)); !status)
        return std::unexpected(status.error());
    }
    for (const AppendedValue& value : plan.appended) {
      const std::string entry = slice_header(value.name, value.type, {}, value.content.size()) + value.content;
      if (Status status = file->append(entry.data(), entry.size()); !status) return std::unexpected(status.error());
    }
    if (const Result<std::string> synced = file->sync(); !synced) return std::unexpected(synced.error());
    if (Status status = file->publish(); !status) return std::unexpected(status.error());
    return ExportedFile{join_path(plan.folder, plan.name), bytes};
  }

 private:
  TensorBox box_of(const ManifestTensor& tensor, std::uint32_t rank) const {
    TensorBox box = whole_box(tensor);
    if (const auto cut = cuts_.find(&tensor); cut != cuts_.end()) {
      box.shape[cut->second] /= checkpoint_.manifest.world_size;
      box.offset[cut->second] = box.shape[cut->second] * rank;
    }
    return box;
  }

  std::uint64_t bytes_of(const FilePlan& plan) const {
    std::uint64_t bytes = 0;
    for (const ManifestTensor* tensor : tensors_) {
      const TensorBox box = box_of(*tensor, plan.rank);
      for (const std::uint64_t slice : slices_of(box_bytes(*tensor, box)))
        bytes += header_of(*tensor, box, slice).size() + slice;
    }
    for (const AppendedValue& value : plan.appended)
      bytes += slice_header(value.name, value.type, {}, value.content.size()).size() + value.content.size();
    return bytes;
  }

  static std::string header_of(const ManifestTensor& tensor, const TensorBox& box, std::uint64_t slice) {
    return slice_header(tensor.name, *mindspore_name(tensor.dtype), box.shape, slice);
  }

  // Blocks and slices have borders of their own: a block may end one slice and begin the next.
  Status write_tensor(NewFile& file, const ManifestTensor& tensor, const TensorBox& box) {
    std::vector<std::uint64_t> slices = slices_of(box_bytes(tensor, box));
    std::ranges::reverse(slices);
    std::uint64_t left = 0;
    const auto begin_slice = [&] {
      left = slices.back();
      slices.pop_back();
      const std::string header = header_of(tensor, box, left);
      return file.append(header.data(), header.size());
    };
    if (Status status = begin_slice(); !status) return status;
    return stream_box(file_system_, checkpoint_, tensor, box, [&](const char* data, std::size_t bytes) -> Status {
      progress_.report(done_bytes_ += bytes, all_bytes_);
      while (bytes > 0) {
        if (left == 0) {
          if (Status status = begin_slice(); !status) return status;
        }
        const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(left, bytes));
        if (Status status = file.append(data, part); !status) return status;
        data += part;
        bytes -= part;
        left -= part;
      }
      return {};
    });
  }

  FileSystem& file_system_;
  const OpenedCheckpoint& checkpoint_;
  const std::vector<const ManifestTensor*>& tensors_;
  const Cuts& cuts_;
  const std::string& nonce_;
  Progress& progress_;
  std::uint64_t all_bytes_ = 0;
  std::uint64_t done_bytes_ = 0;
};

// Folders and files made so far; what is not kept is removed again.
class MadeSoFar {
 public:
  // Everything lies beneath `target`.
  MadeSoFar(FileSystem& file_system, std::string target) : file_system_(file_system), target_(std::move(target)) {}
  ~MadeSoFar() {
    if (kept_) return;
    for (const std::string& file : files_) remove(file, FileKind::file);
    for (auto folder = folders_.rbegin(); folder != folders_.rend(); ++folder) remove(*folder, FileKind::folder);
  }

  Status make_folder(const std::string& parent, const std::string& name) {
    const std::string path = join_path(parent, name);
    parents_.insert(parent);
    const int result = file_system_.mkdir(path, 0777);
    if (result == -EEXIST) return {};
    if (result < 0) return storage_failure(-result, "creating", path);
    folders_.push_back(path);
    return {};
  }
  // Files in a folder whose own name is lost with the power are lost, too.
  Status sync_folders() {
    for (const std::string& parent : parents_) {
      if (Status status = fsync_folder(file_system_, parent); !status) return status;
    }
    return {};
  }
  void add_file(const std::string& path) { files_.push_back(path); }
  void keep() { kept_ = true; }

 private:
  void remove(const std::string& path, FileKind kind) {
    remove_beneath(file_system_, target_, path.substr(join_path(target_, "").size()), kind);
  }

  FileSystem& file_system_;
  const std::string target_;
  std::set<std::string> parents_;
  std::vector<std::string> folders_;
  std::vector<std::string> files_;
  bool kept_ = false;
};

std::vector<FilePlan> plan_files(const Manifest& manifest, const ExportQuestion& question, MindSporePlace place) {
  const std::string prefix = question.prefix.empty() ? manifest.job.name : question.prefix;
  const std::string name = manifest.kind == CheckpointKind::breakpoint ? breakpoint_file_name(prefix, place)
                                                                       : periodic_file_name(prefix, place);
  const std::vector<AppendedValue> place_values{appended_number("epoch_num", place.epoch),
                                                appended_number("step_num", manifest.step)};
  if (question.layout == ExportLayout::merged)
    return {{.folder = question.target, .name = name, .appended = place_values}};
  std::vector<FilePlan> plans;
  for (std::uint32_t rank = 0; rank < manifest.world_size; ++rank) {
    FilePlan plan{.folder = join_path(question.target, rank_folder_name(rank)),
                  .name = name,
                  .rank = rank,
                  .appended = place_values};
    if (question.layout == ExportLayout::tft) {
      plan.folder = join_path(join_path(question.target, dying_folder_name(manifest.step)), rank_folder_name(rank));
      plan.name = dying_file_name(rank, place);
      plan.appended.push_back({"__exception_save__", "Bool", std::string(1, '\1')});
      plan.appended.push_back(appended_number("cur_rank", rank));
      if (question.steps_per_epoch) plan.appended.push_back(appended_number("batch_num", *question.steps_per_epoch));
    }
    plans.push_back(std::move(plan));
  }
  return plans;
}

}  // namespace

Result<std::vector<ExportedFile>> export_mindspore(FileSystem& file_system, const OpenedCheckpoint& checkpoint,
                                                   const std::vector<const ManifestTensor*>& tensors,
                                                   const ExportQuestion& question, const std::string& nonce,
                                                   Progress& progress) {
  const Result<MindSporePlace> place = find_place(file_system, checkpoint, question);
  if (!place) return std::unexpected(place.error());
  Cuts cuts;
  if (question.layout != ExportLayout::merged) {
    Result<Cuts> found = find_cuts(tensors, checkpoint.manifest, question.sharded);
    if (!found) return std::unexpected(found.error());
    cuts = std::move(*found);
  }
  const std::vector<FilePlan> plans = plan_files(checkpoint.manifest, question, *place);
  if (Status status = check_tensors(tensors, plans.front().appended); !status) return std::unexpected(status.error());
  FileInfo info;
  if (file_system.stat(question.target + "/.", info) != 0 || info.kind != FileKind::folder) {
    return fail(
        ErrorCode::not_found,
        question.target +
            " is not a folder. MindSpore's files are named by epoch and step: give the folder to put them into");
  }
  MindSporeWriter writer(file_system, checkpoint, tensors, cuts, nonce, progress);
  for (const FilePlan& plan : plans) writer.expect(plan);
  MadeSoFar made(file_system, question.target);
  std::vector<ExportedFile> files;
  std::string above = question.target;
  if (question.layout == ExportLayout::tft) {
    const std::string name = dying_folder_name(checkpoint.manifest.step);
    if (Status status = made.make_folder(above, name); !status) return std::unexpected(status.error());
    above = join_path(above, name);
  }
  if (question.layout != ExportLayout::merged) {
    for (const FilePlan& plan : plans) {
      if (Status status = made.make_folder(above, rank_folder_name(plan.rank)); !status)
        return std::unexpected(status.error());
    }
  }
  if (Status status = made.sync_folders(); !status) return std::unexpected(status.error());
  for (const FilePlan& plan : plans) {
    Result<ExportedFile> file = writer.write(plan);
    if (!file) return std::unexpected(file.error());
    made.add_file(file->path);
    files.push_back(std::move(*file));
  }
  made.keep();
  return files;
}

}  // namespace rekindle::cli
