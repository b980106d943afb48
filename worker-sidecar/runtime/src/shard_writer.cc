#include "worker-sidecar/runtime/src/shard_writer.h"

#include <span>
#include <utility>
#include <vector>

#include "common/base/format.h"
#include "worker-sidecar/checkpoint/names.h"
#include "worker-sidecar/checkpoint/safetensors.h"
#include "worker-sidecar/storage/file_writer.h"
#include "worker-sidecar/storage/files.h"

namespace rekindle::runtime {
namespace {

Result<std::vector<MemoryPiece>> find_memory(const WriteMessage& order, const PinnedRank& rank) {
  const RankStatus word = decode_word(rank.block.word.load(std::memory_order_acquire));
  std::vector<MemoryPiece> pieces;
  for (const PiecePlan& piece : order.pieces) {
    const RegisteredTensor* const tensor = rank.registry.find_tensor(piece.tensor);
    if (tensor == nullptr) {
      return fail(ErrorCode::not_found,
                  format("the order names tensor '{}', which this rank has not registered", piece.tensor));
    }
    if (!has_rows(tensor->description, piece.begin_row, piece.end_row)) {
      return fail(ErrorCode::invalid_input,
                  format("the order names rows {} to {} of tensor '{}', which has {}", piece.begin_row, piece.end_row,
                         piece.tensor, row_count(tensor->description)));
    }
    Result<MemoryPiece> found = piece_of(*tensor, piece.begin_row, piece.end_row, rank.small_state, word.slot & 1u);
    if (!found) return std::unexpected(found.error());
    pieces.push_back(*std::move(found));
  }
  return pieces;
}

}  // namespace

Result<MemoryPiece> piece_of(const RegisteredTensor& tensor, std::uint64_t begin_row, std::uint64_t end_row,
                             const SmallState& small_state, std::uint8_t slot) {
  MemoryPiece piece{.entry = entry_of_piece(tensor.description, begin_row, end_row)};
  const std::uint64_t begin_byte = rows_bytes(tensor.description, begin_row);
  const auto* start = static_cast<const std::byte*>(tensor.data);
  if (tensor.captured_index) {
    start = small_state.value(slot, *tensor.captured_index);
    if (start == nullptr) {
      return fail(
          ErrorCode::unavailable,
          format("tensor '{}', which changes anywhere in a step, could not be copied when this step was committed",
                 tensor.description.name));
    }
  } else if (tensor.array) {
    piece.array = tensor.array.get();
    piece.begin_byte = begin_byte;
    return piece;
  }
  piece.data = start == nullptr ? nullptr : start + begin_byte;
  return piece;
}

Status check_pin(const WriteMessage& order, const PinnedRank& rank) {
  // What was read of the memory before came before this check of the words; the rank's fence in the
  // gate is the other half.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const std::uint32_t hold = rank.block.hold.load(std::memory_order_acquire);
  const RankStatus word = decode_word(rank.block.word.load(std::memory_order_acquire));
  if (hold == 0 || hold != order.hold || rank.gates.given_up(hold)) {
    return fail(ErrorCode::conflict,
                format("the hold {} under which step {} was to be written has ended; what was written is discarded",
                       order.hold, order.step));
  }
  if (word.step != order.step || !is_clean(word)) {
    return fail(ErrorCode::conflict,
                format("this rank is no longer clean at step {} (it is {} step {}); what was written is discarded",
                       order.step, is_clean(word) ? "at" : "updating after", word.step));
  }
  return {};
}

Result<WrittenFile> write_shard(FileSystem& file_system, const std::string& job_folder, const WriteMessage& order,
                                const PinnedRank& rank, const std::function<Status()>& may_go_on,
                                std::uint64_t bytes_per_second_max) {
  if (!parse_folder_name(order.path) || !is_safe_file_name(order.file)) {
    return fail(ErrorCode::refused,
                format("the order names folder '{}' and file '{}', which are no names of a checkpoint", order.path,
                       order.file));
  }
  const auto held = rank.registry.lock();
  if (Status status = check_pin(order, rank); !status) return std::unexpected(status.error());
  const Result<std::vector<MemoryPiece>> pieces = find_memory(order, rank);
  if (!pieces) return std::unexpected(pieces.error());
  WriteOptions options;
  options.bytes_per_second_max = bytes_per_second_max;
  options.may_go_on = [&]() -> Status {
    if (Status status = check_pin(order, rank); !status) return status;
    return may_go_on();
  };
  Result<WrittenDataFile> written =
      write_data_file(file_system, join_path(job_folder, order.path), order.file, *pieces, options);
  if (!written) return std::unexpected(written.error());
  WrittenFile report{.file = order.file,
                     .bytes = written->bytes,
                     .hash = std::move(written->hash),
                     .chunks = std::move(written->chunks),
                     .entries = {},
                     .way = std::string(to_string(written->way))};
  for (std::size_t index = 0; index < order.pieces.size(); ++index) {
    const PiecePlan& piece = order.pieces[index];
    const DataEntry& entry = written->entries[index];
    report.entries.push_back({.key = entry.key,
                              .tensor = piece.tensor,
                              .begin_row = piece.begin_row,
                              .end_row = piece.end_row,
                              .begin_byte = entry.begin_byte,
                              .end_byte = entry.end_byte});
  }
  return report;
}

}  // namespace rekindle::runtime
