// The 1,797 handwritten digits and the order in which training sees them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "result.h"

namespace digits {

inline constexpr std::size_t kPixels = 64;
inline constexpr std::size_t kClasses = 10;

struct Image {
  std::array<float, kPixels> pixels;  // 0 to 1
  std::uint8_t digit;
};

struct Dataset {
  std::vector<Image> training;
  std::vector<Image> held_out;  // a fifth, never trained on
};

// Reads lines of 64 pixels (0 to 16) and the digit. Which fifth is held out depends on the seed
// alone.
Result<Dataset> load_dataset(const std::string& path, std::uint64_t seed);

// Which image a rank takes at which step: a pure function of seed, step and place in the global
// batch, so a resumed run sees exactly the images that it would have seen, and nothing about it
// needs saving. Each epoch has an order of its own.
class Sampler {
 public:
  Sampler(std::uint64_t seed, std::size_t images, std::size_t global_batch);

  // Index of the image at `place` (0 to global_batch - 1) of `step` (from 1).
  std::size_t image_at(std::uint64_t step, std::size_t place);

 private:
  void order_epoch(std::uint64_t epoch);

  std::uint64_t seed_;
  std::size_t images_;
  std::size_t global_batch_;
  // what order_ holds; only a memory of the function's last answer
  std::uint64_t ordered_epoch_ = UINT64_MAX;
  std::vector<std::uint32_t> order_;
};

}  // namespace digits
