#include "worker-sidecar/cli/checkpoint_place.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "common/base/format.h"
#include "worker-sidecar/checkpoint/names.h"
#include "worker-sidecar/storage/checkpoint_root.h"
#include "worker-sidecar/storage/files.h"
#include "worker-sidecar/storage/scan.h"

namespace rekindle::cli {
namespace {

bool is_folder(FileSystem& file_system, const std::string& path) {
  FileInfo info;
  return file_system.stat(path, info) == 0 && info.kind == FileKind::folder;
}

// Also one that has lost its records, as long as there is a checkpoint in it.
bool is_job_folder(FileSystem& file_system, const std::string& path) {
  std::vector<std::string> names;
  if (file_system.list(path, names) < 0) return false;
  return std::ranges::any_of(names, [](const std::string& name) {
    return name == kJobFileName || name == kAttemptsFolder || parse_folder_name(name);
  });
}

}  // namespace

Result<std::vector<CheckpointPlace>> find_places(FileSystem& file_system, const std::string& directory) {
  std::string resolved;
  if (const int result = file_system.resolve(directory, resolved); result < 0) {
    return fail(ErrorCode::not_found,
                format("{} cannot be opened: {}", directory, std::generic_category().message(-result)));
  }
  const std::filesystem::path path = resolved;
  if (!is_folder(file_system, path.string())) return fail(ErrorCode::invalid_input, directory + " is not a folder");
  if (parse_folder_name(path.filename().string())) {
    return std::vector<CheckpointPlace>{{path.parent_path().string(), path.filename().string()}};
  }
  if (is_job_folder(file_system, path.string())) return std::vector<CheckpointPlace>{{path.string(), std::nullopt}};
  const Result<std::vector<std::string>> names = list_folder(file_system, path.string());
  if (!names) return std::unexpected(names.error());
  std::vector<CheckpointPlace> places;
  for (const std::string& name : *names) {
    const std::string below = join_path(path.string(), name);
    if (is_job_folder(file_system, below)) places.push_back({below, std::nullopt});
  }
  if (places.empty()) {
    return fail(ErrorCode::not_found, directory +
                                          " holds no checkpoints. Give a checkpoint, the folder of a job "
                                          "(<namespace>.<job>), or the root above such folders.");
  }
  return places;
}

std::string display_name(const JobIdentity& job) { return format("{}/{}", job.namespace_name, job.name); }

Result<JobView> inspect_job(FileSystem& file_system, const std::string& job_folder) {
  JobView view{.folder = job_folder};
  Result<FolderScan> scan = scan_job_folder(file_system, job_folder);
  if (!scan) return std::unexpected(scan.error());
  view.scan = std::move(*scan);
  Result<JobIdentity> job = read_job_file(file_system, job_folder);
  if (job) {
    view.job = std::move(*job);
  } else if (job.error().code != ErrorCode::not_found) {
    return std::unexpected(job.error());
  } else {
    for (const FoundFolder& folder : view.scan.folders) {
      if (folder.manifest && *folder.manifest) view.job = (*folder.manifest)->manifest.job;
    }
  }
  view.order = order_candidates(view.scan, view.job);
  const Result<std::vector<std::string>> names = list_folder(file_system, job_folder);
  if (!names) return std::unexpected(names.error());
  for (const std::string& name : *names) {
    const bool ours =
        name == kJobFileName || name == kAttemptsFolder || name.starts_with('.') || parse_folder_name(name);
    if (!ours) view.strangers.push_back(name);
  }
  return view;
}

Result<std::string> pick_checkpoint(const CheckpointPlace& place, const JobView& view) {
  if (place.checkpoint) return *place.checkpoint;
  if (view.order.usable.empty()) {
    return fail(ErrorCode::not_found,
                view.folder + " has no checkpoint that a job could restore. `rekindle checkpoint ls` says why.");
  }
  return view.order.usable.front().path;
}

}  // namespace rekindle::cli
