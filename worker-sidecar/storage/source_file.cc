#include "worker-sidecar/storage/source_file.h"

#include <fcntl.h>

#include <utility>

#include "worker-sidecar/storage/block_memory.h"

namespace rekindle {

std::string_view to_string(ReadWay way) {
  switch (way) {
    case ReadWay::plain: return "plain";
    case ReadWay::direct: return "direct";
    case ReadWay::queued: return "queued";
  }
  return "plain";
}

Result<SourceFile> SourceFile::open(FileSystem& file_system, std::string path, ReadWay way_max) {
  Result<OpenFile> plain = open_for_reading(file_system, path);
  if (!plain) return std::unexpected(plain.error());
  SourceFile file(std::move(path), std::move(*plain));
  FileInfo info;
  if (const int result = file_system.fstat(file.plain(), info); result < 0)
    return storage_failure(-result, "looking at", file.path_);
  if (info.kind != FileKind::file) return fail(ErrorCode::corrupt, file.path_ + " is not a plain file");
  file.bytes_ = info.bytes;
  if (way_max == ReadWay::plain || info.bytes < kDirectFileBytesMin) return file;
  // tmpfs and some network file systems refuse: through the cache, then.
  if (const int descriptor = file_system.open(file.path_, O_RDONLY | O_DIRECT | O_NOFOLLOW, 0); descriptor >= 0)
    file.direct_.emplace(file_system, descriptor);
  return file;
}

}  // namespace rekindle
