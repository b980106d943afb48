// Memory of an array that is not one run of bytes of this process: a strided view, or memory of a
// device. Its bytes are numbered as those of the dense row-major array with the same elements,
// which is what files hold.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/base/error.h"

namespace rekindle {

class ArrayMemory {
 public:
  virtual ~ArrayMemory() = default;

  // Bytes [begin_byte, begin_byte + bytes) of the array, from it and to it. An error leaves the
  // other bytes as they were.
  virtual Status copy_out(void* to, std::uint64_t begin_byte, std::size_t bytes) const = 0;
  virtual Status copy_in(std::uint64_t begin_byte, const void* from, std::size_t bytes) const = 0;

  // A call takes about as long, beside its bytes, as copying so many. A caller that has many small
  // parts weighs with it whether to put them together first.
  virtual std::size_t bytes_worth_a_call() const = 0;
};

}  // namespace rekindle
