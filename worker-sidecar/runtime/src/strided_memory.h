// A view of memory of this process with gaps or in another order than row-major: gathered when it
// is read, scattered when it is written.
//
// Threads: none of its own; reading and writing at once is the caller's to prevent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "worker-sidecar/checkpoint/layout.h"
#include "worker-sidecar/runtime/src/failure.h"
#include "worker-sidecar/runtime/src/registered_memory.h"

namespace rekindle::runtime {

class StridedMemory final : public RegisteredMemory {
 public:
  // `strides` has one number of elements for each dimension of the checked tensor. Null: the view
  // is dense after all. ARGUMENT: a stride is negative, or elements may share memory.
  static Outcome<std::unique_ptr<StridedMemory>> make(const TensorDescription& tensor, const std::int64_t* strides,
                                                      void* data);

  void move_to(void* data) override { data_ = static_cast<std::byte*>(data); }

  Status copy_out(void* to, std::uint64_t begin_byte, std::size_t bytes) const override;
  Status copy_in(std::uint64_t begin_byte, const void* from, std::size_t bytes) const override;
  // Finding the place costs some divisions.
  std::size_t bytes_worth_a_call() const override { return 64; }

 private:
  // Dimensions that are walked, the last one fastest; what is inside the last one is `run_bytes_`
  // in one piece.
  struct Dimension {
    std::uint64_t extent = 0;
    std::uint64_t step_bytes = 0;
  };

  StridedMemory() = default;
  template <typename Copy>
  void walk(std::uint64_t begin_byte, std::size_t bytes, Copy&& copy) const;

  std::byte* data_ = nullptr;
  std::vector<Dimension> dimensions_;
  std::uint64_t run_bytes_ = 0;
};

}  // namespace rekindle::runtime
