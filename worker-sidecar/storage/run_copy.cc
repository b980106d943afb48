#include "worker-sidecar/storage/run_copy.h"

#include <cstring>

namespace rekindle {
namespace {

// A size that the compiler knows makes one or two instructions of the copy; 0 stands for the
// others.
template <std::size_t kBytes>
void copy_runs_of(char* to, std::uint64_t to_step, const char* from, std::uint64_t from_step, std::size_t bytes,
                  std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i)
    std::memcpy(to + i * to_step, from + i * from_step, kBytes != 0 ? kBytes : bytes);
}

}  // namespace

void copy_runs(void* to, std::uint64_t to_step, const void* from, std::uint64_t from_step, std::size_t bytes,
               std::uint64_t count) {
  const auto copy = [&] {
    switch (bytes) {
      case 1: return copy_runs_of<1>;
      case 2: return copy_runs_of<2>;
      case 4: return copy_runs_of<4>;
      case 8: return copy_runs_of<8>;
      case 16: return copy_runs_of<16>;
      case 32: return copy_runs_of<32>;
      case 64: return copy_runs_of<64>;
      default: return copy_runs_of<0>;
    }
  }();
  copy(static_cast<char*>(to), to_step, static_cast<const char*>(from), from_step, bytes, count);
}

}  // namespace rekindle
