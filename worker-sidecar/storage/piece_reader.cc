#include "worker-sidecar/storage/piece_reader.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/assert.h"
#include "worker-sidecar/checkpoint/file_entries.h"
#include "worker-sidecar/checkpoint/hash.h"
#include "worker-sidecar/storage/block_source.h"
#include "worker-sidecar/storage/files.h"
#include "worker-sidecar/storage/helpers.h"

namespace rekindle {
namespace {

constexpr std::size_t kBlockBytes = kHashChunkBytes;  // a block is a chunk: whoever reads it can verify it
constexpr std::size_t kBlocksAThreadMin = 4;          // of work, for a thread to be worth its start

char* place_of(const RestoreMemory& memory, const ReadRange& range) {
  const std::span<const Destination> destinations = range.kind == TargetKind::tensor ? memory.tensors : memory.states;
  RK_ASSERT(range.index < destinations.size());
  const Destination& destination = destinations[range.index];
  RK_ASSERT(range.target_byte <= destination.bytes && range.bytes <= destination.bytes - range.target_byte);
  return static_cast<char*>(destination.data) + range.target_byte;
}

// What a plan wants of one file, to be found by place.
class Wanted {
 public:
  explicit Wanted(const FileReads& reads) : ranges_(reads.ranges) {
    for (const ReadRange& range : ranges_) ends_.push_back(std::max(ends_.empty() ? 0 : ends_.back(), range.begin_byte + range.bytes));
  }

  // Copies what the ranges want of the block. Ranges are by begin_byte, but one part of a file may be wanted twice (replicated state).
  void scatter(const RestoreMemory& memory, const BlockSource::Block& block) const {
    const std::uint64_t end = block.offset + block.data.size();
    const auto first = std::ranges::upper_bound(ends_, block.offset) - ends_.begin();  // the first that is not wholly before
    for (auto i = static_cast<std::size_t>(first); i < ranges_.size() && ranges_[i].begin_byte < end; ++i) {
      const ReadRange& range = ranges_[i];
      const std::uint64_t from = std::max(block.offset, range.begin_byte);
      const std::uint64_t to = std::min(end, range.begin_byte + range.bytes);
      if (from < to) std::memcpy(place_of(memory, range) + (from - range.begin_byte), block.data.data() + (from - block.offset), to - from);
    }
  }

  // Those blocks of the file that hold its header or something wanted, in order.
  std::vector<BlockSpan> blocks(std::uint64_t file_bytes, std::uint64_t header_bytes) const {
    std::vector<bool> needed((file_bytes + kBlockBytes - 1) / kBlockBytes);
    const auto need = [&](std::uint64_t begin, std::uint64_t end) {
      for (std::uint64_t block = begin / kBlockBytes; block * kBlockBytes < std::min(end, file_bytes); ++block) needed[block] = true;
    };
    need(0, header_bytes);
    for (const ReadRange& range : ranges_) need(range.begin_byte, range.begin_byte + range.bytes);
    std::vector<BlockSpan> spans;
    for (std::uint64_t block = 0; block < needed.size(); ++block) {
      const std::uint64_t begin = block * kBlockBytes;
      if (needed[block]) spans.push_back({.offset = begin, .bytes = static_cast<std::size_t>(std::min<std::uint64_t>(kBlockBytes, file_bytes - begin))});
    }
    return spans;
  }

 private:
  const std::vector<ReadRange>& ranges_;
  std::vector<std::uint64_t> ends_;  // ends_[i]: behind everything that the first i + 1 want
};

Status check_header(FileSystem& file_system, int descriptor, const std::string& path, const ManifestFile& file, const std::vector<DataEntry>& entries) {
  const Result<std::string> header = read_data_header(file_system, descriptor, file.bytes, path);
  if (!header) return std::unexpected(header.error());
  const Result<std::vector<DataEntry>> misplaced = entries_misplaced(entries, *header, file.bytes);
  if (!misplaced) return std::unexpected(with_context(misplaced.error(), path));
  if (misplaced->empty()) return {};
  return fail(ErrorCode::corrupt, path + " does not have \"" + misplaced->front().key + "\" where its manifest says: the manifest was changed");
}

std::unexpected<Error> damaged(const std::string& path, const std::string& what) {
  return fail(ErrorCode::corrupt, path + " does not have the hash that its manifest says" + what + ": it was damaged after it was written");
}

// One call of read_plan.
class Reading {
 public:
  Reading(FileSystem& file_system, const RestoreMemory& memory, const std::function<Status()>& may_go_on, const ReadOptions& options)
      : file_system_(file_system), memory_(memory), may_go_on_(may_go_on), way_max_(options.way_max.value_or(options.ranks_here > 1 ? ReadWay::plain : ReadWay::queued)) {
    RK_ASSERT(options.threads_max > 0);
    // Those that share a node share its processors, too.
    const unsigned processors = std::max(1u, std::thread::hardware_concurrency());
    const unsigned threads = options.ranks_here > 1 ? 1 : std::min({options.threads_max, processors, BlockSourceOptions::kBlocksMax});
    for (unsigned i = 0; i < threads; ++i) {
      sources_.emplace_back(file_system, BlockSourceOptions{.block_bytes = kBlockBytes, .way_max = way_max_, .blocks_max = BlockSourceOptions::kBlocksMax / threads});
    }
  }

  Status read_file(const std::string& path, const ManifestFile& expected, const std::vector<DataEntry>& entries, const FileReads& reads) {
    const Result<SourceFile> file = SourceFile::open(file_system_, path, way_max_);
    if (!file) return std::unexpected(file.error());
    if (file->bytes() != expected.bytes) {
      return fail(ErrorCode::corrupt, path + " has " + std::to_string(file->bytes()) + " bytes; its manifest says " + std::to_string(expected.bytes));
    }
    const Wanted wanted(reads);
    const Status status = expected.chunks.empty() ? read_whole(*file, expected, wanted) : read_chunks(*file, expected, entries, wanted);
    if (!status) return status;
    if (expected.bytes >= largest_bytes_) {
      largest_bytes_ = expected.bytes;
      report_.way = sources_.front().way();
    }
    return check_header(file_system_, file->plain(), path, expected, entries);
  }

  const ReadReport& report() const { return report_; }

 private:
  Status may_go_on() const { return may_go_on_ ? may_go_on_() : Status(); }

  Status read_whole(const SourceFile& file, const ManifestFile& expected, const Wanted& wanted) {
    HashStream hash;
    BlockSource& source = sources_.front();
    source.start(file, every_block(expected.bytes, kBlockBytes));
    while (true) {
      const Result<std::optional<BlockSource::Block>> block = source.next();
      if (!block) return std::unexpected(block.error());
      if (!*block) break;
      hash.update((*block)->data.data(), (*block)->data.size());
      wanted.scatter(memory_, **block);
      report_.bytes += (*block)->data.size();
      if (Status status = may_go_on(); !status) return status;
    }
    if (hash.digest() != expected.hash) return damaged(file.path(), "");
    return {};
  }

  // Each thread takes the next block that nobody has taken.
  Status read_chunks(const SourceFile& file, const ManifestFile& expected, const std::vector<DataEntry>& entries, const Wanted& wanted) {
    // Data begins where the header ends.
    const std::uint64_t header_bytes = std::ranges::min(entries, {}, &DataEntry::begin_byte).begin_byte;
    const std::vector<BlockSpan> blocks = wanted.blocks(expected.bytes, header_bytes);
    std::atomic<std::size_t> taken = 0;
    std::atomic<bool> failed = false;
    std::mutex mutex;
    Status result;
    const auto take = [&]() -> std::optional<BlockSpan> {
      if (failed) return std::nullopt;
      const std::size_t index = taken++;
      return index < blocks.size() ? std::optional(blocks[index]) : std::nullopt;
    };
    const auto work = [&](unsigned thread) {
      Status status = read_some(sources_[thread], file, expected, wanted, take);
      if (status) return;
      const std::lock_guard held(mutex);
      if (!failed) result = std::move(status);
      failed = true;
    };
    const auto threads = static_cast<unsigned>(std::clamp<std::size_t>(blocks.size() / kBlocksAThreadMin, 1, sources_.size()));
    run_with_helpers(threads, [&](unsigned thread) { work(thread); });
    for (const BlockSpan& block : blocks) report_.bytes += block.bytes;
    return result;
  }

  Status read_some(BlockSource& source, const SourceFile& file, const ManifestFile& expected, const Wanted& wanted,
                   const std::function<std::optional<BlockSpan>()>& take) const {
    source.start(file, take);
    while (true) {
      const Result<std::optional<BlockSource::Block>> block = source.next();
      if (!block) return std::unexpected(block.error());
      if (!*block) return {};
      const BlockSource::Block& found = **block;
      if (chunk_hash_of(found.data) != expected.chunks[found.offset / kHashChunkBytes]) {
        return damaged(file.path(), " in bytes " + std::to_string(found.offset) + " to " + std::to_string(found.offset + found.data.size()));
      }
      wanted.scatter(memory_, found);
      if (&source == &sources_.front()) {
        if (Status status = may_go_on(); !status) return status;
      }
    }
  }

  FileSystem& file_system_;
  const RestoreMemory& memory_;
  const std::function<Status()>& may_go_on_;
  const ReadWay way_max_;
  std::vector<BlockSource> sources_;  // one for each thread
  ReadReport report_;
  std::uint64_t largest_bytes_ = 0;
};

}  // namespace

Status read_plan(FileSystem& file_system, const std::string& checkpoint_folder, const Manifest& manifest,
                 const RestorePlan& plan, const RestoreMemory& memory, const std::function<Status()>& may_go_on, const ReadOptions& options) {
  Reading reading(file_system, memory, may_go_on, options);
  const EntriesByFile entries = entries_by_file(manifest);
  for (const FileReads& reads : plan.files) {
    const ManifestFile* expected = find_file(manifest, reads.file);
    const auto placed = entries.find(reads.file);
    if (expected == nullptr || placed == entries.end()) return fail(ErrorCode::invalid_input, "the manifest does not list " + reads.file);
    if (Status status = reading.read_file(join_path(checkpoint_folder, reads.file), *expected, placed->second, reads); !status) return status;
  }
  if (options.report != nullptr) *options.report = reading.report();
  return {};
}

Status read_plan_unverified(FileSystem& file_system, const std::string& checkpoint_folder, const RestorePlan& plan,
                            const RestoreMemory& memory) {
  for (const FileReads& reads : plan.files) {
    const std::string path = join_path(checkpoint_folder, reads.file);
    const Result<OpenFile> file = open_for_reading(file_system, path);
    if (!file) return std::unexpected(file.error());
    for (const ReadRange& range : reads.ranges) {
      if (Status status = read_exactly(file_system, file->descriptor(), place_of(memory, range), range.bytes, range.begin_byte, path); !status) {
        return status;
      }
    }
  }
  return {};
}

}  // namespace rekindle
