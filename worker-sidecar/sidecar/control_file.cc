#include "worker-sidecar/sidecar/control_file.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <cstring>

#include "common/base/format.h"

namespace rekindle::sidecar {
namespace {

// The first page holds every field that is mapped; slots are read with pread.
constexpr std::size_t kMappedBytes = kControlSlotsOffset;
constexpr std::uint32_t kStateBytesMax = 256u << 20;

std::string file_name(const std::string& folder, std::uint32_t rank) {
  return format("{}/rank-{}.control", folder, rank);
}

std::uint32_t slot_bytes_for(std::uint32_t state_bytes_max) {
  const std::uint32_t wanted = state_bytes_max + static_cast<std::uint32_t>(sizeof(SlotHeader));
  return (wanted + 4095u) / 4096u * 4096u;
}

Result<ControlBlock*> map_block(int descriptor) {
  void* const memory = ::mmap(nullptr, kMappedBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, descriptor, 0);
  if (memory == MAP_FAILED) return fail_errno(errno, "mapping a control block");
  return static_cast<ControlBlock*>(memory);
}

}  // namespace

ControlFile::ControlFile(int descriptor, ControlBlock* block, std::uint32_t slot_bytes, std::uint64_t incarnation)
    : descriptor_(descriptor), block_(block), slot_bytes_(slot_bytes), incarnation_(incarnation) {}

ControlFile::ControlFile(ControlFile&& other) noexcept { *this = std::move(other); }

ControlFile& ControlFile::operator=(ControlFile&& other) noexcept {
  if (this == &other) return *this;
  close();
  descriptor_ = std::exchange(other.descriptor_, -1);
  block_ = std::exchange(other.block_, nullptr);
  slot_bytes_ = other.slot_bytes_;
  incarnation_ = other.incarnation_;
  hold_number_ = other.hold_number_;
  return *this;
}

ControlFile::~ControlFile() { close(); }

void ControlFile::close() {
  if (block_ != nullptr) ::munmap(block_, kMappedBytes);
  if (descriptor_ >= 0) ::close(descriptor_);
  block_ = nullptr;
  descriptor_ = -1;
}

Result<ControlFile> ControlFile::create(const std::string& folder, const ControlShape& shape) {
  if (shape.state_bytes_max > kStateBytesMax) {
    return fail(ErrorCode::invalid_input, format("rank {} asks for {} bytes of small state a step; at most {} are "
                                                 "kept there. Register large arrays as tensors.",
                                                 shape.rank, shape.state_bytes_max, kStateBytesMax));
  }
  const std::string path = file_name(folder, shape.rank);
  // The process that had this rank before keeps its own mapping; only the name goes to the new one.
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) return fail_errno(errno, format("removing {}", path));
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (descriptor < 0) return fail_errno(errno, format("creating the control block {}", path));

  const std::uint32_t slot_bytes = slot_bytes_for(shape.state_bytes_max);
  const std::uint64_t total = kControlSlotsOffset + 2ull * slot_bytes;
  if (const int error = ::posix_fallocate(descriptor, 0, static_cast<off_t>(total)); error != 0) {
    ::close(descriptor);
    ::unlink(path.c_str());
    if (error == ENOSPC) {
      return fail(
          ErrorCode::exhausted,
          format("the memory volume {} is full: rank {} needs {} bytes there for its control block. Raise the volume's "
                 "sizeLimit (and the memory limit of the pod) or lower state_bytes_max.",
                 folder, shape.rank, total));
    }
    return fail_errno(error, format("allocating {} bytes for the control block {}", total, path));
  }
  Result<ControlBlock*> block = map_block(descriptor);
  if (!block) {
    ::close(descriptor);
    return std::unexpected(block.error());
  }
  ControlBlock& fresh = **block;
  fresh.version = kControlVersion;
  fresh.total_bytes = static_cast<std::uint32_t>(total);
  fresh.rank = shape.rank;
  fresh.world_size = shape.world_size;
  fresh.incarnation = shape.incarnation;
  fresh.slot_bytes = slot_bytes;
  fresh.slot_offset = static_cast<std::uint32_t>(kControlSlotsOffset);
  std::atomic_thread_fence(std::memory_order_release);
  fresh.magic = kControlMagic;
  return ControlFile(descriptor, *block, slot_bytes, shape.incarnation);
}

Result<ControlFile> ControlFile::open(const std::string& folder, std::uint32_t rank, std::uint32_t world_size) {
  const std::string path = file_name(folder, rank);
  const int descriptor = ::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (descriptor < 0) return fail_errno(errno, format("opening the control block {}", path));
  struct stat about{};
  const bool ours = ::fstat(descriptor, &about) == 0 && S_ISREG(about.st_mode) && about.st_uid == ::geteuid() &&
                    about.st_size >= static_cast<off_t>(kControlSlotsOffset);
  if (!ours) {
    ::close(descriptor);
    return fail(ErrorCode::corrupt, format("{} is not a control block that this sidecar made", path));
  }
  Result<ControlBlock*> block = map_block(descriptor);
  if (!block) {
    ::close(descriptor);
    return std::unexpected(block.error());
  }
  ControlFile file(descriptor, *block, 0, 0);
  const ControlBlock& seen = **block;
  const std::uint64_t total = kControlSlotsOffset + 2ull * seen.slot_bytes;
  if (seen.magic != kControlMagic || seen.version != kControlVersion || seen.rank != rank ||
      seen.world_size != world_size || seen.slot_offset != kControlSlotsOffset || seen.slot_bytes == 0 ||
      seen.slot_bytes % 4096 != 0 || total != static_cast<std::uint64_t>(about.st_size)) {
    return fail(ErrorCode::corrupt,
                format("{} is not the control block of rank {} of {} (version {}); the rank has to be started again",
                       path, rank, world_size, kControlVersion));
  }
  file.slot_bytes_ = seen.slot_bytes;
  file.incarnation_ = seen.incarnation;
  file.hold_number_ = seen.hold.load(std::memory_order_acquire);
  return file;
}

RankStatus ControlFile::word() const { return decode_word(block_->word.load(std::memory_order_acquire)); }

std::uint64_t ControlFile::attempt() const { return block_->attempt.load(std::memory_order_acquire); }

bool ControlFile::held() const { return block_->hold.load(std::memory_order_relaxed) != 0; }

std::uint32_t ControlFile::hold() {
  ++hold_number_;
  if (hold_number_ == 0) hold_number_ = 1;
  block_->permit.store(0, std::memory_order_relaxed);
  block_->order.store(static_cast<std::uint32_t>(standing_order()), std::memory_order_relaxed);
  block_->hold.store(hold_number_, std::memory_order_release);
  // Paired with the fence in the rank's gate (P3): either it sees the hold, or we see that it is
  // updating.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  ring();
  return hold_number_;
}

void ControlFile::permit(std::uint64_t step) {
  block_->permit.store(step, std::memory_order_release);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  ring();
}

void ControlFile::request_snapshot(std::uint64_t step) {
  block_->snapshot_step.store(step, std::memory_order_release);
  // Paired with the fence in the rank's step gate.
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

void ControlFile::release(GateOrder order) { open_gates(order == GateOrder::stop ? order : standing_order()); }

Status ControlFile::release_to_rebuild(const RebuildOrder& order) {
  if (rebuild_term() != order.term) {
    if (Status written = write_rebuild_order(*block_, order); !written) return written;
  }
  open_gates(standing_order());
  return {};
}

bool ControlFile::settle_rebuild() {
  if (block_->order.load(std::memory_order_relaxed) != static_cast<std::uint32_t>(GateOrder::rebuild) ||
      rebuild_is_pending(*block_))
    return false;
  block_->order.store(static_cast<std::uint32_t>(GateOrder::go_on), std::memory_order_relaxed);
  return true;
}

std::uint64_t ControlFile::rebuild_term() const { return block_->rebuild_term.load(std::memory_order_relaxed); }

// What the rank has been told before and has not done.
GateOrder ControlFile::standing_order() const {
  return rebuild_is_pending(*block_) ? GateOrder::rebuild : GateOrder::go_on;
}

void ControlFile::open_gates(GateOrder order) {
  block_->order.store(static_cast<std::uint32_t>(order), std::memory_order_relaxed);
  block_->permit.store(0, std::memory_order_relaxed);
  block_->hold.store(0, std::memory_order_release);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  ring();
}

void ControlFile::ring() {
  block_->wake_word.fetch_add(1, std::memory_order_seq_cst);
  ::syscall(SYS_futex, &block_->wake_word, FUTEX_WAKE, 0x7fffffff, nullptr, nullptr, 0);
}

Result<CapturedState> ControlFile::captured(std::uint64_t step, std::uint64_t attempt) const {
  const RankStatus now = word();
  const std::uint32_t slot = (now.step == step ? now.slot : now.slot ^ 1u) & 1u;
  const off_t offset = static_cast<off_t>(kControlSlotsOffset) + static_cast<off_t>(slot) * slot_bytes_;
  std::string bytes(slot_bytes_, '\0');
  if (::pread(descriptor_, bytes.data(), bytes.size(), offset) != static_cast<ssize_t>(bytes.size()))
    return fail(ErrorCode::corrupt, "the control block was shortened by the training process");
  SlotHeader header{};
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.step != step || header.attempt != attempt)
    return fail(ErrorCode::not_found, format("no slot holds step {} of attempt {}", step, attempt));
  return decode_slot_payload(header, std::string_view(bytes).substr(sizeof header));
}

Result<CapturedState> decode_slot_payload(const SlotHeader& header, std::string_view payload) {
  if (header.bytes > payload.size()) return fail(ErrorCode::corrupt, "a slot claims more bytes than it has");
  payload = payload.substr(0, header.bytes);
  if (XXH3_64bits(payload.data(), payload.size()) != header.checksum) {
    return fail(ErrorCode::corrupt, format("the captured state of step {} does not match its checksum", header.step));
  }
  CapturedState state{.step = header.step, .attempt = header.attempt, .entries = {}};
  std::size_t at = 0;
  const auto room_for = [&](std::uint64_t bytes) { return bytes <= payload.size() - at; };
  for (std::uint32_t entry = 0; entry < header.entries; ++entry) {
    std::uint16_t name_bytes = 0;
    std::uint64_t value_bytes = 0;
    if (!room_for(sizeof name_bytes)) return fail(ErrorCode::corrupt, "a slot ends inside an entry");
    std::memcpy(&name_bytes, payload.data() + at, sizeof name_bytes);
    at += sizeof name_bytes;
    if (!room_for(name_bytes)) return fail(ErrorCode::corrupt, "a slot ends inside a name");
    std::string name(payload.substr(at, name_bytes));
    at += name_bytes;
    if (!room_for(sizeof value_bytes)) return fail(ErrorCode::corrupt, "a slot ends inside an entry");
    std::memcpy(&value_bytes, payload.data() + at, sizeof value_bytes);
    at += sizeof value_bytes;
    if (!room_for(value_bytes)) return fail(ErrorCode::corrupt, "a slot ends inside a value");
    state.entries.emplace_back(std::move(name), std::string(payload.substr(at, value_bytes)));
    at += value_bytes;
  }
  if (at != payload.size()) return fail(ErrorCode::corrupt, "a slot holds bytes that belong to no entry");
  return state;
}

}  // namespace rekindle::sidecar
