#include "worker-sidecar/storage/piece_reader.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/assert.h"
#include "common/base/format.h"
#include "worker-sidecar/checkpoint/file_entries.h"
#include "worker-sidecar/checkpoint/hash.h"
#include "worker-sidecar/storage/block_source.h"
#include "worker-sidecar/storage/files.h"
#include "worker-sidecar/storage/helpers.h"
#include "worker-sidecar/storage/wanted_parts.h"

namespace rekindle {
namespace {

// a block is a chunk: its reader can verify it
constexpr std::size_t kBlockBytes = kHashChunkBytes;
constexpr std::size_t kBlocksAThreadMin = 4;  // of work, for a thread to be worth its start
// between runs, read rather than left out by one more call of the system
constexpr std::uint64_t kGapBytesMax = 64u << 10;

bool has_arrays(const RestoreMemory& memory) {
  return std::ranges::any_of(memory.tensors,
                             [](const Destination& destination) { return destination.array != nullptr; });
}

Status check_header(FileSystem& file_system, int descriptor, const std::string& path, const ManifestFile& file,
                    const std::vector<DataEntry>& entries) {
  const Result<std::string> header = read_data_header(file_system, descriptor, file.bytes, path);
  if (!header) return std::unexpected(header.error());
  const Result<std::vector<DataEntry>> misplaced = entries_misplaced(entries, *header, file.bytes);
  if (!misplaced) return std::unexpected(with_context(misplaced.error(), path));
  if (misplaced->empty()) return {};
  return fail(ErrorCode::corrupt, format("{} does not have \"{}\" where its manifest says: the manifest was changed",
                                         path, misplaced->front().key));
}

std::unexpected<Error> damaged(const std::string& path, const std::string& what) {
  return fail(
      ErrorCode::corrupt,
      format("{} does not have the hash that its manifest says{}: it was damaged after it was written", path, what));
}

// What is read at once of a range, from `byte` of its file on: runs with small gaps between them,
// one block at most.
std::optional<BlockSpan> next_span(const ReadRange& range, std::uint64_t byte) {
  RunWalk walk(range, byte);
  if (walk.at_end()) return std::nullopt;
  const std::uint64_t begin = std::max(byte, walk.file_byte());
  std::uint64_t end = begin;
  for (; !walk.at_end() && end < begin + kBlockBytes; walk.advance()) {
    if (end != begin && walk.file_byte() > std::min(end + kGapBytesMax, begin + kBlockBytes - 1)) break;
    end = std::min(walk.file_byte() + range.bytes, begin + kBlockBytes);
  }
  return BlockSpan{.offset = begin, .bytes = static_cast<std::size_t>(end - begin)};
}

// One call of read_plan.
class Reading {
 public:
  Reading(FileSystem& file_system, const RestoreMemory& memory, const std::function<Status()>& may_go_on,
          const ReadOptions& options)
      : file_system_(file_system),
        memory_(memory),
        may_go_on_(may_go_on),
        way_max_(options.way_max.value_or(options.ranks_here > 1 ? ReadWay::plain : ReadWay::queued)) {
    RK_ASSERT(options.threads_max > 0);
    // Those that share a node share its processors, too.
    const unsigned processors = std::max(1u, std::thread::hardware_concurrency());
    const bool alone = options.ranks_here > 1 || has_arrays(memory);
    const unsigned threads = alone ? 1 : std::min({options.threads_max, processors, BlockSourceOptions::kBlocksMax});
    for (unsigned i = 0; i < threads; ++i) {
      sources_.emplace_back(file_system, BlockSourceOptions{.block_bytes = kBlockBytes,
                                                            .way_max = way_max_,
                                                            .blocks_max = BlockSourceOptions::kBlocksMax / threads});
    }
  }

  Status read_file(const std::string& path, const ManifestFile& expected, const std::vector<DataEntry>& entries,
                   const FileReads& reads) {
    const Result<SourceFile> file = SourceFile::open(file_system_, path, way_max_);
    if (!file) return std::unexpected(file.error());
    if (file->bytes() != expected.bytes) {
      return fail(ErrorCode::corrupt,
                  format("{} has {} bytes; its manifest says {}", path, file->bytes(), expected.bytes));
    }
    const WantedParts wanted(reads.ranges);
    const Status status =
        expected.chunks.empty() ? read_whole(*file, expected, wanted) : read_chunks(*file, expected, entries, wanted);
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

  Status read_whole(const SourceFile& file, const ManifestFile& expected, const WantedParts& wanted) {
    HashStream hash;
    Scatter scatter(memory_);
    BlockSource& source = sources_.front();
    source.start(file, every_block(expected.bytes, kBlockBytes));
    while (true) {
      const Result<std::optional<BlockSource::Block>> block = source.next();
      if (!block) return std::unexpected(block.error());
      if (!*block) break;
      hash.update((*block)->data.data(), (*block)->data.size());
      if (Status status = wanted.put(scatter, **block); !status) return status;
      report_.bytes += (*block)->data.size();
      if (Status status = may_go_on(); !status) return status;
    }
    if (hash.digest() != expected.hash) return damaged(file.path(), "");
    return {};
  }

  // Each thread takes the next block that no thread has taken.
  Status read_chunks(const SourceFile& file, const ManifestFile& expected, const std::vector<DataEntry>& entries,
                     const WantedParts& wanted) {
    // Data begins where the header ends.
    const std::uint64_t header_bytes = std::ranges::min(entries, {}, &DataEntry::begin_byte).begin_byte;
    const std::vector<BlockSpan> blocks = wanted.blocks(expected.bytes, header_bytes, kBlockBytes);
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
    const auto threads =
        static_cast<unsigned>(std::clamp<std::size_t>(blocks.size() / kBlocksAThreadMin, 1, sources_.size()));
    run_with_helpers(threads, [&](unsigned thread) { work(thread); });
    for (const BlockSpan& block : blocks) report_.bytes += block.bytes;
    return result;
  }

  Status read_some(BlockSource& source, const SourceFile& file, const ManifestFile& expected, const WantedParts& wanted,
                   const std::function<std::optional<BlockSpan>()>& take) const {
    Scatter scatter(memory_);
    source.start(file, take);
    while (true) {
      const Result<std::optional<BlockSource::Block>> block = source.next();
      if (!block) return std::unexpected(block.error());
      if (!*block) return {};
      const BlockSource::Block& found = **block;
      if (chunk_hash_of(found.data) != expected.chunks[found.offset / kHashChunkBytes]) {
        return damaged(file.path(), format(" in bytes {} to {}", found.offset, found.offset + found.data.size()));
      }
      if (Status status = wanted.put(scatter, found); !status) return status;
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
                 const RestorePlan& plan, const RestoreMemory& memory, const std::function<Status()>& may_go_on,
                 const ReadOptions& options) {
  Reading reading(file_system, memory, may_go_on, options);
  const EntriesByFile entries = entries_by_file(manifest);
  for (const FileReads& reads : plan.files) {
    const ManifestFile* expected = find_file(manifest, reads.file);
    const auto placed = entries.find(reads.file);
    if (expected == nullptr || placed == entries.end())
      return fail(ErrorCode::invalid_input, "the manifest does not list " + reads.file);
    if (Status status = reading.read_file(join_path(checkpoint_folder, reads.file), *expected, placed->second, reads);
        !status)
      return status;
  }
  if (options.report != nullptr) *options.report = reading.report();
  return {};
}

Status read_plan_unverified(FileSystem& file_system, const std::string& checkpoint_folder, const RestorePlan& plan,
                            const RestoreMemory& memory) {
  std::vector<char> buffer;
  Scatter scatter(memory);
  for (const FileReads& reads : plan.files) {
    const std::string path = join_path(checkpoint_folder, reads.file);
    const Result<OpenFile> file = open_for_reading(file_system, path);
    if (!file) return std::unexpected(file.error());
    for (const ReadRange& range : reads.ranges) {
      for (std::optional<BlockSpan> span = next_span(range, 0); span;
           span = next_span(range, span->offset + span->bytes)) {
        buffer.resize(std::max(buffer.size(), span->bytes));
        if (Status status =
                read_exactly(file_system, file->descriptor(), buffer.data(), span->bytes, span->offset, path);
            !status)
          return status;
        if (Status status = scatter.put(range, {.offset = span->offset, .data = {buffer.data(), span->bytes}}); !status)
          return status;
      }
    }
  }
  return {};
}

}  // namespace rekindle
