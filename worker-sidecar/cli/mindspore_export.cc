#include "worker-sidecar/cli/mindspore_export.h"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <set>
#include <utility>

#include "worker-sidecar/checkpoint/cursor.h"
#include "worker-sidecar/cli/new_file.h"
#include "worker-sidecar/mindspore/checkpoint_file.h"
#include "worker-sidecar/mindspore/export_plan.h"
#include "worker-sidecar/storage/files.h"

namespace rekindle::cli {
namespace {

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

class MindSporeWriter {
 public:
  MindSporeWriter(FileSystem& file_system, const OpenedCheckpoint& checkpoint, const MindSporeExportPlan& plan,
                  const std::string& nonce, Progress& progress)
      : file_system_(file_system), checkpoint_(checkpoint), plan_(plan), nonce_(nonce), progress_(progress) {
    for (const MindSporeFilePlan& file : plan.files()) all_bytes_ += plan.bytes_of(file);
  }

  Result<ExportedFile> write(const MindSporeFilePlan& planned, const std::string& folder) {
    const std::uint64_t bytes = plan_.bytes_of(planned);
    Result<NewFile> file = NewFile::create(file_system_, folder, planned.name, bytes, nonce_);
    if (!file) return std::unexpected(file.error());
    for (const ManifestTensor* tensor : plan_.tensors()) {
      if (Status status = write_tensor(*file, *tensor, plan_.part_of(*tensor, planned)); !status)
        return std::unexpected(status.error());
    }
    for (const AppendedValue& value : planned.appended) {
      const std::string entry = encode(value);
      if (Status status = file->append(entry.data(), entry.size()); !status) return std::unexpected(status.error());
    }
    if (const Result<std::string> synced = file->sync(); !synced) return std::unexpected(synced.error());
    if (Status status = file->publish(); !status) return std::unexpected(status.error());
    return ExportedFile{join_path(folder, planned.name), bytes};
  }

 private:
  // Blocks and slices have borders of their own: a block may end one slice and begin the next.
  Status write_tensor(NewFile& file, const ManifestTensor& tensor, const TensorBox& box) {
    std::vector<std::uint64_t> slices = slices_of(box_bytes(tensor, box));
    std::ranges::reverse(slices);
    std::uint64_t left = 0;
    const auto begin_slice = [&] {
      left = slices.back();
      slices.pop_back();
      const std::string header = slice_header(tensor, box, left);
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
  const MindSporeExportPlan& plan_;
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

  // One inside the other; the path of the innermost.
  Result<std::string> make_folders(const std::vector<std::string>& names) {
    std::string path = target_;
    for (const std::string& name : names) {
      if (Status status = make_folder(path, name); !status) return std::unexpected(status.error());
      path = join_path(path, name);
    }
    return path;
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
  Status make_folder(const std::string& parent, const std::string& name) {
    const std::string path = join_path(parent, name);
    parents_.insert(parent);
    const int result = file_system_.mkdir(path, 0777);
    if (result == -EEXIST) return {};
    if (result < 0) return storage_failure(-result, "creating", path);
    folders_.push_back(path);
    return {};
  }
  void remove(const std::string& path, FileKind kind) {
    static_cast<void>(remove_beneath(file_system_, target_, path.substr(join_path(target_, "").size()), kind));
  }

  FileSystem& file_system_;
  const std::string target_;
  std::set<std::string> parents_;
  std::vector<std::string> folders_;
  std::vector<std::string> files_;
  bool kept_ = false;
};

}  // namespace

Result<std::vector<ExportedFile>> export_mindspore(FileSystem& file_system, const OpenedCheckpoint& checkpoint,
                                                   const std::vector<const ManifestTensor*>& tensors,
                                                   const ExportQuestion& question, const std::string& nonce,
                                                   Progress& progress) {
  const Result<std::optional<std::uint64_t>> kept_epoch = find_epoch(file_system, checkpoint);
  if (!kept_epoch) return std::unexpected(kept_epoch.error());
  const Manifest& manifest = checkpoint.manifest;
  const Result<MindSporePlace> place = choose_place(checkpoint.name, manifest.step, *kept_epoch, question.mindspore);
  if (!place) return std::unexpected(place.error());
  const Result<MindSporeExportPlan> plan = MindSporeExportPlan::make(manifest, tensors, *place, question.mindspore);
  if (!plan) return std::unexpected(plan.error());
  FileInfo info;
  if (file_system.stat(question.target + "/.", info) != 0 || info.kind != FileKind::folder) {
    return fail(
        ErrorCode::not_found,
        question.target +
            " is not a folder. MindSpore's files are named by epoch and step: give the folder to put them into");
  }
  MindSporeWriter writer(file_system, checkpoint, *plan, nonce, progress);
  MadeSoFar made(file_system, question.target);
  std::vector<std::string> folders;
  for (const MindSporeFilePlan& planned : plan->files()) {
    Result<std::string> folder = made.make_folders(planned.folders);
    if (!folder) return std::unexpected(folder.error());
    folders.push_back(std::move(*folder));
  }
  if (Status status = made.sync_folders(); !status) return std::unexpected(status.error());
  std::vector<ExportedFile> files;
  for (std::size_t i = 0; i < folders.size(); ++i) {
    Result<ExportedFile> file = writer.write(plan->files()[i], folders[i]);
    if (!file) return std::unexpected(file.error());
    made.add_file(file->path);
    files.push_back(std::move(*file));
  }
  made.keep();
  return files;
}

}  // namespace rekindle::cli
