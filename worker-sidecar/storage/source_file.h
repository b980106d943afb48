// A file that is about to be read in large blocks: open through the page cache, and past it where
// that is requested and the storage can.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/enum_names.h"
#include "common/base/error.h"
#include "worker-sidecar/storage/files.h"

namespace rekindle {

// How the bytes of a file come from the disk.
enum class ReadWay : std::uint8_t {
  // through the page cache, which fetches ahead: the disk gives once what several processes of one
  // node read
  plain,
  // past it, one block at a time
  direct,
  // past it, several blocks at a time (io_uring)
  queued,
};
constexpr auto enum_names(ReadWay) {
  return std::to_array<EnumName<ReadWay>>(
      {{ReadWay::plain, "plain"}, {ReadWay::direct, "direct"}, {ReadWay::queued, "queued"}});
}

class SourceFile {
 public:
  // Small files are opened plainly whatever is requested. Any number of sources may read it at
  // once.
  static Result<SourceFile> open(FileSystem& file_system, std::string path, ReadWay way_max);

  const std::string& path() const { return path_; }
  std::uint64_t bytes() const { return bytes_; }  // as found when it was opened
  int plain() const { return plain_.descriptor(); }
  int direct() const { return direct_ ? direct_->descriptor() : -1; }  // -1: only plainly

 private:
  SourceFile(std::string path, OpenFile plain) : path_(std::move(path)), plain_(std::move(plain)) {}

  std::string path_;
  std::uint64_t bytes_ = 0;
  OpenFile plain_;
  std::optional<OpenFile> direct_;
};

}  // namespace rekindle
