// The rank's mapping of its shadow (docs/formats/shadow.md): the file that the sidecar handed over,
// or private memory when the process is alone.
//
// The rest of the file is allocated here, in the training process, so that its memory counts in the
// training container's limit, and touched, so that no copy meets a page that is not there. Before
// that, and again before each part of it, the process checks whether there is room (memory_room.h):
// beyond a limit the kernel would end a process of the container. The mapping does not follow into
// a forked child.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "worker-sidecar/protocol/shadow_plan.h"
#include "worker-sidecar/runtime/src/failure.h"
#include "worker-sidecar/runtime/src/memory_reading.h"

namespace rekindle::runtime {

struct ShadowHost {
  // of this container, which may all be taking memory at this moment
  std::uint32_t ranks = 1;
  std::function<MemoryRoom()> read_room = [] { return read_memory_room(); };
};

class ShadowMapping {
 public:
  // `descriptor` stays the caller's, and its file is as short as before when there is no room.
  // VERSION, MEMORY (a limit, or the volume is full), UNAVAILABLE with what does not fit.
  static Outcome<ShadowMapping> map(int descriptor, std::uint32_t rank, std::uint64_t incarnation,
                                    const ShadowHost& host = {});
  // Memory that only this process sees. MEMORY.
  static Outcome<ShadowMapping> make_private(ShadowPlan plan, const ShadowHost& host = {});

  ShadowMapping() = default;
  ShadowMapping(ShadowMapping&& other) noexcept;
  ShadowMapping& operator=(ShadowMapping&& other) noexcept;
  ~ShadowMapping();

  const ShadowPlan& plan() const { return plan_; }
  ShadowSlotHeader& header_of(std::uint32_t slot) const {
    return *reinterpret_cast<ShadowSlotHeader*>(slot_begin(slot));
  }
  std::byte* slot_begin(std::uint32_t slot) const { return memory_ + plan_.offset_of_slot(slot); }

 private:
  ShadowMapping(ShadowPlan plan, std::byte* memory, std::size_t bytes)
      : plan_(std::move(plan)), memory_(memory), bytes_(bytes) {}

  ShadowPlan plan_;
  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace rekindle::runtime
