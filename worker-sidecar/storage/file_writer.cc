#include "worker-sidecar/storage/file_writer.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "common/base/assert.h"
#include "common/base/format.h"
#include "worker-sidecar/checkpoint/hash.h"
#include "worker-sidecar/checkpoint/manifest.h"
#include "worker-sidecar/checkpoint/names.h"
#include "worker-sidecar/storage/files.h"

namespace rekindle {

struct DataFileWriter::State {
  FileSystem& file_system;
  std::string folder;
  // removes the file from where it was made, whatever the folder's name leads to by then
  OpenFile open_folder;
  std::string name;
  std::string path;
  DataFileLayout layout;
  OpenFile file;
  HashStream hash;
  ChunkHashes chunks{kHashChunkBytes};
  std::function<Status()> may_go_on;
  std::optional<BlockSink> sink;  // has its file in `file`
  bool finished = false;

  Status open_sink(BlockOptions options) {
    may_go_on = options.may_go_on;
    options.on_bytes = [this](const char* data, std::size_t bytes) {
      hash.update(data, bytes);
      chunks.update(data, bytes);
    };
    Result<BlockSink> opened = BlockSink::open(file_system, file, path, layout.file_bytes, std::move(options));
    if (!opened) return std::unexpected(opened.error());
    sink.emplace(std::move(*opened));
    return {};
  }

  Status make_durable() {
    if (Status status = sink->finish(); !status) return status;
    if (const int result = file_system.fsync(file.descriptor()); result < 0)
      return storage_failure(-result, "syncing", path);
    if (const int result = file.close(); result < 0) return storage_failure(-result, "closing", path);
    if (Status status = fsync_open_folder(file_system, open_folder.descriptor(), folder); !status) return status;
    return may_go_on ? may_go_on() : Status();
  }
};

DataFileWriter::DataFileWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
DataFileWriter::DataFileWriter(DataFileWriter&&) noexcept = default;

DataFileWriter::~DataFileWriter() {
  if (state_ == nullptr || state_->finished) return;
  state_->sink.reset();  // no write is under way any more
  state_->file.close();
  state_->file_system.unlink_in(state_->open_folder.descriptor(), state_->name);
}

Result<DataFileWriter> DataFileWriter::create(FileSystem& file_system, const std::string& folder,
                                              const std::string& file_name, const std::vector<DataEntry>& entries,
                                              WriteOptions options) {
  RK_ASSERT(is_safe_file_name(file_name));
  Result<DataFileLayout> layout = lay_out_data_file(entries);
  if (!layout) return std::unexpected(layout.error());
  Result<OpenFile> open_folder = open_for_removing(file_system, folder, "");
  if (!open_folder) return std::unexpected(open_folder.error());
  const std::string path = join_path(folder, file_name);
  const int descriptor = file_system.open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, kSharedFileMode);
  if (descriptor < 0) return storage_failure(-descriptor, "creating", path);
  DataFileWriter writer(std::make_unique<State>(State{.file_system = file_system,
                                                      .folder = folder,
                                                      .open_folder = std::move(*open_folder),
                                                      .name = file_name,
                                                      .path = path,
                                                      .layout = std::move(*layout),
                                                      .file = OpenFile(file_system, descriptor)}));
  State& state = *writer.state_;
  // The umask of a training process must not shut the sidecar out; storage without modes is used as
  // it is.
  file_system.fchmod(state.file.descriptor(), kSharedFileMode);
  Status status = state.open_sink({.block_bytes = options.block_bytes,
                                   .way_max = options.way_max,
                                   .may_go_on = std::move(options.may_go_on),
                                   .bytes_per_second_max = options.bytes_per_second_max,
                                   .waiter = options.waiter});
  if (status) status = state.sink->append(state.layout.header.data(), state.layout.header.size());
  if (!status) return std::unexpected(status.error());
  return writer;
}

const DataFileLayout& DataFileWriter::layout() const { return state_->layout; }

Status DataFileWriter::append(const void* data, std::size_t bytes) { return state_->sink->append(data, bytes); }

Result<WrittenDataFile> DataFileWriter::finish() {
  State& state = *state_;
  const std::uint64_t taken = state.sink->bytes_taken();
  if (taken != state.layout.file_bytes) {
    return fail(ErrorCode::internal,
                format("{} is missing {} bytes of its data", state.path, state.layout.file_bytes - taken));
  }
  if (Status status = state.make_durable(); !status) return std::unexpected(status.error());
  WrittenDataFile written{
      .bytes = taken, .hash = state.hash.digest(), .chunks = state.chunks.take(), .way = state.sink->way()};
  written.entries.resize(state.layout.entries.size());
  for (std::size_t i = 0; i < state.layout.entries.size(); ++i)
    written.entries[state.layout.source[i]] = state.layout.entries[i];
  state.finished = true;
  return written;
}

namespace {

// The one place where bytes leave registered memory.
Status append_piece(DataFileWriter& writer, const MemoryPiece& piece, std::uint64_t bytes, std::vector<char>& buffer) {
  if (piece.array == nullptr) return writer.append(piece.data, bytes);
  for (std::uint64_t done = 0; done < bytes;) {
    const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(kCopyBytes, bytes - done));
    if (buffer.size() < part) buffer.resize(part);
    if (Status status = piece.array->copy_out(buffer.data(), piece.begin_byte + done, part); !status) return status;
    if (Status status = writer.append(buffer.data(), part); !status) return status;
    done += part;
  }
  return {};
}

}  // namespace

Result<WrittenDataFile> write_data_file(FileSystem& file_system, const std::string& folder,
                                        const std::string& file_name, std::span<const MemoryPiece> pieces,
                                        const WriteOptions& options) {
  std::vector<DataEntry> entries;
  entries.reserve(pieces.size());
  for (const MemoryPiece& piece : pieces) entries.push_back(piece.entry);
  Result<DataFileWriter> writer = DataFileWriter::create(file_system, folder, file_name, entries, options);
  if (!writer) return std::unexpected(writer.error());
  const DataFileLayout& layout = writer->layout();
  std::vector<char> buffer;  // grows to what is needed, which is nothing for memory of this process
  for (std::size_t i = 0; i < layout.entries.size(); ++i) {
    const std::uint64_t bytes = layout.entries[i].end_byte - layout.entries[i].begin_byte;
    if (Status status = append_piece(*writer, pieces[layout.source[i]], bytes, buffer); !status)
      return std::unexpected(status.error());
  }
  return writer->finish();
}

}  // namespace rekindle
