#include "worker-sidecar/runtime/src/control_mapping.h"

#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "common/base/format.h"
#include "common/contract/environment.h"

namespace rekindle::runtime {
namespace {

constexpr std::uint64_t kPageBytes = 4096;

void keep_out_of_children(void* memory, std::size_t bytes) {
  // A kernel or sandbox that refuses loses nothing but the tidiness: calls in a child are refused
  // before they touch the block.
  ::madvise(memory, bytes, MADV_DONTFORK);
}

}  // namespace

Outcome<ControlMapping> ControlMapping::map(int descriptor, std::uint32_t rank, std::uint32_t world_size) {
  struct stat about{};
  if (::fstat(descriptor, &about) != 0) {
    return refuse(RK_ERROR_UNAVAILABLE,
                  format("the control block that the sidecar handed over cannot be used: {}", std::strerror(errno)));
  }
  const auto bytes = static_cast<std::uint64_t>(about.st_size);
  if (bytes < kControlSlotsOffset) {
    return refuse(
        RK_ERROR_UNAVAILABLE,
        format(
            "the control block that the sidecar handed over has {} bytes, fewer than its first page; restart the pod",
            bytes));
  }
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, descriptor, 0);
  if (memory == MAP_FAILED) {
    return refuse(RK_ERROR_MEMORY, format("mapping the control block ({} bytes): {}; raise the memory limit", bytes,
                                          std::strerror(errno)));
  }
  ControlMapping mapping(static_cast<ControlBlock*>(memory), bytes);
  const ControlBlock& seen = *mapping.block_;
  if (seen.magic != kControlMagic) {
    return refuse(RK_ERROR_VERSION,
                  "what the sidecar handed over is no control block (its first bytes are not RKCTRL01); check that the "
                  "socket in REKINDLE_SOCKET belongs to a Rekindle sidecar");
  }
  if (seen.version != kControlVersion) {
    return refuse(
        RK_ERROR_VERSION,
        format("the sidecar's control block has version {}, this library knows version {}; use a library and a "
               "sidecar of the same release",
               seen.version, kControlVersion));
  }
  if (seen.rank != rank || seen.world_size != world_size) {
    return refuse(RK_ERROR_UNAVAILABLE,
                  format("the control block is for rank {} of {}, this process is rank {} of {}; "
                         "check {} and {}",
                         seen.rank, seen.world_size, rank, world_size, environment::kRank, environment::kWorldSize));
  }
  const std::uint64_t slots_end = seen.slot_offset + 2ull * seen.slot_bytes;
  if (seen.total_bytes != bytes || seen.slot_offset < kControlSlotsOffset || seen.slot_offset % kPageBytes != 0 ||
      seen.slot_bytes == 0 || seen.slot_bytes % kPageBytes != 0 || slots_end > bytes) {
    return refuse(RK_ERROR_UNAVAILABLE, format("the sizes in the control block do not fit together (file {} bytes, "
                                               "said {}, slots of {} from {}); the memory "
                                               "volume may have been full, restart the pod",
                                               bytes, seen.total_bytes, seen.slot_bytes, seen.slot_offset));
  }
  keep_out_of_children(memory, bytes);
  return mapping;
}

Outcome<ControlMapping> ControlMapping::make_private(std::uint32_t rank, std::uint32_t world_size,
                                                     std::uint32_t state_bytes_max) {
  const std::uint64_t needed = std::uint64_t{state_bytes_max} + sizeof(SlotHeader);
  const std::uint64_t slot_bytes = (needed + kPageBytes - 1) / kPageBytes * kPageBytes;
  const std::uint64_t bytes = kControlSlotsOffset + 2 * slot_bytes;
  if (bytes > UINT32_MAX) {
    return refuse(RK_ERROR_ARGUMENT,
                  format("state_bytes_max is {}, which is more than one slot can hold", state_bytes_max));
  }
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) {
    return refuse(RK_ERROR_MEMORY, format("no memory for {} bytes of small state: {}", bytes, std::strerror(errno)));
  }
  ControlMapping mapping(static_cast<ControlBlock*>(memory), bytes);
  ControlBlock& block = *mapping.block_;
  block.magic = kControlMagic;
  block.version = kControlVersion;
  block.total_bytes = static_cast<std::uint32_t>(bytes);
  block.rank = rank;
  block.world_size = world_size;
  block.slot_bytes = static_cast<std::uint32_t>(slot_bytes);
  block.slot_offset = static_cast<std::uint32_t>(kControlSlotsOffset);
  keep_out_of_children(memory, bytes);
  return mapping;
}

ControlMapping::ControlMapping(ControlMapping&& other) noexcept
    : block_(std::exchange(other.block_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

ControlMapping& ControlMapping::operator=(ControlMapping&& other) noexcept {
  std::swap(block_, other.block_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

ControlMapping::~ControlMapping() {
  if (block_ != nullptr) ::munmap(block_, bytes_);
}

}  // namespace rekindle::runtime
