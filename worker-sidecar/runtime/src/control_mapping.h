// The mapping of a control block in the rank: of the file that the sidecar made, or of private
// memory when the process is alone.
//
// Nothing is believed before it was compared: magic, version, who it is for, sizes against the
// file's length. The mapping does not follow into a forked child, so workers neither keep its
// memory alive nor can write into it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "worker-sidecar/protocol/control_block.h"
#include "worker-sidecar/runtime/src/failure.h"

namespace rekindle::runtime {

class ControlMapping {
 public:
  // `descriptor` stays the caller's. VERSION, or UNAVAILABLE with what does not fit.
  static Outcome<ControlMapping> map(int descriptor, std::uint32_t rank, std::uint32_t world_size);

  // A block that only this process sees, with its gates open.
  static Outcome<ControlMapping> make_private(std::uint32_t rank, std::uint32_t world_size,
                                              std::uint32_t state_bytes_max);

  ControlMapping() = default;
  ControlMapping(ControlMapping&& other) noexcept;
  ControlMapping& operator=(ControlMapping&& other) noexcept;
  ~ControlMapping();

  explicit operator bool() const { return block_ != nullptr; }
  ControlBlock& operator*() const { return *block_; }
  ControlBlock* operator->() const { return block_; }

 private:
  ControlMapping(ControlBlock* block, std::size_t bytes) : block_(block), bytes_(bytes) {}

  ControlBlock* block_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace rekindle::runtime
