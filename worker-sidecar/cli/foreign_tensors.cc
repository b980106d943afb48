#include "worker-sidecar/cli/foreign_tensors.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "common/base/format.h"
#include "common/base/json_fields.h"
#include "worker-sidecar/checkpoint/coverage.h"
#include "worker-sidecar/checkpoint/names.h"
#include "worker-sidecar/checkpoint/safetensors.h"
#include "worker-sidecar/mindspore/appended_value.h"
#include "worker-sidecar/mindspore/crc32.h"
#include "worker-sidecar/mindspore/dtype_names.h"
#include "worker-sidecar/storage/files.h"

namespace rekindle::cli {
namespace {

constexpr std::size_t kPortionBytes = 4u << 20;
constexpr std::size_t kIndexFileBytesMax = 64u << 20;
constexpr std::string_view kIndexEnding = ".index.json";
constexpr std::string_view kMindSporeEnding = ".ckpt";

struct PlainFile {
  OpenFile file;
  std::uint64_t bytes = 0;
};

Result<PlainFile> open_plain_file(FileSystem& file_system, const std::string& path) {
  // Checked before it is opened: opening a pipe would wait for a writer.
  FileInfo info;
  const int result = file_system.stat(path, info);
  if (result < 0) return storage_failure(-result, "opening", path);
  if (info.kind != FileKind::file)
    return fail(ErrorCode::invalid_input, path + " is not a plain file (of a link, give the file that it leads to)");
  Result<OpenFile> file = open_for_reading(file_system, path);
  if (!file) return std::unexpected(file.error());
  return PlainFile{std::move(*file), info.bytes};
}

Error in_file(const std::string& path, Error error) { return with_context(std::move(error), path); }

class ForeignIndex {
 public:
  ForeignIndex(FileSystem& file_system, Progress& progress) : file_system_(file_system), progress_(progress) {}

  Status add(const std::string& path) {
    if (path.ends_with(kIndexEnding)) return add_sharded(path);
    return path.ends_with(kMindSporeEnding) ? add_mindspore(path) : add_safetensors(path, nullptr);
  }

  Result<ForeignTensors> finish() {
    if (tensors_.empty()) return fail(ErrorCode::invalid_input, "the files hold no tensors");
    ForeignTensors all{.tensors = {}, .step = step_, .left_out = {left_out_.begin(), left_out_.end()}};
    for (auto& [name, tensor] : tensors_) all.tensors.push_back(std::move(tensor));
    return all;
  }

 private:
  Status add_tensor(ForeignTensor tensor) {
    if (Status status = check_tensor(whole_tensor(tensor.name, tensor.dtype, tensor.shape)); !status)
      return std::unexpected(in_file(tensor.path, status.error()));
    const auto [known, is_new] = tensors_.try_emplace(tensor.name, tensor);
    if (is_new) return {};
    return fail(ErrorCode::invalid_input, format("\"{}\" is in {} and in {}. Parts of one tensor, or copies of it, "
                                                 "have to be made one before they are imported",
                                                 tensor.name, known->second.path, tensor.path));
  }

  // `expected`: the names that are to be in it, all of them and no others; null: whatever there is.
  Status add_safetensors(const std::string& path, const std::set<std::string>* expected) {
    const Result<PlainFile> file = open_plain_file(file_system_, path);
    if (!file) return std::unexpected(file.error());
    const Result<std::string> header = read_data_header(file_system_, file->file.descriptor(), file->bytes, path);
    if (!header) return std::unexpected(header.error());
    const Result<std::vector<DataEntry>> entries = decode_data_header(*header, file->bytes);
    if (!entries) return std::unexpected(in_file(path, entries.error()));
    std::set<std::string> found;
    for (const DataEntry& entry : *entries) {
      found.insert(entry.key);
      if (expected != nullptr && !expected->contains(entry.key)) {
        return fail(ErrorCode::invalid_input,
                    format("{} has \"{}\", which the index does not place there", path, entry.key));
      }
      const ContentRange range{entry.begin_byte, entry.end_byte - entry.begin_byte};
      if (Status status = add_tensor({entry.key, entry.dtype, entry.shape, path, {range}}); !status) return status;
    }
    if (expected == nullptr) return {};
    for (const std::string& name : *expected) {
      if (!found.contains(name))
        return fail(ErrorCode::invalid_input,
                    format("{} does not have \"{}\", which the index places there", path, name));
    }
    return {};
  }

  Status add_sharded(const std::string& path) {
    const Result<std::string> text = read_whole_file(file_system_, path, kIndexFileBytesMax);
    if (!text) return std::unexpected(text.error());
    const Result<Json> json = parse_json(*text, path, kIndexFileBytesMax);
    if (!json) return std::unexpected(json.error());
    JsonFields in(*json, path);
    std::map<std::string, std::set<std::string>> names_by_file;
    for (const auto& [name, file] : in.object("weight_map").items()) {
      if (!file.is_string() || !is_safe_file_name(file.get<std::string>())) {
        return fail(ErrorCode::refused,
                    format("{} places \"{}\" in something that is no plain name of a file beside it", path, name));
      }
      names_by_file[file.get<std::string>()].insert(name);
    }
    if (Status status = in.finish(); !status) return status;
    const std::size_t slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    for (const auto& [file, names] : names_by_file) {
      if (Status status = add_safetensors(join_path(folder, file), &names); !status) return status;
    }
    return {};
  }

  Status add_mindspore(const std::string& path) {
    const Result<MindSporeFile> file = index_mindspore_path(file_system_, path, progress_);
    if (!file) return std::unexpected(file.error());
    const Result<std::optional<std::uint64_t>> step = find_number(file_system_, path, *file, kStepNumber);
    if (!step) return std::unexpected(step.error());
    if (*step && step_ && *step_ != **step) {
      return fail(ErrorCode::invalid_input,
                  format("{} is of step {}, the files before it are of step {}", path, **step, *step_));
    }
    if (*step) step_ = *step;
    for (const MindSporeEntry& entry : file->entries) {
      if (!is_model_tensor(entry)) {
        left_out_.insert(entry.name);
        continue;
      }
      const std::optional<Dtype> dtype = parse_mindspore_name(entry.type);
      if (!dtype)
        return fail(ErrorCode::invalid_input,
                    format("{}: \"{}\" has the type {}, which has no counterpart here", path, entry.name, entry.type));
      if (Status status = add_tensor({entry.name, *dtype, entry.shape, path, entry.content}); !status) return status;
    }
    return {};
  }

  FileSystem& file_system_;
  Progress& progress_;
  std::map<std::string, ForeignTensor> tensors_;
  std::optional<std::uint64_t> step_;
  std::set<std::string> left_out_;
};

Status check_crc(FileSystem& file_system, const std::string& path, const MindSporeFile& file, Progress& progress) {
  Crc32 crc;
  progress.begin("checking " + path);
  std::uint64_t done = 0;
  const Status status =
      stream_ranges(file_system, path, {{0, file.message_bytes}}, [&](const char* data, std::size_t bytes) -> Status {
        crc.update(data, bytes);
        progress.report(done += bytes, file.message_bytes);
        return {};
      });
  if (!status) return status;
  if (crc.value() == *file.checksum) return {};
  return fail(ErrorCode::corrupt, path + " is damaged: its bytes do not have the checksum that it was saved with");
}

}  // namespace

Result<ForeignTensors> index_foreign_files(FileSystem& file_system, const std::vector<std::string>& paths,
                                           Progress& progress) {
  ForeignIndex index(file_system, progress);
  for (const std::string& path : paths) {
    if (Status status = index.add(path); !status) return std::unexpected(status.error());
  }
  return index.finish();
}

std::uint64_t content_bytes(const ForeignTensor& tensor) {
  std::uint64_t bytes = 0;
  for (const ContentRange& range : tensor.content) bytes += range.bytes;
  return bytes;
}

Result<MindSporeFile> index_mindspore_path(FileSystem& file_system, const std::string& path, Progress& progress) {
  const Result<PlainFile> file = open_plain_file(file_system, path);
  if (!file) return std::unexpected(file.error());
  Result<MindSporeFile> index =
      index_mindspore_file(file->bytes, [&](std::uint64_t offset, std::size_t bytes) -> Result<std::string> {
        std::string read(bytes, '\0');
        if (Status status = read_exactly(file_system, file->file.descriptor(), read.data(), bytes, offset, path);
            !status)
          return std::unexpected(status.error());
        return read;
      });
  if (!index) return std::unexpected(in_file(path, index.error()));
  if (index->checksum) {
    if (Status status = check_crc(file_system, path, *index, progress); !status) return std::unexpected(status.error());
  }
  return index;
}

Result<std::optional<std::uint64_t>> find_number(FileSystem& file_system, const std::string& path,
                                                 const MindSporeFile& file, std::string_view name) {
  const auto entry = std::ranges::find(file.entries, name, &MindSporeEntry::name);
  if (entry == file.entries.end()) return std::nullopt;
  if (!is_whole_number(*entry))
    return fail(ErrorCode::invalid_input, format("{}: \"{}\" is no whole number", path, name));
  std::string content;
  const Status status =
      stream_ranges(file_system, path, entry->content, [&](const char* data, std::size_t bytes) -> Status {
        content.append(data, bytes);
        return {};
      });
  if (!status) return std::unexpected(status.error());
  const std::optional<std::uint64_t> value = decode_number(*entry, content);
  if (!value) return fail(ErrorCode::invalid_input, format("{}: \"{}\" is negative", path, name));
  return value;
}

Status stream_ranges(FileSystem& file_system, const std::string& path, const std::vector<ContentRange>& ranges,
                     const std::function<Status(const char*, std::size_t)>& take) {
  const Result<PlainFile> file = open_plain_file(file_system, path);
  if (!file) return std::unexpected(file.error());
  std::vector<char> buffer;
  for (const ContentRange& range : ranges) {
    for (std::uint64_t done = 0; done < range.bytes;) {
      buffer.resize(static_cast<std::size_t>(std::min<std::uint64_t>(kPortionBytes, range.bytes - done)));
      if (Status status = read_exactly(file_system, file->file.descriptor(), buffer.data(), buffer.size(),
                                       range.begin_byte + done, path);
          !status)
        return status;
      if (Status status = take(buffer.data(), buffer.size()); !status) return status;
      done += buffer.size();
    }
  }
  return {};
}

}  // namespace rekindle::cli
