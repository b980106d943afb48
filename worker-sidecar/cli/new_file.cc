#include "worker-sidecar/cli/new_file.h"

#include <fcntl.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "common/base/format.h"
#include "worker-sidecar/checkpoint/names.h"
#include "worker-sidecar/storage/block_sink.h"
#include "worker-sidecar/storage/files.h"

namespace rekindle::cli {
namespace {

std::unexpected<Error> name_taken(const std::string& path) {
  return fail(ErrorCode::already_exists,
              path + " is there already and stays as it is. Move it away, or give another name");
}

}  // namespace

struct NewFile::State {
  FileSystem& file_system;
  std::string folder;
  std::string path;
  std::string temporary;
  OpenFile file;
  std::optional<BlockSink> sink;  // has its file in `file`
};

NewFile::NewFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
NewFile::NewFile(NewFile&&) noexcept = default;

NewFile::~NewFile() {
  if (state_ == nullptr) return;
  state_->sink.reset();  // no write is under way any more
  state_->file.close();
  state_->file_system.unlink(state_->temporary);
}

Result<NewFile> NewFile::create(FileSystem& file_system, const std::string& folder, const std::string& name,
                                std::uint64_t bytes, const std::string& nonce) {
  if (!is_safe_file_name(name))
    return fail(ErrorCode::invalid_input, format("\"{}\" cannot be the name of a file", name));
  const std::string path = join_path(folder, name);
  FileInfo info;
  if (file_system.stat(path, info) == 0) return name_taken(path);
  const std::string temporary = join_path(folder, "." + nonce);
  const int descriptor = file_system.open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, kSharedFileMode);
  if (descriptor < 0) return storage_failure(-descriptor, "creating", temporary);
  NewFile file(std::make_unique<State>(State{.file_system = file_system,
                                             .folder = folder,
                                             .path = path,
                                             .temporary = temporary,
                                             .file = OpenFile(file_system, descriptor)}));
  Result<BlockSink> sink = BlockSink::open(file_system, file.state_->file, temporary, bytes, {});
  if (!sink) return std::unexpected(sink.error());
  file.state_->sink.emplace(std::move(*sink));
  return file;
}

Status NewFile::append(const void* data, std::size_t bytes) { return state_->sink->append(data, bytes); }

Result<std::string> NewFile::sync() {
  if (Status status = state_->sink->finish(); !status) return std::unexpected(status.error());
  if (const int result = state_->file_system.fsync(state_->file.descriptor()); result < 0)
    return storage_failure(-result, "syncing", state_->temporary);
  if (const int result = state_->file.close(); result < 0)
    return storage_failure(-result, "closing", state_->temporary);
  return state_->temporary;
}

Status NewFile::publish() {
  FileSystem& file_system = state_->file_system;
  if (const int result = file_system.link(state_->temporary, state_->path); result < 0) {
    // A network file system may have repeated the request: then the name is taken by this very
    // file.
    FileInfo ours;
    FileInfo there;
    const bool linked_all_the_same = result == -EEXIST && file_system.stat(state_->temporary, ours) == 0 &&
                                     file_system.stat(state_->path, there) == 0 && ours.inode == there.inode &&
                                     ours.links >= 2;
    if (!linked_all_the_same)
      return result == -EEXIST ? Status(name_taken(state_->path)) : storage_failure(-result, "creating", state_->path);
  }
  return fsync_folder(file_system, state_->folder);
}

}  // namespace rekindle::cli
