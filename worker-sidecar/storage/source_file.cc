#include "worker-sidecar/storage/source_file.h"

#include <fcntl.h>

#include <utility>

#include "worker-sidecar/storage/block_memory.h"

namespace rekindle {

Result<SourceFile> SourceFile::open(FileSystem& file_system, std::string path, ReadWay way_max) {
  FileInfo info;
  Result<OpenFile> plain = open_for_reading(file_system, path, &info);
  if (!plain) return std::unexpected(plain.error());
  SourceFile file(std::move(path), std::move(*plain));
  file.bytes_ = info.bytes;
  if (way_max == ReadWay::plain || info.bytes < kDirectFileBytesMin) return file;
  // tmpfs and some network file systems refuse: through the cache, then.
  if (Result<OpenFile> direct = open_for_reading(file_system, file.path_, nullptr, O_DIRECT))
    file.direct_.emplace(std::move(*direct));
  return file;
}

}  // namespace rekindle
