#include "worker-sidecar/sidecar/shadow_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <utility>

#include "common/base/format.h"
#include "worker-sidecar/checkpoint/names.h"
#include "worker-sidecar/storage/files.h"

namespace rekindle::sidecar {
namespace {

constexpr std::size_t kPortionBytes = 1u << 20;

std::string file_name(const std::string& folder, std::uint32_t rank) {
  return format("{}/rank-{}.shadow", folder, rank);
}

bool read_at(int descriptor, void* into, std::size_t bytes, std::uint64_t offset) {
  for (std::size_t have = 0; have < bytes;) {
    const ssize_t got =
        ::pread(descriptor, static_cast<char*>(into) + have, bytes - have, static_cast<off_t>(offset + have));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    have += static_cast<std::size_t>(got);
  }
  return true;
}

struct SlotStamp {
  std::uint64_t step;
  std::uint64_t attempt;
};

}  // namespace

ShadowFile::ShadowFile(ShadowFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), plan_(std::move(other.plan_)) {}

ShadowFile& ShadowFile::operator=(ShadowFile&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(plan_, other.plan_);
  return *this;
}

ShadowFile::~ShadowFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void ShadowFile::remove(const std::string& folder, std::uint32_t rank) { ::unlink(file_name(folder, rank).c_str()); }

Result<ShadowFile> ShadowFile::create(const std::string& folder, ShadowPlan plan) {
  const std::string path = file_name(folder, plan.rank);
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return fail_errno(errno, format("removing {}", path));
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (descriptor < 0) return fail_errno(errno, format("creating the shadow {}", path));
  ShadowFile file(descriptor, std::move(plan));
  const std::string front = encode_shadow_plan(file.plan_);
  for (std::size_t written = 0; written < front.size();) {
    const ssize_t put =
        ::pwrite(descriptor, front.data() + written, front.size() - written, static_cast<off_t>(written));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0)
      return fail_errno(put == 0 ? ENOSPC : errno,
                        format("writing the plan of the shadow {}; raise the size of the memory volume", path));
    written += static_cast<std::size_t>(put);
  }
  return file;
}

Result<ShadowFile> ShadowFile::open(const std::string& folder, std::uint32_t rank, std::uint64_t incarnation) {
  const std::string path = file_name(folder, rank);
  const int descriptor = ::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return fail_errno(errno, format("opening the shadow {}", path));
  ShadowFile file(descriptor, {});
  struct stat about{};
  if (::fstat(descriptor, &about) != 0 || !S_ISREG(about.st_mode) || about.st_uid != ::geteuid()) {
    return fail(ErrorCode::corrupt, format("{} is not a shadow that this sidecar made", path));
  }
  std::string front(kShadowPageBytes, '\0');
  if (!read_at(descriptor, front.data(), front.size(), 0))
    return fail(ErrorCode::corrupt, format("{} is cut short", path));
  const Result<std::uint64_t> wanted = shadow_front_bytes(front);
  if (!wanted) return std::unexpected(with_context(wanted.error(), path));
  front.resize(std::max<std::size_t>(front.size(), *wanted));
  if (!read_at(descriptor, front.data(), front.size(), 0))
    return fail(ErrorCode::corrupt, format("{} is cut short", path));
  Result<ShadowPlan> plan = decode_shadow_plan(front);
  if (!plan) return std::unexpected(with_context(plan.error(), path));
  if (plan->rank != rank || plan->incarnation != incarnation)
    return fail(ErrorCode::not_found, format("{} belongs to an earlier process", path));
  file.plan_ = *std::move(plan);
  return file;
}

std::optional<std::uint32_t> ShadowFile::slot_of(std::uint64_t step, std::uint64_t attempt) const {
  for (std::uint32_t slot = 0; slot < plan_.slots; ++slot) {
    SlotStamp stamp{};
    if (read_at(descriptor_, &stamp, sizeof stamp, plan_.offset_of_slot(slot)) && stamp.step == step &&
        stamp.attempt == attempt)
      return slot;
  }
  return std::nullopt;
}

std::vector<std::uint64_t> ShadowFile::whole_steps(std::uint64_t attempt) const {
  std::vector<std::uint64_t> steps;
  for (std::uint32_t slot = 0; slot < plan_.slots; ++slot) {
    SlotStamp stamp{};
    if (!read_at(descriptor_, &stamp, sizeof stamp, plan_.offset_of_slot(slot))) continue;
    if (stamp.step != 0 && stamp.attempt == attempt) steps.push_back(stamp.step);
  }
  std::ranges::sort(steps);
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  return steps;
}

Result<CapturedState> ShadowFile::captured(std::uint64_t step, std::uint64_t attempt) const {
  const std::optional<std::uint32_t> slot = slot_of(step, attempt);
  if (!slot) return fail(ErrorCode::not_found, format("the shadow does not hold step {} of attempt {}", step, attempt));
  std::string bytes(plan_.state_bytes, '\0');
  if (bytes.size() < sizeof(SlotHeader) ||
      !read_at(descriptor_, bytes.data(), bytes.size(), plan_.offset_of_slot(*slot) + plan_.state_offset)) {
    return fail(ErrorCode::corrupt, "the shadow was shortened by the training process");
  }
  SlotHeader header{};
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.step != step || header.attempt != attempt || slot_of(step, attempt) != slot) {
    return fail(ErrorCode::not_found, format("the shadow no longer holds the small state of step {}", step));
  }
  return decode_slot_payload(header, std::string_view(bytes).substr(sizeof header));
}

Status ShadowFile::read(std::uint64_t step, std::uint64_t attempt, const ShadowPiece& piece, std::uint64_t begin_byte,
                        std::span<char> into) const {
  const std::optional<std::uint32_t> slot = slot_of(step, attempt);
  const bool there =
      slot && read_at(descriptor_, into.data(), into.size(), plan_.offset_of_slot(*slot) + piece.offset + begin_byte);
  // The rank takes the step away before it writes anything else.
  if (!there || slot_of(step, attempt) != slot) {
    return fail(
        ErrorCode::conflict,
        format("the copy of step {} in the shadow of rank {} was overwritten or is cut short", step, plan_.rank));
  }
  return {};
}

Result<WrittenFile> write_from_shadow(FileSystem& file_system, const std::string& job_folder, const WriteMessage& order,
                                      std::uint64_t attempt, const Layout& layout, const ShadowFile& shadow,
                                      const WriteOptions& options) {
  if (!parse_folder_name(order.path) || !is_safe_file_name(order.file)) {
    return fail(ErrorCode::refused,
                format("the order names folder \"{}\" and file \"{}\", which are no names of a checkpoint", order.path,
                       order.file));
  }
  std::map<std::string_view, const TensorDescription*> tensors;
  for (const TensorDescription& tensor : layout.tensors) tensors.emplace(tensor.name, &tensor);
  struct Source {
    const ShadowPiece* piece;
    std::uint64_t begin_byte;
    std::uint64_t bytes;
  };
  std::vector<DataEntry> entries;
  std::vector<Source> sources;
  for (const PiecePlan& wanted : order.pieces) {
    const auto tensor = tensors.find(wanted.tensor);
    const auto kept = std::ranges::find_if(shadow.plan().pieces, [&](const ShadowPiece& piece) {
      return piece.piece.tensor == wanted.tensor && piece.piece.begin_row <= wanted.begin_row &&
             wanted.end_row <= piece.piece.end_row;
    });
    if (tensor == tensors.end() || kept == shadow.plan().pieces.end() || wanted.begin_row > wanted.end_row) {
      return fail(ErrorCode::not_found, format("the shadow of rank {} does not keep rows {} to {} of \"{}\"",
                                               shadow.plan().rank, wanted.begin_row, wanted.end_row, wanted.tensor));
    }
    const bool fits = has_rows(*tensor->second, kept->piece.begin_row, kept->piece.end_row) &&
                      has_rows(*tensor->second, wanted.begin_row, wanted.end_row) &&
                      rows_bytes(*tensor->second, kept->piece.end_row - kept->piece.begin_row) == kept->bytes;
    if (!fits) {
      return fail(ErrorCode::conflict,
                  format("tensor \"{}\" has changed its shape since the shadow of rank {} was planned", wanted.tensor,
                         shadow.plan().rank));
    }
    sources.push_back({&*kept, rows_bytes(*tensor->second, wanted.begin_row - kept->piece.begin_row),
                       rows_bytes(*tensor->second, wanted.end_row - wanted.begin_row)});
    entries.push_back(entry_of_piece(*tensor->second, wanted.begin_row, wanted.end_row));
  }
  Result<DataFileWriter> writer =
      DataFileWriter::create(file_system, join_path(job_folder, order.path), order.file, entries, options);
  if (!writer) return std::unexpected(writer.error());
  std::vector<char> portion(kPortionBytes);
  for (const std::size_t index : writer->layout().source) {
    const Source& source = sources[index];
    for (std::uint64_t at = 0; at < source.bytes;) {
      const std::span<char> part(portion.data(), std::min<std::uint64_t>(portion.size(), source.bytes - at));
      if (Status status = shadow.read(order.step, attempt, *source.piece, source.begin_byte + at, part); !status)
        return std::unexpected(status.error());
      if (Status status = writer->append(part.data(), part.size()); !status) return std::unexpected(status.error());
      at += part.size();
    }
  }
  Result<WrittenDataFile> written = writer->finish();
  if (!written) return std::unexpected(written.error());
  WrittenFile report{.file = order.file,
                     .bytes = written->bytes,
                     .hash = std::move(written->hash),
                     .chunks = std::move(written->chunks),
                     .entries = {},
                     .way = std::string(to_string(written->way))};
  for (std::size_t i = 0; i < order.pieces.size(); ++i) {
    const DataEntry& entry = written->entries[i];
    report.entries.push_back({.key = entry.key,
                              .tensor = order.pieces[i].tensor,
                              .begin_row = order.pieces[i].begin_row,
                              .end_row = order.pieces[i].end_row,
                              .begin_byte = entry.begin_byte,
                              .end_byte = entry.end_byte});
  }
  return report;
}

}  // namespace rekindle::sidecar
