// Writes one safetensors file from memory: in blocks (storage/block_sink.h), hashing on the way,
// durable at the end. One file, one thread.
//
// The source memory is read once. A source that changes meanwhile is caught by `may_go_on`, which
// is called after each block and once more before the file is reported (PROTOCOL P4); on any
// failure the file is removed and its space given back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/error.h"
#include "worker-sidecar/checkpoint/safetensors.h"
#include "worker-sidecar/storage/array_memory.h"
#include "worker-sidecar/storage/block_sink.h"
#include "worker-sidecar/storage/file_system.h"

namespace rekindle {

// What to write and where it lies in memory. The byte fields of `entry` are not read; `data` has as
// many bytes as type and shape say.
struct MemoryPiece {
  DataEntry entry;
  const void* data = nullptr;
  // Instead of `data`: the piece is what begins at `begin_byte` of this array, and goes through a
  // buffer of at most kCopyBytes.
  const ArrayMemory* array = nullptr;
  std::uint64_t begin_byte = 0;
};

inline constexpr std::size_t kCopyBytes = 4u << 20;

struct WriteOptions {
  std::size_t block_bytes = 4u << 20;
  WriteWay way_max = WriteWay::queued;
  // An error stops the write and becomes its result. Empty: never stopped.
  std::function<Status()> may_go_on;
  // of this file; 0: no cap
  std::uint64_t bytes_per_second_max = 0;
  // for the pauses of a capped write; null: the kernel's clock
  Waiter* waiter = nullptr;
};

struct WrittenDataFile {
  std::uint64_t bytes = 0;
  std::string hash;                 // xxh3_128 of the whole file
  std::vector<std::string> chunks;  // xxh3_64 of each kHashChunkBytes
  // entries[i] is pieces[i] with its place in the file
  std::vector<DataEntry> entries;
  WriteWay way = WriteWay::plain;
};

// `path` must not exist. The file is mode 0660 and fsynced, its folder too.
Result<WrittenDataFile> write_data_file(FileSystem& file_system, const std::string& folder,
                                        const std::string& file_name, std::span<const MemoryPiece> pieces,
                                        const WriteOptions& options = {});

// The same for data that does not lie in memory at once: the bytes of the entries in the order of
// `layout().entries`, in any portions.
class DataFileWriter {
 public:
  // Creates the file and writes the header.
  static Result<DataFileWriter> create(FileSystem& file_system, const std::string& folder, const std::string& file_name,
                                       const std::vector<DataEntry>& entries, WriteOptions options = {});
  // removes the file unless it was finished
  ~DataFileWriter();
  DataFileWriter(DataFileWriter&&) noexcept;

  const DataFileLayout& layout() const;
  Status append(const void* data, std::size_t bytes);
  // An error when bytes are missing. `entries` of the answer are in the order given to create.
  Result<WrittenDataFile> finish();

 private:
  struct State;
  explicit DataFileWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace rekindle
