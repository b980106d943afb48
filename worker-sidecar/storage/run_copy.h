// Copies equal runs of bytes at equal distances: rows of a part of a matrix.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rekindle {

// `count` runs of `bytes` each, from every `from_step` bytes to every `to_step` bytes. The two
// memories do not overlap.
void copy_runs(void* to, std::uint64_t to_step, const void* from, std::uint64_t from_step, std::size_t bytes,
               std::uint64_t count);

}  // namespace rekindle
